"""What `judge`'s workers do: compare answers, one announced step a comparison, and group equal ones.

Runs inside a worker process only. A job is ``{"do": "judge" | "check" | "pair", "reference": …, "lang": …}`` with
``answers`` (distinct strings) for "judge" and ``answer`` for "pair"; the values are JSON.

Invariant: the value of a job is a function of the job and of the written-off steps; nothing is kept between jobs
but caches of pure functions.
"""

from __future__ import annotations

import time
from typing import Any

from curation.records import Outcome
from curation.verify import answers
from curation.verify.worker import Guard


def run(job: dict[str, Any], guard: Guard) -> dict[str, Any]:
    """Do one job."""
    if job["do"] == "check":
        return _check(job["reference"], job["lang"], guard)
    if job["do"] == "pair":
        return _pair(job["reference"], job["answer"], job["lang"], guard)
    return {"verdicts": _judge(job["reference"], job["answers"], job["lang"], guard)}


def _check(reference: str, lang: str, guard: Guard) -> dict[str, Any]:
    failed = guard.enter("reference")
    if failed is not None:
        return {"failed": failed.value, "why": f"verifying the reference against itself ended as {failed.value}"}
    why = answers.check_reference(reference, lang=lang)
    guard.leave()
    return {"failed": None, "why": why}


def _pair(reference: str, answer: str, lang: str, guard: Guard) -> dict[str, Any]:
    start = time.perf_counter()
    failed = guard.enter("pair")
    if failed is not None:
        return {"verdict": failed.value, "how": _failure(failed), "doubtful": True, "ms": None}
    found = answers.compare_texts(reference, answer, lang=lang)
    guard.leave()
    ms = round((time.perf_counter() - start) * 1000, 3)
    how = f"{found.how}: {found.reference_form[:200]} ~ {found.answer_form[:200]}"
    return {"verdict": found.outcome.value, "how": how, "doubtful": found.doubtful, "ms": ms}


def _judge(reference: str, distinct: list[str], lang: str, guard: Guard) -> dict[str, tuple[str, str, int | None]]:
    verdicts: dict[str, tuple[str, str, int | None]] = {}
    others: list[str] = []
    for position, answer in enumerate(distinct):
        outcome, how = _compare(f"reference:{position}", reference, answer, lang, guard)
        verdicts[answer] = (outcome.value, how, 0 if outcome is Outcome.CORRECT else None)
        if outcome is Outcome.WRONG:
            others.append(answer)
    for answer, group in _groups(others, lang, guard).items():
        outcome_name, how, _ = verdicts[answer]
        verdicts[answer] = (outcome_name, how, group)
    return verdicts


def _groups(others: list[str], lang: str, guard: Guard) -> dict[str, int]:
    """1, 2, … for wrong answers, equal ones joined transitively, numbered by first appearance."""
    groups: list[list[str]] = []
    for position, answer in enumerate(others):
        joined = [answer]
        kept: list[list[str]] = []
        at: int | None = None
        for group in groups:
            if _compare(f"{group[0]}\x1f{position}", group[0], answer, lang, guard)[0] is Outcome.CORRECT:
                at = len(kept) if at is None else at
                if len(kept) == at:
                    kept.append(group)
                    group.append(answer)
                    joined = group
                else:
                    joined.extend(group)
            else:
                kept.append(group)
        if at is None:
            kept.append(joined)
        groups = kept
    return {answer: number for number, group in enumerate(groups, 1) for answer in group}


def _compare(step: str, reference: str, answer: str, lang: str, guard: Guard) -> tuple[Outcome, str]:
    quick = answers.quick(reference, answer, lang=lang)
    if quick is not None:
        return quick.outcome, quick.how
    failed = guard.enter(step)
    if failed is not None:
        return failed, _failure(failed)
    found = answers.compare(reference, answer, lang=lang)
    guard.leave()
    return found.outcome, f"{found.how} (doubtful)" if found.doubtful else found.how


def _failure(outcome: Outcome) -> str:
    return "killed at its limit" if outcome is Outcome.TIMEOUT else "the worker died on it"
