"""What a stage failed on is tried again by the next run: rounds of retries, the verifier's each with higher limits.

    STAGE/retries.json   {"round": 1}: the round that the next run carries out, or that was carried out last

A shard's mark holds how many failures are left in it, and after which round (`failure_notes`). When a set has been
published, the next round is planned (`plan_round`); the stage carries it out when it runs again (`retry_failed`): the
shards with failures are made anew from what they hold, all others keep their bytes. A stage whose rows did not change
keeps its digest, so that no later stage runs again.

Verdicts on which the verifier failed are one kind of failure, problems that a model's servers refused are the other; a
stage knows one of them (`Stage.failures`), and how many rounds there are.

Invariants: a round that was killed goes on where it was, with the same limits; there are as many rounds as
the recipe states, and then no more; a stage that is made anew has the round that was pending, or none.
A round belongs to the set that it was planned for: a refresh takes it back (`cancel_round`), for the set is then the
refresh's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

from curation.storage.stages import Shard, StageFolder, finished_shards, read_json, write_json
from flows.run.stage import StageResult, StageRun

FILE = "retries.json"
FAILED, REFUSED = "verifier_failures", "refused_problems"
ROUND = "retry_round"

Retry = Callable[[int], AbstractContextManager[Callable[[int], Shard]]]
"""From a round's number to what makes a shard again by its own; entered for the length of the round."""


def failure_notes(failures: int, round_number: int = 0, kind: str = FAILED) -> dict[str, int]:
    """Return what a shard notes of the failures that are left in it; nothing where there are none."""
    return {kind: failures, ROUND: round_number} if failures else {}


def failures_left(folder: Path) -> int:
    """Return how many failures are left in a stage's shards."""
    return sum(_failures(mark["notes"]) for mark in finished_shards(folder))


def pending_round(folder: Path) -> int:
    """Return the number of the round that a stage is to carry out; 0 where none is planned."""
    planned = last_round(folder)
    return planned if shards_before(folder, planned) else 0


def last_round(folder: Path) -> int:
    """Return the number of the round that was planned last, carried out or not; 0 where there was none."""
    return int((read_json(folder / FILE) or {}).get("round", 0))


def plan_round(folder: Path, limit: int) -> int:
    """Plan the next round where failures are left; return its number, 0 if ``limit`` rounds were carried out.

    A round that is not finished stays the next one.
    """
    pending, done = pending_round(folder), last_round(folder)
    if pending or done >= limit or not failures_left(folder):
        return pending
    _plan(folder, done + 1)
    return done + 1


def cancel_round(folder: Path) -> None:
    """Take back a round that is planned or was killed."""
    pending = pending_round(folder)
    if pending:
        _plan(folder, pending - 1)


def retry_failed(job: StageRun, folder: StageFolder, first: Callable[[], StageResult], again: Retry) -> StageResult:
    """Return the result of a stage after the round that is pending, which is carried out here.

    Args:
        first: makes the stage, or finds it finished.
        again: makes its shards again; their notes hold `failure_notes` of the round.
    """
    pending = pending_round(folder.folder)
    result = first()
    shards = shards_before(folder.folder, pending)
    if not shards:
        return result
    _plan(folder.folder, pending)  # gone where the stage was made anew
    with again(pending) as work:
        return job.remake(folder, [(index, partial(work, index)) for index in shards])


def shards_before(folder: Path, round_number: int) -> list[int]:
    """Return the shards with failures that have not been through a round."""
    marks = enumerate(finished_shards(folder))
    return [index for index, mark in marks if _failures(mark["notes"]) and mark["notes"][ROUND] < round_number]


def _failures(notes: Mapping[str, int]) -> int:
    return notes.get(FAILED, 0) + notes.get(REFUSED, 0)


def _plan(folder: Path, round_number: int) -> None:
    write_json(folder / FILE, {"round": round_number})
