"""Retry a stage's failures in later runs, in rounds with higher verifier limits (`STAGE/retries.json`).

A round is planned when a set is published; the next run then makes the shards with failures again.

Invariants: other shards keep their bytes. A killed round continues with the same limits. A refresh cancels pending
rounds.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from curation.storage.stages import Shard, StageFolder, file_digest, finished_shards, read_json, write_json

FILE = "retries.json"
FAILED, REFUSED = "verifier_failures", "refused_problems"
ROUND = "retry_round"
REOPENED = "to be made again"  # instead of the fingerprint, in a shard's mark
ROUNDS = 2  # retries of one failure

KINDS = {
    REFUSED: ("problems that the model's servers refused", "another revision or decoding of the model asks anew"),
    FAILED: ("verdicts on which the verifier failed", "a higher verify.limit_s judges anew"),
}
"""What is retried, and what helps after the last round, by a shard's note."""


def failure_notes(failures: int, round_number: int = 0, kind: str = FAILED) -> dict[str, int]:
    """Return a shard's notes on failures, if any."""
    return {kind: failures, ROUND: round_number} if failures else {}


def last_round(folder: Path) -> int:
    """Return the last planned round, or 0."""
    return int((read_json(folder / FILE) or {}).get("round", 0))


def pending_round(folder: Path) -> int:
    """Return the stage's pending round, or 0."""
    planned = last_round(folder)
    return planned if any(_is_due(mark, planned) for mark in finished_shards(folder)) else 0


def plan_round(folder: Path) -> bool:
    """Plan a round if failures are left and `ROUNDS` allows; return whether one is pending."""
    if pending_round(folder):
        return True
    done = last_round(folder)
    if done >= ROUNDS or not any(map(_failures, finished_shards(folder))):
        return False
    write_json(folder / FILE, {"round": done + 1})
    return True


def cancel_round(folder: Path) -> None:
    """Cancel a pending round."""
    if pending := pending_round(folder):
        write_json(folder / FILE, {"round": pending - 1})


def prepare(folder: StageFolder, pending: int) -> None:
    """Prepare a stage's folder, and have a pending round's shards made again: all of them if its inputs changed."""
    for path, mark in _marks(folder.folder) if pending else ():
        if _is_due(mark, pending):
            write_json(path, {**mark, "fingerprint": REOPENED})
    if pending:
        folder.reopen()
    folder.prepare()
    if last_round(folder.folder) < pending:
        write_json(folder.folder / FILE, {"round": pending})


def reopened_marks(folder: Path) -> dict[int, dict[str, Any]]:
    """Return the marks of shards that are to be made again, if their files are still as they were."""

    def is_there(entry: Mapping[str, Any]) -> bool:
        file = folder / entry["file"]
        return file.exists() and file_digest(file) == str(entry["hash"])

    reopened = [(path, mark) for path, mark in _marks(folder) if mark["fingerprint"] == REOPENED]
    return {int(path.stem): mark for path, mark in reopened if all(map(is_there, mark["tables"].values()))}


def shard_before(folder: Path, mark: Mapping[str, Any]) -> Shard:
    """Read a shard of `reopened_marks`, without its notes on the verifier's failures."""
    files = {table: folder / entry["file"] for table, entry in mark["tables"].items()}
    tables = {table: pl.read_parquet(file, glob=False) for table, file in files.items()}
    notes = {name: count for name, count in mark["notes"].items() if name not in (FAILED, ROUND)}
    return Shard(mark["in"], tables, mark["kept"], notes)


def _marks(folder: Path) -> list[tuple[Path, dict[str, Any]]]:
    return list(zip(sorted((folder / "shards").glob("[0-9]*.json")), finished_shards(folder), strict=True))


def _is_due(mark: Mapping[str, Any], round_number: int) -> bool:
    return _failures(mark) > 0 and mark["notes"][ROUND] < round_number


def _failures(mark: Mapping[str, Any]) -> int:
    return int(mark["notes"].get(FAILED, 0) + mark["notes"].get(REFUSED, 0))
