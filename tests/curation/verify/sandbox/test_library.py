"""The compiled half of the sandbox: made once, refused where others could change it; tests that go together."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from curation.verify import sandbox
from curation.verify.sandbox import Ending, Limits, Sandbox
from curation.verify.sandbox.inside.confinement import Confinement, Library
from curation.verify.sandbox.library import LibraryUnavailable, build_library, cache_folder
from tests.waiting import PATIENCE_S

CODES = [*range(5), *([0] * 12), 70, 0, 0]
EXITS = '#include <cstdio>\nint main(int n, char**) { int c; if (scanf("%d", &c) == 1) return c + (n > 1 ? 100 : 0); }'


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and a compiler to be found."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    try:
        build_library()
    except LibraryUnavailable as why:
        pytest.skip(str(why))
    return cache_folder()


def test_it_is_made_once(cache: Path) -> None:
    made = build_library()
    before = made.stat()
    assert made.is_relative_to(cache)
    assert build_library() == made
    assert made.stat() == before


def test_what_others_could_change_is_not_loaded(cache: Path) -> None:
    build_library().parent.chmod(0o777)
    with pytest.raises(LibraryUnavailable, match="could be changed by others"):
        build_library()


def test_what_cannot_be_loaded_is_told_and_python_starts_the_programs(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = cache.parent / "other" / build_library().relative_to(cache.parent)
    broken.parent.mkdir(parents=True, mode=0o700)
    broken.write_bytes(b"no library")
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache.parent / "other"))
    with Sandbox(workers=1) as box:
        assert "started by Python, more slowly" in box.description
        assert str(broken) in box.description
        assert [ran.stdout for ran in box.run_python("print(input())", [b"1"], Limits())] == [b"1\n"]


def test_many_tests_of_a_python_program_keep_their_order(strongest: Sandbox) -> None:
    inputs = [b"%d" % code for code in CODES]
    runs = list(strongest.run_python("import sys\nexit(int(input()) + 100 * len(sys.argv) - 100)", inputs, Limits()))
    assert [ran.exit_code for ran in runs] == CODES
    runs = list(strongest.run_python("import sys\nprint(sys.argv[1:])", [b""] * 3, Limits(), args=("", "a b")))
    assert [ran.stdout for ran in runs] == [b"['', 'a b']\n"] * 3


def test_many_tests_of_a_binary_keep_their_order(strongest: Sandbox) -> None:
    compiled = strongest.compile({"m.cpp": EXITS.encode()}, ["g++", "m.cpp"])
    assert compiled.artifact is not None, compiled.log
    inputs = [b"%d" % code for code in CODES]
    assert [ran.exit_code for ran in strongest.run_binary(compiled.artifact, inputs, Limits())] == CODES
    (ran,) = strongest.run_binary(compiled.artifact, [b"1"], Limits(), args=("x",))
    assert ran.exit_code == 101


def test_quick_tests_run_one_after_another_in_the_library(tmp_path: Path) -> None:
    folder, (ours, theirs) = tmp_path / "folder", socket.socketpair()
    folder.mkdir()
    with open(shutil.which("true") or "", "rb") as program, contextlib.closing(ours), contextlib.closing(theirs):
        outputs = [os.memfd_create("out") for _ in range(9)]
        confinement = Confinement(Library(str(build_library())), [], None, -1, program.fileno())
        start = confinement.starter(ours.fileno(), str(folder), 60.0, (60.0, 1 << 20))
        confinement.command([b"true"], [])
        ended, going = start(b"", [outputs[place : place + 3] for place in range(0, 9, 3)])
        assert ([status for status, *_ in ended], going) == ([0, 0, 0], None)
        (folder / "left").touch()
        ended, going = start(b"", [outputs[:3], outputs[3:6]])
        assert ([status for status, *_ in ended], going) == ([0], None), "what a test leaves is looked at first"
        for output in outputs:
            os.close(output)


def test_a_binary_that_cannot_be_executed_is_the_boxs_failure_and_no_verdict(strongest: Sandbox) -> None:
    (ran,) = strongest.run_binary(b"no program", [b""], Limits())
    assert ran.ending is Ending.BROKEN
    assert "execveat" in ran.note


def test_a_slow_test_among_quick_ones_is_limited_alone(strongest: Sandbox) -> None:
    source = "if input() == 'slow':\n    while True: pass"
    inputs = [b"", b"", b"", b"slow", b"", b"", b"slow"]
    endings = [ran.ending for ran in strongest.run_python(source, inputs, Limits(cpu_s=0.5))]
    assert endings == [Ending.CPU_LIMIT if given else Ending.EXITED for given in inputs]


MAKES_THE_THREAD = """
import os, sys
sys.path.insert(0, sys.argv[1])
from inside import kernel
from inside.confinement import Library
from inside.filter import OWN, SECRET, Template
library, taken, children = Library(sys.argv[2]), 0, 0
kernel.call("prctl", kernel.PR_SET_NO_NEW_PRIVS, 1)
filtering = Template("binary", True, (os.getpid(), OWN), SECRET)
unreadable = Template("binary", True, (os.getpid(), OWN), SECRET)
kernel.ctypes.c_ushort.from_address(unreadable.address).value = 0  # EINVAL
for _ in range(40):
    try:
        library.starter(unreadable, -1)
        taken += 1
    except OSError:
        pass
    library.starter(filtering, -1)
try:
    os.waitpid(-1, 0)
    children += 1
except ChildProcessError:
    pass
print(taken, children)
"""


def test_the_thread_that_starts_binaries_is_asked_for_nothing_before_it_is_inside_its_filter(cache: Path) -> None:
    """Who makes it once asked it too early: of a filter that could not be put around it nobody was told."""
    words = [sys.executable, "-I", "-c", MAKES_THE_THREAD, str(Path(sandbox.__file__).parent), str(build_library())]
    ran = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (ran.stdout, ran.returncode) == ("0 0\n", 0), ran.stderr
