"""`goldilocks verify answers`: a file of (gold, pred) pairs comes back with verdicts.

Rows in are JSON lines with ``gold`` and ``pred`` (strings with LaTeX, ``$``, a box, or plain text; a null ``pred``
is no answer), perhaps with ``statement`` (the problem: what it asks for counts) and ``lang``. Rows out are the same
rows, in order, with ``equal``, ``verdict``, ``method``, ``doubtful`` and ``ms`` (time of the comparison in its worker;
null where it was killed). ``pred`` may be a whole response: its final answer is extracted leniently, unlike in judging.

Invariants: one row out per row in; bounded memory; the output appears under its name only when it is complete.
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from curation.records import Outcome, SourceError
from curation.storage.stages import atomic_replace
from curation.thinking import THINK, ThinkingTags
from curation.verify.worker_pool import JobReply, WorkerLimits, WorkerPool


def verify_pairs(
    pairs_path: Path,
    verdicts_path: Path,
    workers: int | None = None,
    progress: Callable[[int], None] | None = None,
    *,
    limit_s: float = 2.0,
    lang: str = "en",
    tags: ThinkingTags = THINK,
) -> dict[str, int]:
    """Judge every pair of ``pairs_path`` into ``verdicts_path`` and return the number of rows per verdict.

    ``tags`` are those that a ``pred`` thinks in. ``progress`` is called with the number of rows done so far. Raises
    `SourceError` on a line that is not a pair.
    """
    counts: dict[str, int] = {outcome.value: 0 for outcome in Outcome}
    rows: deque[dict[str, Any]] = deque()

    def jobs() -> Iterator[dict[str, Any]]:
        for row in read_pairs(pairs_path):
            rows.append(row)
            pred = tags.house_form(row["pred"] or "")
            job = {"do": "pair", "reference": row["gold"], "answer": pred, "lang": row.get("lang") or lang}
            yield {**job, "statement": row.get("statement")}

    pool = WorkerPool("curation.verify.judge_worker:run", workers or os.cpu_count() or 1, WorkerLimits(step_s=limit_s))
    with pool, atomic_replace(verdicts_path) as out:
        for rows_done, reply in enumerate(pool.map(jobs()), 1):
            row = {**rows.popleft(), **_verdict(reply)}
            counts[row["verdict"]] += 1
            out.write(json.dumps(row, ensure_ascii=True).encode() + b"\n")
            if progress is not None:
                progress(rows_done)
    return counts


def _verdict(reply: JobReply) -> dict[str, Any]:
    if reply.failure is not None:
        return {"equal": False, "verdict": reply.failure.value, "method": reply.reason, "doubtful": True, "ms": None}
    return {"equal": reply.value["verdict"] == Outcome.CORRECT.value, **reply.value}


def read_pairs(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file of pairs; the first bad line raises `SourceError` with its number and text."""
    try:
        lines = path.open("rb")
    except OSError as error:
        raise SourceError(f"cannot read the pairs in {path}: {error.strerror or error}") from error
    with lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except ValueError as error:
                raise _pair_error(path, number, line, f"not JSON ({type(error).__name__})") from error
            if not isinstance(row, dict):
                raise _pair_error(path, number, line, 'not an object with "gold" and "pred"')
            if not isinstance(row.get("gold"), str):
                raise _pair_error(path, number, line, '"gold" must be a string')
            if not isinstance(row.get("pred", ""), str | None):
                raise _pair_error(path, number, line, '"pred" must be a string or null')
            if not isinstance(row.get("statement"), str | None):
                raise _pair_error(path, number, line, '"statement" must be a string or null')
            yield {**row, "pred": row.get("pred")}


def _pair_error(path: Path, number: int, line: bytes, reason: str) -> SourceError:
    return SourceError(f"{path}, line {number}: {reason}: {line.strip()[:120].decode('utf-8', 'replace')!r}")
