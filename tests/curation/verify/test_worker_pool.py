"""Workers: hard limits, death with the parent; from any thread."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import psutil
import pytest

from curation.records import Outcome, VerifierError
from curation.verify.worker_pool import JobReply, WorkerLimits, WorkerPool
from tests.places import ROOT
from tests.waiting import wait_gone, wait_until

DEEDS = "tests.curation.verify.deeds"


def replies(pool: WorkerPool, *jobs: Any) -> list[JobReply]:
    return [future.result() for future in [pool.submit(job) for job in jobs]]


BAD = {"spin": "timeout", "power": "timeout"} | dict.fromkeys(("memory", "crash", "exit", "raise"), "broken")


@pytest.mark.slow
def test_a_bad_step_is_written_off_and_its_neighbours_are_kept() -> None:
    deeds = [deed for bad in BAD for deed in ("fine", bad)]
    with WorkerPool(f"{DEEDS}:misbehave", 1, WorkerLimits(step_s=0.3)) as pool:
        (reply,) = replies(pool, {"deeds": [*deeds, "fine"]})
    expected = [BAD.get(deed, "done") for deed in (*deeds, "fine")]
    assert list(reply.value.values()) == expected


@pytest.mark.slow
def test_a_step_that_sleeps_meets_the_wall_guard_and_prints_do_not_disturb() -> None:
    with WorkerPool(f"{DEEDS}:misbehave", 1, WorkerLimits(step_s=0.02)) as pool:
        (reply,) = replies(pool, {"deeds": ["sleep"]})
    assert reply.value == {"0 sleep": "timeout"}
    with WorkerPool(f"{DEEDS}:misbehave", 1) as pool:
        (reply,) = replies(pool, {"deeds": ["print"]})
    assert reply.value == {"0 print": "done"}


def test_a_worker_that_cannot_be_started_is_an_error_of_its_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/dev/absent")
    with WorkerPool(f"{DEEDS}:process_id", 1) as pool, pytest.raises(VerifierError, match=r"does not start: .*No such"):
        pool.submit(0).result(timeout=60)


@pytest.mark.slow
def test_a_worker_is_replaced_after_its_jobs() -> None:
    with WorkerPool(f"{DEEDS}:process_id", 1, WorkerLimits(max_jobs=2)) as pool:
        processes = [reply.value for reply in replies(pool, *range(5))]
    assert [processes.count(one) for one in dict.fromkeys(processes)] == [2, 2, 1]


def test_a_worker_of_a_parent_with_more_memory_stays() -> None:
    held = bytearray(b"1") * (300 << 20)  # as a trainer holds: more than a worker may
    with WorkerPool(f"{DEEDS}:process_id", 1, WorkerLimits(memory_mb=512)) as pool:
        processes = {reply.value for reply in replies(pool, *range(5))}
    assert len(processes) == 1
    assert held


def test_it_works_from_several_threads_at_once() -> None:
    found: dict[int, list[Any]] = {}
    with WorkerPool(f"{DEEDS}:echo", 2) as pool:

        def ask(start: int) -> None:
            found[start] = [reply.value for reply in replies(pool, *range(start, start + 50))]

        threads = [threading.Thread(target=ask, args=(start,)) for start in (0, 1000, 2000)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == {start: list(range(start, start + 50)) for start in (0, 1000, 2000)}


@pytest.mark.slow
def test_a_target_that_does_not_import_and_a_closed_pool_are_clear_errors() -> None:
    with WorkerPool("curation.no_such_module:run", 1) as pool, pytest.raises(VerifierError, match="no_such_module"):
        replies(pool, 1)
    with pytest.raises(VerifierError, match="not open"):
        WorkerPool(f"{DEEDS}:echo", 1).submit(1)


def test_a_job_outside_every_step_that_dies_is_broken() -> None:
    with WorkerPool(f"{DEEDS}:misbehave", 1) as pool:
        first, second = replies(pool, {"no deeds": 1}, {"deeds": []})
    assert first.failure is Outcome.BROKEN
    assert "KeyError" in first.reason
    assert second.value == {}


PARENT = """
import sys, time
sys.path.insert(0, {root!r})
from curation.verify.worker_pool import WorkerLimits, WorkerPool
with WorkerPool("{deeds}:misbehave", 2, WorkerLimits(step_s=300)) as pool:
    deeds = [["touch {folder}/spins", "spin"], ["touch {folder}/sleeps", "sleep"]]
    futures = [pool.submit({{"deeds": some}}) for some in deeds]
    time.sleep(3600)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the kernel's signal at a parent's death is Linux's")
def test_workers_die_with_a_parent_killed_by_9(tmp_path: Path) -> None:
    code = PARENT.format(root=str(ROOT), deeds=DEEDS, folder=tmp_path)
    parent = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT)
    wait_until(lambda: {path.name for path in tmp_path.iterdir()} == {"spins", "sleeps"}, parent)
    children = psutil.Process(parent.pid).children()
    assert len(children) == 2
    parent.kill()
    parent.wait()
    wait_gone(children)
