# ruff: noqa: E501  programs stand on one line each
"""Attacks by programs that may start processes: they reach nothing but their own, and all of these count."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from curation.records import VerifierError
from curation.verify.sandbox import Ending, Limits, RunResult, Sandbox
from tests.curation.verify.sandbox.rungs import ISOLATING, Runner, on
from tests.waiting import wait_until

FORKS = Limits(cpu_s=2.0, wall_s=20.0, memory_mb=200)


@pytest.fixture
def forking(box: Sandbox, python: Runner) -> Runner:
    """Run a program that may start processes, then one that looks for what it left."""
    if not box.forks:
        pytest.skip("no program may start processes there")

    def run(source: str, limits: Limits = FORKS) -> RunResult:
        return python(source, limits=limits, forks=True)

    return run


def test_a_process_can_be_started(forking: Runner) -> None:
    ran = forking("import os\npid = os.fork()\nif not pid: os._exit(5)\nprint(os.waitpid(pid, 0)[1] >> 8)")
    assert (ran.ending, ran.stdout) == (Ending.EXITED, b"5\n"), ran


@on(*ISOLATING)
def test_where_it_may_not_it_is_refused(box: Sandbox, python: Runner) -> None:
    assert b"PermissionError" in python("import os\nos.fork()", forks=not box.forks).stderr


@on(*ISOLATING)
def test_what_is_left_behind_ends(box: Sandbox, forking: Runner) -> None:
    source = (
        "import os, time\nfor _ in range(5):\n    if not os.fork():\n        os.fork(); time.sleep(600)\nprint('done')"
    )
    assert forking(source).stdout == b"done\n"
    look = "import os\nprint([p for p in os.listdir('/proc') if p.isdigit() and int(p) != os.getpid()])"
    (ran,) = box.run_python(
        f"try:\n    {look.replace(chr(10), chr(10) + '    ')}\nexcept OSError: print([])", [b""], FORKS
    )
    assert len(eval(ran.stdout)) <= 2, "the supervisor, and who forks the tests"


@pytest.mark.slow
def test_the_cpu_time_of_all_counts(forking: Runner) -> None:
    waited = "import os\npids = [os.fork() for _ in range(1)]\nif 0 in pids:\n    while True: pass\nos.wait()"
    left = "import os\nif os.fork() == 0:\n    if os.fork() == 0:\n        while True: pass\n    os._exit(0)\nos.wait()\nimport time; time.sleep(600)"
    many = "import os, time\nfor _ in range(40):\n    if not os.fork():\n        while time.process_time() < 0.1: pass\n        os._exit(0)\n    os.wait()"
    for source in (waited, left, many):
        ran = forking(source, Limits(cpu_s=0.5, wall_s=20.0, memory_mb=200))
        assert ran.ending is Ending.CPU_LIMIT, source


HELD = "import os, time\n{before}\nfor _ in range({count}):\n    if not os.fork():\n        {inside}\n        time.sleep({held})\n        os._exit(0)\nfor _ in range({count}): os.wait()\nprint('done')"
IN_KERNEL = {
    "sockets": ("import socket", "kept = []\n        while len(kept) < 100:\n            kept.append(socket.socketpair()); kept[-1][0].setblocking(False)\n            try:\n                while True: kept[-1][0].send(b'x' * 65536)\n            except BlockingIOError: pass"),
    "page tables": ("import mmap", "m = mmap.mmap(-1, 6 << 30, flags=0x4022, prot=mmap.PROT_READ)\n        sum(m[i] for i in range(0, len(m), 2 << 20))"),
    "mappings": ("import ctypes\nmap, long = ctypes.CDLL(None).mmap, ctypes.c_long\nfor i in range(60000): map(long(0), long(4096), i % 2 * 3, 0x22, -1, long(0))", "pass"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("what", IN_KERNEL)
def test_what_the_kernel_holds_for_all_counts(forking: Runner, what: str) -> None:
    """Sockets took 2,985 MB under a limit of 300, page tables 2,300: neither is resident memory."""
    before, inside = IN_KERNEL[what]
    ran = forking(HELD.format(before=before, inside=inside, count=40, held=90), Limits(cpu_s=8, wall_s=120))
    assert ran.ending is Ending.MEMORY_LIMIT, ran


def test_pipes_and_sockets_of_a_pool_pass(forking: Runner) -> None:
    """40 processes that have a pair of sockets each, as `multiprocessing.Pipe` makes them.

    They hold 42 MB; what they share was counted for each if the sockets alone took the sum over the limit.
    """
    pool = HELD.format(before="import socket", inside="a = socket.socketpair()", count=40, held=0.3)
    for memory_mb in range(100, 200, 20):
        ran = forking(pool, Limits(cpu_s=2.0, wall_s=20.0, memory_mb=memory_mb))
        assert ran.stdout == b"done\n", ran


def test_sleepers_do_not_stretch_wall_time_by_their_number(forking: Runner) -> None:
    """The waits of all were summed up: 2 s became 20."""
    source = "import os, time\nfor _ in range(100):\n    if not os.fork():\n        while True: time.sleep(0.02)\ntime.sleep(60)"
    ran = forking(source, Limits(cpu_s=8, wall_s=2))
    assert ran.ending is Ending.WALL_LIMIT
    assert ran.wall_s < 8, ran


def test_the_memory_of_all_counts_once(forking: Runner) -> None:
    take = "import os, time\n{before}\nfor _ in range(4):\n    if not os.fork():\n        {inside}\n        os._exit(0)\nfor _ in range(4): os.wait()\nprint('done')"
    shared = take.format(before="b = b'x' * (120 << 20)", inside="time.sleep(0.3)")
    assert forking(shared).stdout == b"done\n", "what they share is counted once"
    each = take.format(before="", inside="b = b'x' * (80 << 20); time.sleep(60)")  # none ends before all have theirs
    assert forking(each, Limits(cpu_s=8, wall_s=30)).ending is Ending.MEMORY_LIMIT


NAMED = "import ctypes, os, signal, time\nctypes.CDLL(None).prctl(15, {name!r}.encode())\n"
DAEMON = """
for number in range(1, 65):
    try: signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError): pass
