"""The compiled half of the sandbox: made once, refused where others could change it; tests that go together."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
from pathlib import Path

import pytest

from curation.records import VerifierError
from curation.verify.sandbox import Ending, Limits, Sandbox
from curation.verify.sandbox.inside.confinement import Confinement, Library
from curation.verify.sandbox.library import build_library, cache_folder

CODES = [*range(5), *([0] * 12), 70, 0, 0]
EXITS = '#include <cstdio>\nint main(int n, char**) { int c; if (scanf("%d", &c) == 1) return c + (n > 1 ? 100 : 0); }'


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and a compiler to be found."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    build_library()
    return cache_folder()


def test_it_is_made_once(cache: Path) -> None:
    made = build_library()
    before = made.stat()
    assert made.is_relative_to(cache)
    assert build_library() == made
    assert made.stat() == before


def test_what_others_could_change_is_not_loaded(cache: Path) -> None:
    build_library().parent.chmod(0o777)
    with pytest.raises(VerifierError, match="could be changed by others"):
        build_library()


def test_what_cannot_be_made_or_loaded_is_reported(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = cache.parent / "other" / build_library().relative_to(cache.parent)
    broken.parent.mkdir(parents=True, mode=0o700)
    broken.write_bytes(b"no library")
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache.parent / "other"))
    with pytest.raises(VerifierError, match=f"{broken}, which starts programs, cannot be made or loaded"):
        Sandbox(workers=1)
    broken.unlink()
    monkeypatch.setenv("PATH", "")
    with pytest.raises(
        VerifierError, match="no C compiler is installed, which the sandbox needs; install gcc or clang"
    ):
        Sandbox(workers=1)


def test_many_tests_of_a_program_keep_their_order(strongest: Sandbox) -> None:
    inputs = [b"%d" % code for code in CODES]
    runs = list(strongest.run_python("import sys\nexit(int(input()) + 100 * len(sys.argv) - 100)", inputs, Limits()))
    assert [ran.exit_code for ran in runs] == CODES
    runs = list(strongest.run_python("import sys\nprint(sys.argv[1:])", [b""] * 3, Limits(), args=("", "a b")))
    assert [ran.stdout for ran in runs] == [b"['', 'a b']\n"] * 3
    compiled = strongest.compile({"m.cpp": EXITS.encode()}, ["g++", "m.cpp"])
    assert compiled.artifact is not None, compiled.log
    assert [ran.exit_code for ran in strongest.run_binary(compiled.artifact, inputs, Limits())] == CODES
    (ran,) = strongest.run_binary(compiled.artifact, [b"1"], Limits(), args=("x",))
    assert ran.exit_code == 101


def test_quick_tests_run_one_after_another_in_the_library(tmp_path: Path) -> None:
    folder, (ours, theirs) = tmp_path / "folder", socket.socketpair()
    folder.mkdir()
    with open(shutil.which("true") or "", "rb") as program, contextlib.closing(ours), contextlib.closing(theirs):
        outputs = [os.memfd_create("out") for _ in range(9)]
        confinement = Confinement(Library(str(build_library())), [], None, -1, program.fileno())
        start = confinement.runner(ours.fileno(), str(folder), 60.0, (60.0, 1 << 20))
        confinement.command([b"true"], [])
        ended, going = start([outputs[place : place + 3] for place in range(0, 9, 3)])
        assert ([status for status, *_ in ended], going) == ([0, 0, 0], None)
        (folder / "left").touch()
        ended, going = start([outputs[:3], outputs[3:6]])
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
