"""Labels that training speaks against: another answer's share of a problem's rollouts rises, the reference's does not.

Training rewards the reference. Where it is right, its share grows as the policy does; where it is wrong, a growing
policy gives the right answer more and more often although no reward asks for it. A problem's rollouts are cut in two by
age, each half with at least `MIN_ROLLOUTS`. Its label is disputed where, in the newer half, one other answer has at
least `MIN_SHARE` of the rollouts and more than the reference, surely; where the reference's share does not surely
rise; and where that answer's share surely rises, or led the older half as surely and does not surely fall. *Surely*:
with a posterior probability of `CONFIDENCE` (Beta(1/2, 1/2) prior; of two shares by the normal approximation).

Answers are compared as they are written, without spaces, signs of currency and thousands. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import erfc, sqrt
from typing import Any

from training.rollouts.curriculum.pools import Pool, PoolChange, beta_cdf
from training.rollouts.tasks import TrainingTask

CONFIDENCE = 0.95
"""Probability with which a label must be contradicted."""

MIN_ROLLOUTS = 16
"""Judged rollouts of each of the two halves."""

MIN_SHARE = 0.5
"""Smallest share of the newer rollouts that the other answer has."""

_MOST_ANSWERS, _MOST_CHARACTERS = 4, 200
"""Of a group so many wrong answers are counted, the commonest, by so many characters."""


@dataclass(frozen=True, slots=True)
class AnswerCounts:
    """A group of rollouts: of ``judged`` ones ``correct`` gave the reference, others the ``answers``.

    Example: ``AnswerCounts(step=12, judged=8, correct=1, answers={"91": 6})``
    """

    step: int
    judged: int
    correct: int
    answers: dict[str, int]


@dataclass(frozen=True, slots=True)
class LabelDispute:
    """What stands against a label: the other answer, and the evidence in words."""

    rival: str
    evidence: str


def count_answers(answers: Iterable[str | None]) -> dict[str, int]:
    """Return how often the commonest wrong answers of a group were given."""
    written = Counter(key for answer in answers if answer is not None and (key := _key(answer)))
    return dict(sorted(written.items(), key=lambda item: (-item[1], item[0]))[:_MOST_ANSWERS])


def _key(answer: str) -> str:
    text = "".join(answer.split()).replace("\\$", "").replace("$", "").replace("{,}", "").rstrip(".")
    plain = text.replace(",", "")
    return (plain if plain.removeprefix("-").replace(".", "", 1).isdigit() else text)[:_MOST_CHARACTERS]


def find_dispute(groups: Sequence[AnswerCounts]) -> LabelDispute | None:
    """Return what a problem's groups say against its label, None where they say nothing.

    Args:
        groups: in the order of their steps.
    """
    newer = _newest(groups, sum(group.judged for group in groups) / 2)
    older = groups[: len(groups) - len(newer)]
    now, before = _Half(newer), _Half(older)
    if min(now.judged, before.judged) < MIN_ROLLOUTS:
        return None
    rival = min(now.answers, key=lambda answer: (-now.answers[answer], answer), default=None)
    if rival is None or not now.is_led_by(rival):
        return None
    if rises(before.correct, before.judged, now.correct, now.judged) >= CONFIDENCE:
        return None
    growth = rises(before.answers[rival], before.judged, now.answers[rival], now.judged)
    led_before = before.is_led_by(rival) and growth > 1 - CONFIDENCE
    if growth < CONFIDENCE and not led_before:
        return None
    word = "rose" if growth >= CONFIDENCE else "stayed"
    steps = f"steps {groups[0].step} to {older[-1].step} and {newer[0].step} to {newer[-1].step}"
    return LabelDispute(
        rival,
        f"in training {rival} {word} from {before.answers[rival]} of {before.judged} to {now.answers[rival]} of "
        f"{now.judged} rollouts, the reference went from {before.correct} to {now.correct} ({steps})",
    )


class _Half:
    """The counts of some groups together."""

    def __init__(self, groups: Sequence[AnswerCounts]) -> None:
        self.judged, self.correct = sum(group.judged for group in groups), sum(group.correct for group in groups)
        self.answers: Counter[str] = Counter()
        for group in groups:
            self.answers.update(group.answers)

    def is_led_by(self, answer: str) -> bool:
        """Return whether an answer has a large share and surely more than the reference."""
        votes = self.answers[answer]
        if votes < MIN_SHARE * self.judged:
            return False
        return 1 - beta_cdf(0.5, votes + 0.5, self.correct + 0.5) >= CONFIDENCE


def _newest(groups: Sequence[AnswerCounts], rollouts: float) -> Sequence[AnswerCounts]:
    """Return the newest groups that hold so many rollouts together; at most all but the first."""
    total, number = 0, 0
    while number < len(groups) - 1 and total < rollouts:
        number += 1
        total += groups[-number].judged
    return groups[len(groups) - number :]


def rises(old: int, of_old: int, new: int, of_new: int) -> float:
    """Return the probability that a share is larger now, of ``new`` of ``of_new`` against ``old`` of ``of_old``."""
    means, variance = [], 0.0
    for hits, many in ((old, of_old), (new, of_new)):
        mean = (hits + 0.5) / (many + 1)
        means.append(mean)
        variance += mean * (1 - mean) / (many + 2)
    return 0.5 * erfc((means[0] - means[1]) / sqrt(2 * variance))


def dispute_rows(
    changes: Iterable[PoolChange], disputes: Mapping[str, LabelDispute], tasks: Mapping[str, TrainingTask], step: int
) -> Iterator[dict[str, Any]]:
    """Yield the disputes among a step's changes as lines of ``disputed.jsonl``; `goldilocks review` reads them."""
    for change in changes:
        if change.new is not Pool.DISPUTED:
            continue
        task, dispute = tasks[change.problem], disputes[change.problem]
        yield {
            "id": task.id,
            "step": step,
            "statement": task.request.statement,
            "references": [task.reference_answer, dispute.rival],
            "evidence": dispute.evidence,
            "lang": task.request.lang,
        }
