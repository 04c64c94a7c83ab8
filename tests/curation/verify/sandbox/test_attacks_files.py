"""Attacks on files and secrets: nothing of the host is read, nothing is written, nothing stays."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from curation.verify.sandbox import Ending, Limits, Sandbox
from curation.verify.sandbox import slot as slots
from curation.verify.sandbox.inside import folder
from curation.verify.sandbox.slot import interpreter
from tests.curation.verify.sandbox.rungs import ISOLATING, TRY, Runner, assert_refused, attempts, on
from tests.waiting import wait_until


@on(*ISOLATING)
def test_the_home_cannot_be_listed(python: Runner) -> None:
    ran = python(f"{TRY}\nattempt('listdir', lambda: os.listdir({str(Path.cwd())!r}))")
    assert b"curation" not in ran.stdout, ran


@on(*ISOLATING)
def test_a_host_file_of_the_same_user_stays_as_it_is(python: Runner, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.write_text("kept")
    before = own.stat()
    acts = ["os.setxattr(p, 'user.x', b'1')", "os.truncate(p, 0)", "os.utime(p)"]
    acts += ["os.unlink(p)", "os.rename(p, p + '2')", "open(p, 'a').write('x')", "os.chown(p, 1, 1)", "os.link(p, 'l')"]
    assert_refused(python(attempts(acts, f"p = {str(own)!r}")), len(acts))
    python(attempts(["os.chmod(p, 0o777)", "os.utime(p, (1, 1))"], f"p = {str(own)!r}"))
    after = own.stat()
    assert own.read_text() == "kept"
    assert (before.st_mode, before.st_mtime, before.st_ctime) == (after.st_mode, after.st_mtime, after.st_ctime)


SHUT = """
import os
print(oct(os.stat('.').st_mode), os.listdir('.'), open('f', 'x').write('x'), open('/dev/null').read(), flush=True)
os.makedirs('a/b/c')
places = ['a/b/c', 'a/b', 'a', 'f', '.', '/tmp', '/', '/dev', '/dev/null', '/dev/full', os.__file__, '/usr/lib']
places += [{own!r}, 0, 1, 2, *(f'/proc/self/{{w}}' for w in ('exe', 'fd/0', 'fd/1', 'comm', 'cwd', 'root', 'maps'))]
for mode in (0o7777, 0o4755, 0):
    for place in places:
        for act in (lambda: os.chmod(place, mode), lambda: os.utime(place, (9, 9)), lambda: os.chown(place, -1, 0)):
            try: act()
            except (OSError, TypeError): pass
"""
SHUT_CPP = r"""
#include <fcntl.h>
#include <initializer_list>
#include <stdio.h>
#include <sys/stat.h>
int main() {
    struct stat s; stat(".", &s);
    printf("%o %d\n", s.st_mode, open("f", O_CREAT | O_EXCL | O_WRONLY, 0600));
    for (int mode : {07777, 0}) for (auto p : {".", "f", "/proc/self/exe", "/dev/null", "/tmp", "/"})
        chmod(p, mode);
    for (int f : {0, 1, 2}) fchmod(f, 0);
}"""


@contextlib.contextmanager
def _unchanged(*places: str) -> Iterator[None]:
    """See that these stay as they are; what does not is mended at once, for others use this machine."""
    before = {place: os.stat(place) for place in places}
    yield
    changed = []
    for place, was in before.items():
        now = os.stat(place)
        if was.st_mode != now.st_mode or (now.st_mtime != was.st_mtime and place != "/tmp"):
            changed.append(place)
            os.chmod(place, stat.S_IMODE(was.st_mode))
            os.utime(place, ns=(was.st_atime_ns, was.st_mtime_ns))
    assert not changed


@on(*ISOLATING)
def test_modes_that_a_test_takes_away_harm_no_other(box: Sandbox, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.write_text("kept")
    compiled = box.compile({"m.cpp": SHUT_CPP.encode()}, ["g++", "-std=c++17", "m.cpp"])
    assert compiled.artifact is not None, compiled.log
    with _unchanged("/tmp", "/", "/dev", "/dev/null", "/dev/full", os.__file__, "/usr/lib", interpreter(), str(own)):
        runs = list(box.run_python(SHUT.format(own=str(own)), [b""] * 6, Limits()))
        more = list(box.run_binary(compiled.artifact, [b""] * 6, Limits()))
    for each in (runs, more):
        assert {ran.stdout for ran in each} == {each[0].stdout} != {b""}, each[-1]
        may = {Ending.EXITED, Ending.OUTPUT_LIMIT} if box.rung == "landlock" else {Ending.EXITED}  # what is shut counts
        assert {ran.ending for ran in each} <= may, each[-1]


@on(*ISOLATING, quick=True)
def test_the_next_test_finds_nothing_of_the_last(box: Sandbox) -> None:
    leave = """
