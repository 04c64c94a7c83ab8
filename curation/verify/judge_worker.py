"""Compares answers in `math_judge`'s worker processes.

A job is JSON: ``{"do": "judge" | "check", "reference": …, "lang": …}`` with distinct ``answers`` and optionally
``admissible``, ``letter``, ``statement``, ``scorer``, ``judges``.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from curation.plugins import PluginRef
from curation.records import Outcome
from curation.verify import answers, generator_scores, own_judges
from curation.verify.classes import answer_classes
from curation.verify.generator_scores import TaskScorer
from curation.verify.worker_pool import Guard

DOUBTFUL = " (doubtful)"
"""End of a doubtful verdict's method."""


def run(job: dict[str, Any], guard: Guard) -> dict[str, Any]:
    """Run one job, after its imports."""
    answers.load()
    judges = [PluginRef(*fields) for fields in job.get("judges", ())]
    for judge in judges:
        judge.load()
    if (job.get("scorer") or "").startswith("{"):
        generator_scores.load_tasks()
    comparer = _GuardedComparison(job["lang"], job.get("statement"), guard, judges, job.get("scorer"))
    if job["do"] == "check":
        return _check(job["reference"], comparer)
    references = [job["reference"], *job.get("admissible", ())]
    return {"verdicts": _judge(references, job.get("letter"), job["answers"], comparer)}


def _check(reference: str, compare: _GuardedComparison) -> dict[str, Any]:
    claimant = compare.claimant(reference)
    if claimant is not None:
        outcome, method = compare.by_claimant(claimant, "reference", reference, reference)
        why = None if outcome is Outcome.CORRECT else f"judged against itself it is {outcome.value}: {method}"
        return {"failed": None if outcome in (Outcome.CORRECT, Outcome.WRONG) else outcome.value, "why": why}
    guard = compare.guard
    failed = guard.enter("reference")
    if failed is not None:
        return {"failed": failed.value, "why": f"verifying the reference against itself ended as {failed.value}"}
    defect = answers.check_reference(reference, lang=compare.lang)
    guard.leave()
    return {"failed": None, "why": defect}


Judged = tuple[str, str, int | None, float]
"""An answer's outcome, method, class and milliseconds."""


class _WorkerNeeded(Exception):
    """A comparison needs a worker."""


def judge_quickly(
    references: Sequence[str], letter: str | None, distinct: Sequence[str], lang: str, statement: str | None
) -> dict[str, Judged] | None:
    """Judge in this process by quick comparisons; None if these do not decide."""

    def refuse(_step: object) -> None:
        raise _WorkerNeeded

    try:
        return _judge(references, letter, distinct, _GuardedComparison(lang, statement, Guard(refuse, {}, 0.0)))
    except _WorkerNeeded:
        return None


def _judge(
    references: Sequence[str], letter: str | None, distinct: Sequence[str], compare: _GuardedComparison
) -> dict[str, Judged]:
    verdicts: dict[str, tuple[Outcome, str, float]] = {}
    for position, answer in enumerate(distinct):
        start = time.perf_counter()
        steps = (
            compare(f"reference:{position}:{number}", reference, answer) for number, reference in enumerate(references)
        )
        outcome, method = _best(list(steps))
        if outcome is Outcome.WRONG and letter is not None:
            letter_outcome, letter_method = compare.built_in(f"letter:{position}", letter, answer)
            if letter_outcome is Outcome.CORRECT:
                outcome, method = letter_outcome, f"names the option: {letter_method}"
        verdicts[answer] = outcome, method, round((time.perf_counter() - start) * 1000, 3)
    positions = {answer: position for position, answer in enumerate(distinct)}
    claimant = compare.claimant(references[0])

    def are_equal(left: str, right: str) -> bool:
        if isinstance(claimant, TaskScorer):  # a task's scorer compares only with its row
            return False
        step = f"classes:{positions[left]}:{positions[right]}"
        if claimant is not None:
            return compare.by_claimant(claimant, step, left, right)[0] is Outcome.CORRECT
        return compare.built_in(step, left, right)[0] is Outcome.CORRECT

    wrong_answers = [answer for answer, (outcome, _, _) in verdicts.items() if outcome is Outcome.WRONG]
    classes = answer_classes(wrong_answers, are_equal)
    return {
        answer: (outcome.value, method, 0 if outcome is Outcome.CORRECT else classes.get(answer), milliseconds)
        for answer, (outcome, method, milliseconds) in verdicts.items()
    }


