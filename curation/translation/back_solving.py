"""Whether one policy answers a translation as it answers the original: both are solved, and the answers compared.

No rule sees every way in which a text can ask something else; whoever solves it does. The same policy makes as many
attempts at the translation as at the original. Were both the same problem, nobody could tell from the answers which
text they belong to; so the share of equal answers across the texts is compared with the shares that all other ways of
parting the same answers would give (a permutation test). A translation is refused where so few agree by chance in
`TranslationSettings.back_solving_level` of the partings at most. That needs no answer to be right.

Invariants: attempts, and their judging, are those of the difficulty stages (`Policy`, `JudgeTask`); an attempt without
an answer agrees with none; with fewer than four attempts a level of .05 cannot be reached, so the settings refuse it.
Not here: how attempts are kept (`replies`).
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any, Protocol

from curation.records import Domain, Policy, PromptRequest
from curation.translation.violations import Violation
from curation.verify.math_judge import JudgeTask, Response, Verdict

EXACT = 1000
"""Partings up to which each is counted; of more, so many are drawn, by a fixed seed."""
_SHOWN = 8


class Judges(Protocol):
    """What this file needs of the verifier: `curation.verify.math_judge.MathJudge`."""

    def submit(self, task: JudgeTask, final_answers: Sequence[str | None] | None = None) -> Future[tuple[Verdict, ...]]:
        """Return the verdicts on one task's responses, as a future."""
        ...


@dataclass(frozen=True, slots=True)
class Agreement:
    """How often the answers to two texts agree: among the original's own, across, and how likely so little is.

    Example: ``Agreement(1.0, 0.0, 2 / 70, 4)``: four answers alike to the original, none of them to the translation.
    """

    within: float
    across: float
    chance: float
    attempts: int

    def record(self) -> dict[str, Any]:
        """Return what a translated row keeps of it."""
        return {
            "attempts": self.attempts,
            "within": round(self.within, 4),
            "across": round(self.across, 4),
            "chance": round(self.chance, 4),
        }


def agreement(original: Sequence[int | None], translated: Sequence[int | None]) -> Agreement:
    """Compare the classes of the answers to both texts, as many of each; None is an attempt without an answer.

    Example: ``agreement([0, 0, 0, 0], [1, 1, 1, 1]).chance == 2 / 70``
    """
    if len(original) != len(translated) or len(original) < 2:
        raise ValueError(f"{len(original)} and {len(translated)} answers; give as many of each, two at least")
    count = len(original)
    # those without an answer get numbers that no class has
    classes = [-1 - at if one is None else one for at, one in enumerate((*original, *translated))]
    first = tuple(range(count))
    observed = _equal_across(classes, first)
    partings = list(_partings(count))
    as_few = sum(_equal_across(classes, parting) <= observed for parting in partings)
    own = sum(one == other for one, other in combinations(classes[:count], 2)) / comb(count, 2)
    return Agreement(own, observed / count**2, as_few / len(partings), count)


def _equal_across(classes: Sequence[int], first: Sequence[int]) -> int:
    """Return how many pairs are equal of one answer in ``first`` and one outside it."""
    inside = frozenset(first)
    rest = [one for at, one in enumerate(classes) if at not in inside]
    return sum(classes[at] == other for at in first for other in rest)


def _partings(count: int) -> Iterator[tuple[int, ...]]:
    """Yield the ways to take half of twice ``count`` answers: all, or a fixed sample of them with the first."""
    if comb(2 * count, count) <= EXACT:
        yield from combinations(range(2 * count), count)
        return
    chance = random.Random(count)
    yield tuple(range(count))
    for _ in range(EXACT - 1):
        yield tuple(sorted(chance.sample(range(2 * count), count)))


class BackSolver:
    """A policy that solves originals and translations, and the judge of its answers. Policy and judge are open.

    Args:
        attempts: of each text; an original's are made once, whatever the number of its translations.
        level: chance up to which a translation is refused.
    """

    def __init__(self, policy: Policy, judge: Judges, attempts: int, level: float) -> None:
        self._policy = policy
        self._judge = judge
        self._attempts = attempts
        self._level = level
        self._originals: dict[str, asyncio.Task[list[str | None]]] = {}

    async def compare(
        self, original: PromptRequest, translated: PromptRequest, answer: str | None
    ) -> tuple[Agreement, list[Violation]]:
        """Solve both texts; return how far the answers agree, and a violation where they do not.

        Args:
            original: its ``id`` is what attempts at it are filed under.
            translated: with an id of its own.
            answer: the original's reference, which need not be right; None where there is none.

        Raises:
            PolicyError: the policy cannot answer.
        """
        if original.id not in self._originals:
            self._originals[original.id] = asyncio.create_task(self._solve(original))
        before, after = await asyncio.gather(self._originals[original.id], self._solve(translated))
        responses = tuple(Response(text, None) for text in (*before, *after))
        task = JudgeTask(original.id, answer or "", translated.lang, responses)
        verdicts = await asyncio.wrap_future(self._judge.submit(task))
        classes = [verdict.answer_class if verdict.answer is not None else None for verdict in verdicts]
        found = agreement(classes[: self._attempts], classes[self._attempts :])
        if found.chance > self._level:
            return found, []
        answers = [verdict.answer or "none" for verdict in verdicts]
        shown = [" ".join(part[:_SHOWN]) for part in (answers[: self._attempts], answers[self._attempts :])]
        why = (
            f"{self._policy.key.policy} answers the translation otherwise: {shown[0]} to the original, {shown[1]} to "
            f"the translation ({found.within:.0%} of the original's agree, {found.across:.0%} across; so few by "
            f"chance: {found.chance:.3f})"
        )
        return found, [Violation("back_solving", why)]

    async def _solve(self, request: PromptRequest) -> list[str | None]:
        """Return the texts of the attempts at one text; None where the policy gave none."""
        completions = await asyncio.gather(*(self._policy.answer(request, index) for index in range(self._attempts)))
        return [completion.text if completion is not None else None for completion in completions]


def solving_request(name: str, statement: str, domain: str | None, lang: str) -> PromptRequest:
    """Return a text as a solver is asked it."""
    return PromptRequest(name, statement, Domain(domain or Domain.MATH), lang)
