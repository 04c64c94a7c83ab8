"""The work of `math_judge`'s workers: compare answers, one announced step a comparison, and group equal ones.

Runs inside a worker process only. A job is ``{"do": "judge" | "check" | "pair", "reference": …, "lang": …}`` with
``answers`` (distinct strings) and perhaps ``letter`` for "judge", ``answer`` for "pair", and perhaps the problem's
``statement`` for both; the values are JSON.
``engine`` says whose comparison counts: our own where it is absent, or "math-verify" (`curation.verify.math_verify`).

Invariant: the value of a job is a function of the job and of the written-off steps; nothing is kept between jobs
but caches of pure functions.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from curation.records import Outcome
from curation.verify import answers, math_verify
from curation.verify.worker import Guard

OWN_ENGINE = "goldilocks"
"""The engine that is our own."""


def run(job: dict[str, Any], guard: Guard) -> dict[str, Any]:
    """Run one job. What a comparison needs is imported before the first step, so it does not count for its limit."""
    (answers if job.get("engine", OWN_ENGINE) == OWN_ENGINE else math_verify).load()
    if job["do"] == "check":
        return _check(job["reference"], job["lang"], guard, job.get("engine", OWN_ENGINE))
    if job["do"] == "pair":
        return _pair(job["reference"], job["answer"], job["lang"], job.get("statement"), guard)
    comparer = _GuardedComparison(job["lang"], job.get("engine", OWN_ENGINE), job.get("statement"), guard)
    return {"verdicts": _judge(job["reference"], job.get("letter"), job["answers"], comparer)}


def _check(reference: str, lang: str, guard: Guard, engine: str) -> dict[str, Any]:
    failed = guard.enter("reference")
    if failed is not None:
        return {"failed": failed.value, "why": f"verifying the reference against itself ended as {failed.value}"}
    defect = (
        answers.check_reference(reference, lang=lang)
        if engine == OWN_ENGINE
        else math_verify.check_reference(reference)
    )
    guard.leave()
    return {"failed": None, "why": defect}


def _pair(reference: str, answer: str, lang: str, statement: str | None, guard: Guard) -> dict[str, Any]:
    start = time.perf_counter()
    if not answer.strip():
        return {"verdict": Outcome.NO_ANSWER.value, "method": "no answer", "doubtful": False, "ms": 0.0}
    failed = guard.enter("pair")
    if failed is not None:
        return {"verdict": failed.value, "method": _failure_reason(failed), "doubtful": True, "ms": None}
    comparison = answers.compare_texts(reference, answer, lang=lang, statement=statement)
    guard.leave()
    ms = round((time.perf_counter() - start) * 1000, 3)
    method = f"{comparison.method}: {comparison.reference_form[:200]} ~ {comparison.answer_form[:200]}"
    return {"verdict": comparison.outcome.value, "method": method, "doubtful": comparison.doubtful, "ms": ms}


def _judge(
    reference: str, letter: str | None, distinct: list[str], compare: _GuardedComparison
) -> dict[str, tuple[str, str, int | None]]:
    verdicts: dict[str, tuple[str, str, int | None]] = {}
    wrong_answers: list[str] = []
    for position, answer in enumerate(distinct):
        outcome, method = compare(f"reference:{position}", reference, answer)
        if outcome is Outcome.WRONG and letter is not None:
            letter_outcome, letter_method = compare(f"letter:{position}", letter, answer)
            if letter_outcome is Outcome.CORRECT:
                outcome, method = letter_outcome, f"names the option: {letter_method}"
        verdicts[answer] = (outcome.value, method, 0 if outcome is Outcome.CORRECT else None)
        if outcome is Outcome.WRONG:
            wrong_answers.append(answer)
    for answer, group in _answer_classes(wrong_answers, compare).items():
        outcome_name, method, _ = verdicts[answer]
        verdicts[answer] = (outcome_name, method, group)
    return verdicts


def _answer_classes(wrong_answers: list[str], compare: _GuardedComparison) -> dict[str, int]:
    """Return the class of each wrong answer: 1, 2, … by first appearance, equal ones joined transitively."""
    groups: list[list[str]] = []
    for position, answer in enumerate(wrong_answers):
        merged = [answer]
        updated: list[list[str]] = []
        merged_at: int | None = None
        for group in groups:
            if compare(f"{group[0]}\x1f{position}", group[0], answer)[0] is Outcome.CORRECT:
                merged_at = len(updated) if merged_at is None else merged_at
                if len(updated) == merged_at:
                    updated.append(group)
                    group.append(answer)
                    merged = group
                else:
                    merged.extend(group)
            else:
                updated.append(group)
        if merged_at is None:
            updated.append(merged)
        groups = updated
    return {answer: number for number, group in enumerate(groups, 1) for answer in group}


@dataclass(frozen=True, slots=True)
class _GuardedComparison:
    """One comparison as one announced step."""

    lang: str
    engine: str
    statement: str | None
    guard: Guard

    def __call__(self, step: str, reference: str, answer: str) -> tuple[Outcome, str]:
        if self.engine == OWN_ENGINE:
            quick = answers.quick_compare(reference, answer, lang=self.lang, statement=self.statement)
            if quick is not None:
                return quick.outcome, quick.method
        failed = self.guard.enter(step)
        if failed is not None:
            return failed, _failure_reason(failed)
        if self.engine == OWN_ENGINE:
            comparison = answers.compare(reference, answer, lang=self.lang, statement=self.statement)
            doubt = " (doubtful)" if comparison.doubtful else ""
            verdict = comparison.outcome, comparison.method + doubt
        else:
            verdict = math_verify.compare(reference, answer)
        self.guard.leave()
        return verdict


def _failure_reason(outcome: Outcome) -> str:
    return "killed at its limit" if outcome is Outcome.TIMEOUT else "the worker died on it"