def _best(verdicts: Sequence[tuple[Outcome, str]]) -> tuple[Outcome, str]:
    """Return the best verdict: right, then failed, then doubtful."""
    order = (Outcome.CORRECT, Outcome.TIMEOUT, Outcome.BROKEN, Outcome.WRONG)
    return min(verdicts, key=lambda verdict: (order.index(verdict[0]), not verdict[1].endswith(DOUBTFUL)))


_Claimant = PluginRef | TaskScorer | tuple[Outcome, str]
"""The judge or scorer that decides a reference, or a verdict on its failure."""


@dataclass(frozen=True, slots=True)
class _GuardedComparison:
    """Compares pairs, each as an announced step."""

    lang: str
    statement: str | None
    guard: Guard
    judges: Sequence[PluginRef] = ()
    scorer: str | None = None
    claimants: dict[str, _Claimant | None] = field(default_factory=dict)

    def __call__(self, step: str, reference: str, answer: str) -> tuple[Outcome, str]:
        claimant = self.claimant(reference)
        if claimant is not None:
            return self.by_claimant(claimant, step, reference, answer)
        return self.built_in(step, reference, answer)

    def claimant(self, reference: str) -> _Claimant | None:
        """Return the row's scorer, else the first judge that claims the reference."""
        if reference not in self.claimants:
            self.claimants[reference] = self._find_claimant(reference)
        return self.claimants[reference]

    def _find_claimant(self, reference: str) -> _Claimant | None:
        if self.scorer is not None:
            named = own_judges.named_scorer(self.scorer, self.judges)
            return (Outcome.BROKEN, named) if isinstance(named, str) else named
        for number, judge in enumerate(self.judges):
            failed = self.guard.enter(f"claims:{number}:{reference}")
            if failed is not None:
                return failed, f"{judge.name} {_failure_reason(failed)} (claiming {reference!r})"
            claims = own_judges.claims(judge, reference, self.statement, lang=self.lang)
            self.guard.leave()
            if isinstance(claims, str):
                return Outcome.BROKEN, claims
            if claims:
                return judge
        return None

    def by_claimant(self, claimant: _Claimant, step: str, reference: str, answer: str) -> tuple[Outcome, str]:
        if isinstance(claimant, tuple):
            return claimant
        failed = self.guard.enter(step)
        if failed is not None:
            return failed, f"{claimant.name} {_failure_reason(failed)} (judging {answer!r} by {reference!r})"
        verdict = own_judges.verdict(claimant, answer, reference, self.statement)
        self.guard.leave()
        if isinstance(verdict, str):
            return Outcome.BROKEN, verdict
        return (Outcome.CORRECT if verdict else Outcome.WRONG), claimant.name + (DOUBTFUL if verdict is None else "")

    def built_in(self, step: str, reference: str, answer: str) -> tuple[Outcome, str]:
        comparison = answers.quick_compare(reference, answer, lang=self.lang, statement=self.statement)
        if comparison is None:
            failed = self.guard.enter(step)
            if failed is not None:
                return failed, _failure_reason(failed)
            comparison = answers.compare(reference, answer, lang=self.lang, statement=self.statement)
            self.guard.leave()
        return comparison.outcome, comparison.method + (DOUBTFUL if comparison.doubtful else "")


def _failure_reason(outcome: Outcome) -> str:
    return "killed at its limit" if outcome is Outcome.TIMEOUT else "the worker died on it"
