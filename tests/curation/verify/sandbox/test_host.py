"""The host is the same afterwards, the judge stands a crowd, and load changes nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from curation.records import VerifierError
from curation.verify.sandbox import RUNGS, Limits, Sandbox
from curation.verify.sandbox.box import Slot
from curation.verify.sandbox.slot import SandboxView, SlotError, build_view, numpy_site_packages
from tests.waiting import wait_gone, wait_until

FIRST_QUICKLY = [RUNGS[0], *(pytest.param(rung, marks=pytest.mark.slow) for rung in RUNGS[1:])]


def test_a_rung_is_named_and_no_isolation_must_be_asked_for() -> None:
    with Sandbox(workers=1) as box:
        assert box.rung in RUNGS[:-1]
        assert box.rung in box.description
    with Sandbox(workers=1, rung="none") as box:
        assert "NO ISOLATION" in box.description
        assert [ran.stdout for ran in box.run_python("print(input())", [b"1"], Limits())] == [b"1\n"]
    with pytest.raises(VerifierError, match="no isolation is called 'docker'"):
        Sandbox(rung="docker")


def test_a_closed_sandbox_says_so() -> None:
    box = Sandbox(workers=1)
    box.close()
    with pytest.raises(VerifierError, match="closed"):
        list(box.run_python("print(1)", [b""], Limits()))


@pytest.mark.slow
def test_the_host_is_unchanged_afterwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left = Path("/tmp/left-by-a-program")
    me = psutil.Process()

    def work() -> None:
        with Sandbox(workers=1) as box:
            box.compile({"m.cpp": b"int main(){}"}, ["g++", "m.cpp"])
            list(box.run_python(f"open({str(left)!r}, 'w').write('x' * 9999)", [b""] * 3, Limits()))
            list(box.run_python("while True: pass", [b""], Limits(cpu_s=0.2)))
            list(box.run_python("b = b'x' * (100 << 20); print(len(b))", [b""], Limits(memory_mb=200)))

    def state() -> tuple[int, set[int], set[str], bool]:
        children = {child.pid for child in me.children(recursive=True)}
        return len(os.listdir("/proc/self/fd")), children, set(os.listdir(tmp_path)), left.exists()

    work()  # what is imported and allocated once
    before, memory = state(), me.memory_info().rss
    work()
    assert state() == before == (before[0], before[1], set(), False)
    assert me.memory_info().rss - memory < 16 << 20


@pytest.mark.parametrize("rung", FIRST_QUICKLY)
def test_nothing_stays_of_a_judge_that_is_killed(rung: str, tmp_path: Path) -> None:
    code = "import time\nfrom curation.verify.sandbox import *\nfrom curation.records import VerifierError\n"
    code += (
        f"try: box = Sandbox(workers=1, rung={rung!r})\nexcept VerifierError: print(0, flush=True); raise SystemExit\n"
    )
    code += "print(next(iter(box._idle['std'])).process.pid, flush=True)\n"
    code += "limits, source = Limits(wall_s=600), 'import time; time.sleep(600)'\n"
    code += "print(next(box.run_python(source, [b''], limits, files={'f': b''})))"
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    judge = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment)
    assert judge.stdout is not None
    with judge.stdout:
        number = int(judge.stdout.readline())
    if number == 0:
        judge.wait()
        pytest.skip(f"rung {rung!r} does not work here")
    slot = psutil.Process(number)
    wait_until(lambda: len(slot.children(recursive=True)) >= 2, judge)  # the program runs
    below = slot.children(recursive=True)
    judge.kill()
    judge.wait()
    wait_gone([slot, *below])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("rung", [RUNGS[0], pytest.param("none", marks=pytest.mark.slow)])
def test_what_the_judge_ignores_and_blocks_is_not_handed_on(rung: str) -> None:
    """As where it runs in the background or by nohup: programs are to end by these signals all the same."""
    code = "import signal\nfrom curation.verify.sandbox import Limits, Sandbox\n"
    code += "from curation.records import VerifierError\n"
    code += "for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1): signal.signal(number, signal.SIG_IGN)\n"
    code += "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])\n"
    code += f"try: box = Sandbox(workers=1, rung={rung!r})\nexcept VerifierError: raise SystemExit('refused')\n"
    code += "ends = 'import os\\nos.kill(os.getpid(), int(input()))'\n"
    code += "with box: print(*(r.signal for r in box.run_python(ends, [b'1', b'3', b'10', b'15'], Limits())))"
    judge = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    if "refused" in judge.stderr:
        pytest.skip(f"rung {rung!r} does not work here")
    assert judge.stdout == "1 3 10 15\n", judge.stderr


def test_a_slot_that_is_killed_is_replaced() -> None:
    with Sandbox(workers=1) as box:
        (slot,) = box._idle["std"]
        assert isinstance(slot, Slot)
        slot.process.kill()
        slot.process.wait()
        assert [ran.stdout for ran in box.run_python("print(input())", [b"1", b"2"], Limits())] == [b"1\n", b"2\n"]


def test_an_iterator_that_is_closed_ends_the_tests_early(strongest: Sandbox) -> None:
    source = "import time\nif input() == '1': time.sleep(600)"
    runs = strongest.run_python(source, [b"0", b"1"], Limits(wall_s=600))
    assert next(iter(runs)).exit_code == 0
    runs.close()  # type: ignore[attr-defined]
    assert [ran.exit_code for ran in strongest.run_python("", [b""], Limits())] == [0]


@pytest.mark.parametrize("rung", ["namespaces", pytest.param("landlock", marks=pytest.mark.slow)])
def test_packages_below_the_temporary_folder_are_whole(
    rung: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The private /tmp covers them; what numpy imports late must be found all the same."""
    packages = numpy_site_packages()
    assert packages is not None
    for name in ("numpy", "numpy.libs"):
        if (packages / name).is_dir():
            shutil.copytree(packages / name, tmp_path / name, ignore=shutil.ignore_patterns("tests", "__pycache__"))
    monkeypatch.setattr("curation.verify.sandbox.slot.numpy_site_packages", lambda: tmp_path)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.geteuid() and folder != Path("/") and folder != Path(tempfile.gettempdir()):
            folder.chmod(0o755)
    source = "import numpy as np\nprint(np.fft.fft([1, 0]).real.tolist(), np.random.RandomState(7).randint(9) >= 0)\n"
    source += "import numpy.ma, numpy.polynomial\nfrom numpy.random import default_rng\nprint(np.__file__)"
    try:
        box = Sandbox(workers=1, rung=rung)
    except VerifierError as error:
        pytest.skip(f"{error}")
    with box:
        (ran,) = box.run_python(source, [b""], Limits(), numpy=True)
    assert ran.stdout.startswith(b"[1.0, 1.0] True\n"), ran
    assert str(tmp_path).encode() in ran.stdout


