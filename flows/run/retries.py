"""Retry a stage's failures in later runs, in rounds with higher verifier limits (`STAGE/retries.json`).

Invariants: other shards keep their bytes. A killed round continues with the same limits. A refresh cancels pending
rounds.
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
"""From a round's number to a context with the function to remake a shard."""


def failure_notes(failures: int, round_number: int = 0, kind: str = FAILED) -> dict[str, int]:
    """Return a shard's notes on failures, if any."""
    return {kind: failures, ROUND: round_number} if failures else {}


def failures_left(folder: Path) -> int:
    """Return the number of failures in a stage."""
    return sum(_failures(mark["notes"]) for mark in finished_shards(folder))


def pending_round(folder: Path) -> int:
    """Return the stage's pending round, or 0."""
    planned = last_round(folder)
    return planned if shards_before(folder, planned) else 0


def last_round(folder: Path) -> int:
    """Return the last planned round, or 0."""
    return int((read_json(folder / FILE) or {}).get("round", 0))


def plan_round(folder: Path, limit: int) -> int:
    """Return the pending round, or plan one if failures are left and ``limit`` allows; else 0."""
    pending, done = pending_round(folder), last_round(folder)
    if pending or done >= limit or not failures_left(folder):
        return pending
    _plan(folder, done + 1)
    return done + 1


def cancel_round(folder: Path) -> None:
    """Cancel a pending round."""
    pending = pending_round(folder)
    if pending:
        _plan(folder, pending - 1)


def retry_failed(job: StageRun, folder: StageFolder, first: Callable[[], StageResult], again: Retry) -> StageResult:
    """Return a stage's result after its pending round.

    Args:
        first: makes or reads the stage.
        again: remakes shards, with `failure_notes`.
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
    """Return shards with failures of earlier rounds."""
    marks = enumerate(finished_shards(folder))
    return [index for index, mark in marks if _failures(mark["notes"]) and mark["notes"][ROUND] < round_number]


def _failures(notes: Mapping[str, int]) -> int:
    return notes.get(FAILED, 0) + notes.get(REFUSED, 0)


def _plan(folder: Path, round_number: int) -> None:
    write_json(folder / FILE, {"round": round_number})