import os, sys, builtins
print(sorted(os.listdir(".")), hasattr(builtins, "mark"), "evil" in sys.modules)
builtins.mark = 1; sys.modules["evil"] = sys
try:
    open("left", "w").write("x"); os.mkdir("d"); open("d/e", "w"); os.mkdir("d/f", 0)
except OSError: pass
"""
    runs = list(box.run_python(leave, [b"", b"", b""], Limits(cpu_s=1)))
    assert [ran.stdout for ran in runs] == [b"[] False False\n"] * 3


NESTS = {
    "in each other": "import os\nfor _ in range(1500):\n    os.mkdir('d'); os.chdir('d')\nopen('f', 'w').close()",
    "with names of any length": (
        "import os\nfor n in range(300):\n    os.mkdir('x' * 255); os.chdir('x' * 255); open('f', 'w').close()"
    ),
    "side by side": "import os\nfor n in range(3000): os.makedirs(f'{n}/a/b', 0o300)",
    "unreadable": "import os\nos.umask(0o777)\nos.mkdir('a')\nos.mkdir('b')\nos.symlink('/', 'l')\nos.mkfifo('p')",
    "linked in a circle": "import os\nos.mkdir('a')\nos.symlink('..', 'a/up')\nos.symlink('a', 'b')\nos.link('b', 'c')",
}


@pytest.mark.parametrize("way", NESTS)
def test_what_a_program_leaves_is_its_own_fault(box: Sandbox, way: str) -> None:
    source = f"import os\nprint(os.listdir('.'))\nif input():\n{textwrap.indent(NESTS[way], '    ')}"
    runs = list(box.run_python(source, [b"x\n", b"\n", b"x\n", b"\n"], Limits(cpu_s=4)))
    assert Ending.BROKEN not in {ran.ending for ran in runs}, runs
    assert [ran.stdout for ran in runs] == [b"[]\n"] * 4


CROWDS = {
    "folders": "os.mkdir(str(n))",
    "folders within folders": "os.makedirs(f'{n}/a')",
    "folders in one": "os.mkdir('d') if n == 0 else os.mkdir(f'd/{n}')",
    "files with long names": "open(str(n) * (240 // len(str(n))), 'w').close()",
    "links": "os.symlink('/', str(n))",
    "holes": "open(str(n), 'w').truncate(1 << 20)",
}


@pytest.mark.parametrize("kind", CROWDS)
def test_a_crowd_that_is_left_keeps_nobody_waiting(box: Sandbox, kind: str) -> None:
    """A disk takes milliseconds to remove a folder; the slot goes before that, and what lies in it later."""
    source = f"import os\nprint(len(os.listdir('.')))\nfor n in range(1000 if input() else 0): {CROWDS[kind]}"
    began = time.monotonic()
    runs = list(box.run_python(source, [b"x\n", b"\n", b"x\n", b"\n"], Limits(cpu_s=4)))
    assert [(ran.ending, ran.stdout) for ran in runs] == [(Ending.EXITED, b"0\n")] * 4, runs
    assert time.monotonic() - began < 20 + sum(ran.wall_s for ran in runs)


def test_a_folder_that_takes_too_long_is_emptied_later(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    for number in range(9):
        (scratch / f"{number}" / "a").mkdir(parents=True)
    with pytest.raises(TimeoutError, match="too much was left"):
        folder.empty(str(scratch), 0.0)
    assert scratch.is_dir()
    slots._empty_later(str(scratch))
    wait_until(lambda: not scratch.exists())


def test_a_file_that_goes_meanwhile_hides_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that makes and removes files all the time has what it keeps counted all the same."""

    (tmp_path / "kept").write_bytes(bytes(1 << 20))
    (tmp_path / "gone").touch()
    with os.scandir(tmp_path) as entries:
        seen = sorted(entries, key=lambda entry: entry.name)
    (tmp_path / "gone").unlink()
    monkeypatch.setattr(folder, "_entries", lambda *_: seen)
    assert folder.used_bytes(str(tmp_path), apart=False) >= 1 << 20


