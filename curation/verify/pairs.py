"""Judges a file of (gold, pred) pairs, for `goldilocks verify answers`.

Rows in are JSON lines with ``gold`` (a string or list), ``pred`` (an answer, a response or null), and optionally
``statement`` and ``lang``. Rows out add ``equal``, ``verdict``, ``answer``, ``method``, ``doubtful`` and ``ms``.

Invariants: one row out per row in; only complete output appears.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from curation.plugins import PluginRef
from curation.records import Outcome, SourceError
from curation.response_formats import LOOSE
from curation.sources.files import numbered_jsonl
from curation.sources.rows import Row
from curation.storage.stages import atomic_replace
from curation.thinking import THINK, ThinkingTags
from curation.verify.extraction import read_answer
from curation.verify.math_judge import JudgeTask, MathJudge, Response, Verdict


def verify_pairs(
    pairs_path: Path,
    verdicts_path: Path,
    workers: int | None = None,
    progress: Callable[[int], None] | None = None,
    *,
    tags: ThinkingTags = THINK,
    response_format: str = LOOSE,
    judges: Sequence[PluginRef] = (),
) -> dict[str, int]:
    """Judge pairs into ``verdicts_path``; return rows per verdict.

    Calls ``progress`` with 1 per row. Raises `SourceError` on an invalid line.
    """
    counts: dict[str, int] = {outcome.value: 0 for outcome in Outcome}
    rows: deque[dict[str, Any]] = deque()

    def tasks() -> Iterator[JudgeTask]:
        for number, row in enumerate(read_pairs(pairs_path)):
            rows.append(row)
            yield task_of_pair(row, str(number), tags, response_format)

    judge = MathJudge(workers, response_format=response_format, judges=judges)
    with judge, atomic_replace(verdicts_path) as out:
        for result in judge.judge(tasks()):
            row = {**rows.popleft(), **_columns(result.verdicts[0])}
            counts[row["verdict"]] += 1
            out.write(json.dumps(row, ensure_ascii=True).encode() + b"\n")
            if progress is not None:
                progress(1)
    return counts


def task_of_pair(row: dict[str, Any], name: str, tags: ThinkingTags = THINK, response_format: str = LOOSE) -> JudgeTask:
    """Return a row of `read_pairs` as a task."""
    golds = [row["gold"]] if isinstance(row["gold"], str) else row["gold"]
    first, *admissible = [read_answer(gold, LOOSE) or "" for gold in golds]
    pred = tags.house_form(row["pred"]) if row["pred"] is not None else None
    response = Response(None, pred) if response_format == LOOSE else Response(pred or "", None)
    lang, statement = row.get("lang") or "en", row.get("statement")
    return JudgeTask(name, first, lang, (response,), statement=statement, admissible=tuple(admissible))


def _columns(verdict: Verdict) -> dict[str, Any]:
    failed = verdict.outcome in (Outcome.TIMEOUT, Outcome.BROKEN)
    return {
        "equal": verdict.outcome is Outcome.CORRECT,
        "verdict": verdict.outcome.value,
        "answer": verdict.answer,
        "method": verdict.method,
        "doubtful": failed or verdict.is_doubtful,
        "ms": None if failed else verdict.milliseconds,
    }


def read_pairs(path: Path) -> Iterator[dict[str, Any]]:
    """Yield a file's pairs; raise `SourceError` on a bad line."""
    for number, row in numbered_jsonl(path):
        if not _is_gold(row.get("gold")):
            raise _pair_error(path, number, row, '"gold" must be a string, or a list of strings')
        if not isinstance(row.get("pred", ""), str | None):
            raise _pair_error(path, number, row, '"pred" must be a string or null')
        for key in ("statement", "lang"):
            if not isinstance(row.get(key), str | None):
                raise _pair_error(path, number, row, f'"{key}" must be a string or null')
        yield {**row, "pred": row.get("pred")}


def _is_gold(gold: Any) -> bool:
    if isinstance(gold, list):
        return bool(gold) and all(isinstance(answer, str) for answer in gold)
    return isinstance(gold, str)


def _pair_error(path: Path, number: int, row: Row, reason: str) -> SourceError:
    return SourceError(f"{path}, line {number}: {reason}: {json.dumps(row, ensure_ascii=False)[:120]!r}")