def test_what_is_hidden_is_so_below_the_temporary_folder_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interpreter may lie there, with packages of its own."""
    hidden = tmp_path / "lib" / "site-packages"
    hidden.mkdir(parents=True)
    for folder in (hidden, hidden.parent):
        (folder / "there.py").touch()

    def with_more(kind: str, tools: Path | None) -> SandboxView:
        view = build_view(kind, tools)
        return replace(view, binds=(*view.binds, str(hidden.parent)), hidden=(*view.hidden, str(hidden)))

    with Sandbox(workers=1) as box:
        if box.rung == "landlock":
            pytest.skip("no mounts here")
    monkeypatch.setattr("curation.verify.sandbox.slot.build_view", with_more)
    with Sandbox(workers=1, rung=box.rung) as box:
        source = f"import os\nprint(sorted(os.listdir('/packages{hidden.parent}')), os.listdir('/packages{hidden}'))"
        (ran,) = box.run_python(source, [b""], Limits())
    assert ran.stdout == b"['site-packages', 'there.py'] []\n", ran


@pytest.mark.parametrize("rung", RUNGS)
def test_a_thread_that_waits_for_a_slot_is_freed_by_its_end(rung: str) -> None:
    try:
        box = Sandbox(workers=1, rung=rung)
    except VerifierError as error:
        pytest.skip(str(error))
    waiting = Limits(cpu_s=60.0, wall_s=600.0)

    def run() -> str:
        try:
            (ran,) = box.run_python("import time; time.sleep(600)", [b""], waiting)
        except VerifierError as error:
            return str(error)
        return ran.note

    with box, ThreadPoolExecutor(1) as threads:
        ended = threads.submit(run)
        wait_until(lambda: bool(box._busy))
        (slot,) = box._busy
        box.close()
        assert "closed" in ended.result(60)
        assert slot.control.fileno() == -1
        with pytest.raises(SlotError, match="the supervisor"):
            slot.ask({"op": "end"}, [])
