"""The host is the same afterwards, the judge stands a crowd, and load changes nothing."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from curation.records import VerifierError
from curation.verify.sandbox import Ending, Limits, Sandbox
from curation.verify.sandbox.box import Slot


def test_the_chosen_rung_is_told() -> None:
    with Sandbox(workers=1) as box:
        assert box.rung in {"namespaces", "user-namespace", "landlock"}
        assert box.rung in box.description


def test_no_isolation_must_be_asked_for_by_name() -> None:
    with Sandbox(workers=1, rung="none") as box:
        assert "NO ISOLATION" in box.description
        assert [ran.stdout for ran in box.run_python("print(input())", [b"1"], Limits())] == [b"1\n"]


def test_an_unknown_rung_is_refused() -> None:
    with pytest.raises(VerifierError, match="no isolation is called 'docker'"):
        Sandbox(rung="docker")


def test_a_closed_sandbox_says_so() -> None:
    box = Sandbox(workers=1)
    box.close()
    with pytest.raises(VerifierError, match="closed"):
        list(box.run_python("print(1)", [b""], Limits()))


def test_the_host_is_unchanged_afterwards() -> None:
    temporary = Path(tempfile.gettempdir())
    me = psutil.Process()

    def state() -> tuple[int, set[int]]:
        return len(os.listdir("/proc/self/fd")), {child.pid for child in me.children(recursive=True)}

    before = state()
    with Sandbox(workers=1) as box:
        box.compile({"m.cpp": b"int main(){}"}, ["g++", "m.cpp"])
        list(box.run_python("open('/tmp/left', 'w').write('x' * 9999)", [b""] * 3, Limits()))
        list(box.run_python("while True: pass", [b""], Limits(cpu_s=0.2)))
    assert state() == before
    assert not list(temporary.glob("left"))


def test_slots_die_with_a_judge_that_is_killed() -> None:
    code = "import time\nfrom curation.verify.sandbox import *\nbox = Sandbox(workers=1)\n"
    code += "print(next(iter(box._idle['std'])).process.pid, flush=True)\n"
    code += "list(box.run_python('import time; time.sleep(600)', [b''], Limits(wall_s=600)))"
    judge = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert judge.stdout is not None
    with judge.stdout:
        slot = psutil.Process(int(judge.stdout.readline()))
    judge.kill()
    judge.wait()
    psutil.wait_procs([slot], timeout=30)
    assert not slot.is_running() or slot.status() == psutil.STATUS_ZOMBIE


def test_a_slot_that_is_killed_is_replaced() -> None:
    with Sandbox(workers=1) as box:
        (slot,) = box._idle["std"]
        assert isinstance(slot, Slot)
        slot.process.kill()
        slot.process.wait()
        assert [ran.stdout for ran in box.run_python("print(input())", [b"1", b"2"], Limits())] == [b"1\n", b"2\n"]


def test_two_hundred_programs_at_once(strongest: Sandbox) -> None:
    dice = random.Random(7)
    kinds = [
        "print({n})",
        "1/0",
        "import os; os.abort()",
        "def f(): f()\nf()",
        "while True: pass",
        "x = ('",
        "exit({n} % 7)",
    ]
    kinds += [
        "b = []\nwhile True: b.append(b'x' * (1 << 20))",
        "import os, signal; os.kill(os.getppid(), 9)",
        "while True: os",
    ]
    programs = [dice.choice(kinds).format(n=number) for number in range(200)]
    limits = Limits(cpu_s=0.1, wall_s=5, memory_mb=60)
    with ThreadPoolExecutor(200) as threads:
        runs = list(threads.map(lambda source: next(iter(strongest.run_python(source, [b""], limits))), programs))
    assert not [ran for ran in runs if ran.ending is Ending.BROKEN]
    told = [(number, ran) for number, ran in enumerate(runs) if programs[number].startswith("print")]
    assert all(ran.stdout == b"%d\n" % number for number, ran in told)


def test_stop_ends_the_tests_early(strongest: Sandbox) -> None:
    runs = strongest.run_python(
        "exit(int(input()))", [b"0", b"1", b"0"], Limits(), stop=lambda _, ran: ran.exit_code != 0
    )
    assert [ran.exit_code for ran in runs] == [0, 1]


def test_endings_stay_the_same_under_load(strongest: Sandbox) -> None:
    limits = Limits(cpu_s=0.5, wall_s=1.0)
    programs = {
        "import time\nwhile time.process_time() < 0.2: pass": Ending.EXITED,
        "while True: pass": Ending.CPU_LIMIT,
        "import time; time.sleep(30)": Ending.WALL_LIMIT,
    }
    burn = [sys.executable, "-c", "while True: pass"]
    load = [subprocess.Popen(burn) for _ in range(8 * len(os.sched_getaffinity(0)) // 2)]
    try:
        for source, ending in programs.items():
            (ran,) = strongest.run_python(source, [b""], limits)
            assert ran.ending is ending, ran
    finally:
        for process in load:
            process.kill()
            process.wait()


def test_calls_share_the_slots(strongest: Sandbox) -> None:
    seen: list[bytes] = []

    def work(number: int) -> None:
        seen.extend(ran.stdout for ran in strongest.run_python("print(input())", [b"%d" % number] * 3, Limits()))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(12)]
    started = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert time.monotonic() >= started
    assert sorted(seen) == sorted(b"%d\n" % number for number in range(12) for _ in range(3))
