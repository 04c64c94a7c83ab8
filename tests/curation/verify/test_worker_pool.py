"""Workers: hard limits, order, laziness, death with the parent; from any thread."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path
from typing import Any

import psutil
import pytest

from curation.records import Outcome, VerifierError
from curation.verify.worker import Guard
from curation.verify.worker_pool import WorkerLimits, WorkerPool
from tests.places import ROOT
from tests.waiting import wait_gone, wait_until

HERE = "tests.curation.verify.test_worker_pool"


def echo(job: Any, guard: Guard) -> Any:
    return job


def process_id(job: Any, guard: Guard) -> int:
    return os.getpid()


def misbehave(job: dict[str, Any], guard: Guard) -> dict[str, str]:
    """Do each named thing as a step; report how each went."""
    results = {}
    for position, deed in enumerate(job["deeds"]):
        failed = guard.enter(str(position))
        if failed is not None:
            results[f"{position} {deed}"] = failed.value
            continue
        _do(deed)
        guard.leave()
        results[f"{position} {deed}"] = "done"
    return results


def _do(deed: str) -> None:
    if deed.startswith("touch "):
        Path(deed.removeprefix("touch ")).touch()
    if deed == "spin":
        while True:
            pass
    if deed == "sleep":
        time.sleep(3600)
    if deed == "power":
        pow(9, 9**9**2)
    if deed == "memory":
        bytearray(8 << 30)
    if deed == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if deed == "exit":
        os._exit(3)
    if deed == "raise":
        raise ValueError("a bad thing")
    if deed == "print":
        print("noise on stdout " * 10_000)


def test_results_come_in_order_and_jobs_are_read_lazily() -> None:
    read: list[int] = []

    def jobs() -> Iterator[int]:
        for number in count():
            read.append(number)
            yield number

    with WorkerPool(f"{HERE}:echo", 2) as pool:
        found = [reply.value for reply in islice(pool.map(jobs()), 100)]
    assert found == list(range(100))
    assert len(read) <= 100 + 4 * 2 + 1


BAD = {"spin": "timeout", "power": "timeout"} | dict.fromkeys(("memory", "crash", "exit", "raise"), "broken")


@pytest.mark.parametrize(("deed", "outcome"), BAD.items())
def test_a_bad_step_is_written_off_and_its_neighbours_are_kept(deed: str, outcome: str) -> None:
    with WorkerPool(f"{HERE}:misbehave", 1, WorkerLimits(step_s=0.3)) as pool:
        (reply,) = pool.map([{"deeds": ["fine", deed, "fine", deed]}])
    assert reply.value == {"0 fine": "done", f"1 {deed}": outcome, "2 fine": "done", f"3 {deed}": outcome}


def test_a_step_that_sleeps_meets_the_wall_guard_and_prints_do_not_disturb() -> None:
    with WorkerPool(f"{HERE}:misbehave", 1, WorkerLimits(step_s=0.02)) as pool:
        (reply,) = pool.map([{"deeds": ["sleep"]}])
    assert reply.value == {"0 sleep": "timeout"}
    with WorkerPool(f"{HERE}:misbehave", 1) as pool:
        (reply,) = pool.map([{"deeds": ["print"]}])
    assert reply.value == {"0 print": "done"}


def test_a_worker_is_replaced_after_its_jobs() -> None:
    with WorkerPool(f"{HERE}:echo", 1, WorkerLimits(max_jobs=3)) as pool:
        assert [reply.value for reply in pool.map(range(10))] == list(range(10))


def test_a_worker_of_a_parent_with_more_memory_stays() -> None:
    held = bytearray(b"1") * (300 << 20)  # as a trainer holds: more than a worker may
    with WorkerPool(f"{HERE}:process_id", 1, WorkerLimits(memory_mb=512)) as pool:
        processes = {reply.value for reply in pool.map(range(5))}
    assert len(processes) == 1
    assert held


def test_it_works_from_several_threads_at_once() -> None:
    found: dict[int, list[Any]] = {}
    with WorkerPool(f"{HERE}:echo", 2) as pool:

        def ask(start: int) -> None:
            found[start] = [reply.value for reply in pool.map(range(start, start + 50))]

        threads = [threading.Thread(target=ask, args=(start,)) for start in (0, 1000, 2000)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == {start: list(range(start, start + 50)) for start in (0, 1000, 2000)}


def test_a_target_that_does_not_import_and_a_closed_pool_are_clear_errors() -> None:
    with WorkerPool("curation.no_such_module:run", 1) as pool, pytest.raises(VerifierError, match="no_such_module"):
        list(pool.map([1]))
    with pytest.raises(VerifierError, match="not open"):
        WorkerPool(f"{HERE}:echo", 1).submit(1)


def test_a_job_outside_every_step_that_dies_is_broken() -> None:
    with WorkerPool(f"{HERE}:misbehave", 1) as pool:
        first, second = pool.map([{"no deeds": 1}, {"deeds": []}])
    assert first.failure is Outcome.BROKEN
    assert "KeyError" in first.reason
    assert second.value == {}


PARENT = """
import sys, time
sys.path.insert(0, {root!r})
from curation.verify.worker_pool import WorkerLimits, WorkerPool
with WorkerPool("{here}:misbehave", 2, WorkerLimits(step_s=300)) as pool:
    deeds = [["touch {folder}/spins", "spin"], ["touch {folder}/sleeps", "sleep"]]
    futures = [pool.submit({{"deeds": some}}) for some in deeds]
    time.sleep(3600)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the kernel's signal at a parent's death is Linux's")
def test_workers_die_with_a_parent_killed_by_9(tmp_path: Path) -> None:
    code = PARENT.format(root=str(ROOT), here=HERE, folder=tmp_path)
    parent = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT)
    wait_until(lambda: {path.name for path in tmp_path.iterdir()} == {"spins", "sleeps"}, parent)
    children = psutil.Process(parent.pid).children()
    assert len(children) == 2
    parent.kill()
    parent.wait()
    wait_gone(children)