def test_files_with_names_of_any_length_are_found_too(box: Sandbox) -> None:
    for count, length in ((2, 255), (1, 1), (1, 4), (1, 5), (1, 255)):
        names = f"print(len(os.listdir('.')))\nfor name in 'ab'[:{count}]: open(name * {length}, 'w').close()"
        runs = box.run_python(f"import os\n{names}", [b"", b"", b""], Limits(cpu_s=1))
        assert [ran.stdout for ran in runs] == [b"0\n"] * 3


def test_a_link_in_a_folders_place_has_no_host_counted(python: Runner) -> None:
    swapping = """
        import ctypes, os, time
        os.mkdir("a"), os.symlink("/", "b")
        swap = ctypes.CDLL(None).renameat2
        until = time.process_time() + 0.3
        while time.process_time() < until:
            for _ in range(100): swap(-100, b"a", -100, b"b", 2)
    """
    ran = python(textwrap.dedent(swapping), limits=Limits(cpu_s=2.0))
    assert ran.ending in {Ending.EXITED, Ending.OUTPUT_LIMIT}, ran


def test_a_crowd_of_files_and_a_long_list_of_names_are_too_much_before_they_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        (tmp_path / f"{number}").touch()
    for name, fits in (("MAX_FILES", 5), ("MAX_LIST_BYTES", tmp_path.stat().st_size)):
        with monkeypatch.context() as patch:
            patch.setattr(folder, name, fits)
            assert folder.used_bytes(str(tmp_path), apart=False) == 5 * folder.BLOCK
            patch.setattr(folder, name, fits - 1)
            assert folder.used_bytes(str(tmp_path), apart=False) == folder.UNREADABLE


@on(*ISOLATING)
def test_the_parents_environment_is_not_seen(python: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOLDILOCKS_SECRET", "hunter2")
    ran = python(attempts(["open('/proc/self/environ').read()"], "print(dict(os.environ))"))
    assert b"hunter2" not in ran.stdout
    assert b"API" not in ran.stdout


@on(*ISOLATING)
def test_no_descriptor_is_inherited(python: Runner, tmp_path: Path) -> None:
    with open(tmp_path / "held", "w") as held:
        os.set_inheritable(held.fileno(), True)
        source = "import os\nfor fd in range(3, 4096):\n    try: os.fstat(fd); print(fd)\n    except OSError: pass"
        assert python(source).stdout == b""


@on(*ISOLATING)
def test_no_other_input_is_in_memory(box: Sandbox) -> None:
    source = """
import gc, sys
seen = [o for o in gc.get_objects() if isinstance(o, (list, dict, tuple))]
found, frame = [], sys._getframe()
while frame: found.append(str(frame.f_locals)); frame = frame.f_back
word = "".join(reversed("OWT-FO-TERCES"))
print(any(word in text for text in found), any(word in str(x)[:2000] for x in seen if x is not found))
"""
    first, _ = box.run_python(source, [b"one", b"SECRET-OF-TWO"], Limits(cpu_s=5))
    assert first.stdout == b"False False\n", first


def test_extra_files_are_seen_and_gone_afterwards(box: Sandbox) -> None:
    source = "import os; print(open('answer').read(), sorted(os.listdir('.')))"
    runs = list(box.run_python(source, [b"", b""], Limits(), files=[{"answer": b"1"}, {"answer": b"2", "b": b""}]))
    assert [ran.stdout for ran in runs] == [b"1 ['answer']\n", b"2 ['answer', 'b']\n"]


def test_a_files_name_does_not_lead_out_of_the_folder(box: Sandbox, tmp_path: Path) -> None:
    for name in ("../out", "a/../../out", f"{tmp_path}/out", "", ".", "..", "a//b", "a/", "x\0y"):
        (ran,) = box.run_python("print(1)", [b""], Limits(), files={name: b"x"})
        compiled = box.compile({"main.cpp": b"int main(){}", name: b"x"}, ["g++", "main.cpp"])
        for end in (ran, compiled.run):
            assert end.ending is Ending.BROKEN, name
            assert "which is no path in the program's folder" in end.note
    assert not (tmp_path / "out").exists()
    assert not Path(tempfile.gettempdir(), "out").exists()