if os.fork() == 0:
    for act in (os.setsid, lambda: os.setpgid(0, 0), lambda: os.setpgrp()):
        try: act()
        except OSError: pass
    if os.fork():
        os._exit(0)
    while True:
        try: os.fork() or time.sleep(600)
        except OSError: time.sleep(0.01)
"""
"""Leaves the session if it can, ends its first child, and goes on among those, deaf to signals, keeping all descriptors."""


def _alive(name: str) -> list[int]:
    """Return the processes of the host that a program has named so."""
    found = []
    for place in Path("/proc").glob("[0-9]*/comm"):
        try:
            found += [int(place.parent.name)] * (place.read_text().strip() == name)
        except OSError:
            continue
    return found


@pytest.fixture
def name() -> str:
    return f"left-{secrets.token_hex(4)}"


@on(*ISOLATING)
def test_a_daemon_ends_with_its_test(forking: Runner, name: str) -> None:
    ran = forking(NAMED.format(name=name) + DAEMON + "print('done')", Limits(cpu_s=5.0, wall_s=20.0))
    assert (ran.ending, ran.stdout) == (Ending.EXITED, b"done\n"), ran
    assert _alive(name) == []


@on(*ISOLATING)
def test_many_daemons_end_and_none_harms_its_judge(box: Sandbox, forking: Runner, name: str) -> None:
    """Their children go at any moment, since who is deaf to SIGCHLD need not collect them."""
    assert forking("print(1)").stdout == b"1\n", "skips where there are no processes"
    source = NAMED.format(name=name) + DAEMON + "print('done')"
    ended = [(ran.ending, ran.stdout) for ran in box.run_python(source, [b""] * 40, FORKS, forks=True)]
    assert ended == [(Ending.EXITED, b"done\n")] * 40
    assert _alive(name) == []


@on(*ISOLATING)
def test_a_fork_bomb_stays_small_and_ends_with_its_test(forking: Runner, name: str) -> None:
    source = NAMED.format(name=name) + "while True:\n    try: os.fork()\n    except OSError: pass"
    ran = forking(source, Limits(cpu_s=1, wall_s=10, memory_mb=200, processes=32))
    assert ran.ending in {Ending.CPU_LIMIT, Ending.SIGNALED, Ending.MEMORY_LIMIT}, ran
    assert _alive(name) == []


BINARY_BOMB = """
#include <sys/prctl.h>
#include <unistd.h>
int main() { prctl(PR_SET_NAME, "%s"); for (;;) if (vfork() == 0) for (;;) fork(); }
"""


@pytest.mark.slow
def test_a_bomb_in_a_binary_ends_with_its_test(box: Sandbox, forking: Runner, name: str) -> None:
    compiled = box.compile({"m.cpp": (BINARY_BOMB % name).encode()}, ["g++", "m.cpp"])
    assert compiled.artifact is not None, compiled.log
    (ran,) = box.run_binary(compiled.artifact, [b""], FORKS, forks=True)
    assert ran.ending in {Ending.CPU_LIMIT, Ending.SIGNALED, Ending.MEMORY_LIMIT}, ran
    assert _alive(name) == []
    assert forking("print(1)").stdout == b"1\n"


@on(*ISOLATING)
@pytest.mark.parametrize("ended", ["closed", "the supervisor killed"])
def test_what_it_started_ends_with_the_box(forking: Runner, box: Sandbox, name: str, ended: str) -> None:
    with Sandbox(workers=1, rung=box.rung) as other:
        source = NAMED.format(name=name) + DAEMON + "time.sleep(600)"
        limits = Limits(cpu_s=60.0, wall_s=600.0)

        def run() -> None:
            with contextlib.suppress(VerifierError):
                list(other.run_python(source, [b""], limits, forks=True))

        thread = threading.Thread(target=run)
        thread.start()
        wait_until(lambda: len(_alive(name)) > 4)
        (slot,) = other._busy
        if ended == "closed":
            other.close()
        else:
            supervisor = psutil.Process(slot.process.pid)
            supervisor = (supervisor.children() or [supervisor])[0] if box.rung != "landlock" else supervisor
            first = _alive(name)
            supervisor.send_signal(signal.SIGKILL)
            wait_until(lambda: not {*first} & {*_alive(name)})
            other.close()
        thread.join()
        wait_until(lambda: _alive(name) == [])


JUDGE = """
import sys
from curation.verify.sandbox import Limits, Sandbox
with Sandbox(workers=1, rung=sys.argv[1]) as box:
    list(box.run_python(sys.argv[2], [b""], Limits(cpu_s=60.0, wall_s=600.0), forks=True))
"""


@on(*ISOLATING)
def test_what_it_started_ends_with_the_judge(forking: Runner, box: Sandbox, name: str) -> None:
    source = NAMED.format(name=name) + DAEMON + "time.sleep(600)"
    judge = subprocess.Popen(
        [sys.executable, "-c", JUDGE, box.rung, source], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )
    wait_until(lambda: len(_alive(name)) > 4, judge)
    judge.kill()
    judge.wait()
    wait_until(lambda: _alive(name) == [])


@on(*ISOLATING)
def test_no_process_of_another_slot_is_signalled(forking: Runner, box: Sandbox) -> None:
    with Sandbox(workers=1, rung=box.rung) as other:
        list(other.run_python("print(1)", [b""], FORKS))
        pids = [process.pid for process in (psutil.Process(), *psutil.Process().children(recursive=True))]
        acts = "    for number in (0, 19, 9):\n        try: os.kill(pid, number); print(pid)\n        except OSError: pass\n"
        assert forking(f"import os\nfor pid in {pids}:\n{acts}").stdout == b""
        assert [ran.stdout for ran in other.run_python("print(1)", [b""], FORKS)] == [b"1\n"]
