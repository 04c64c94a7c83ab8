"""When the attempts made so far settle a problem's fate, and the pass rate that they are worth.

A `Rule` is a band with its number of attempts n. It looks at attempts in the order of their index only. The first
prefix after which no outcome of the attempts left can change the decision, reason included, is where a problem stops;
attempts that happen to be finished beyond it count for nothing. So where a problem stops is a function of its attempts
and not of which of them was quick, and a run that was killed stops where an undisturbed one does.

"No outcome" is meant widely: attempts left may be correct, agree with any answer given before or with a new one, hold
no answer, be lost to the verifier, or not be had at all. What is assumed: a later attempt does not change the answer
classes of earlier ones.

With ``error_rate`` above 0 a problem stops earlier, as soon as the decision that n attempts would give is foreseen with
probability 1 - error_rate. The forecast takes the attempts left for judged, a share of them correct whose prior is
Jeffreys' Beta(1/2, 1/2), and the like for the share of the others that agree with the leading rival. Not in the paper.

The pass rate: correct / judged is biased where the outcomes decide when to stop. `Rule.estimate` counts paths: of all
orders of the observed correct and other attempts that do not stop earlier, the share that begins with a correct one.
The first judged attempt is correct with probability p and the orders are equally likely whatever p is, so the share is
unbiased (Girshick, Mosteller and Savage, Unbiased estimates for certain binomial sampling problems, 1946; Blackwell
1947). The other attempts keep their order among themselves, and failures of the verifier keep their places: that is
enough for being unbiased, and costs n^2 steps. Without a stop it is correct / judged.

Standard library and settings only; nothing here reads or writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import exp, lgamma

from curation.config import Band
from curation.records import DropReason, Outcome

VERSION = "early_stopping@1"

_NEAR = 1e-9
_JEFFREYS = 0.5

AttemptOutcome = tuple[Outcome | None, int | None]
"""One attempt: its outcome, None where the policy has no such attempt; its answer class (0 is the reference's)."""


@dataclass(frozen=True, slots=True)
class OutcomeCounts:
    """What a prefix of attempts comes to: ``rival`` is the votes of the most frequent answer but the reference.

    ``made`` counts attempts, those lost to the verifier among them; ``asked`` also those that the policy did not have.

    Example: ``OutcomeCounts(correct=3, rival=2, judged=7, made=8, asked=8)``
    """

    correct: int = 0
    top_wrong: int = 0
    judged: int = 0
    attempts: int = 0
    requested: int = 0


@dataclass(slots=True)
class OutcomeTally:
    """Counts that grow by one attempt at a time, in the order of the index."""

    votes: dict[int, int] = field(default_factory=dict)
    counts: OutcomeCounts = field(default_factory=OutcomeCounts)

    def add(self, outcome: Outcome | None, answer_class: int | None) -> OutcomeCounts:
        """Return the counts with one more attempt."""
        now = self.counts
        rival = now.top_wrong
        if answer_class is not None and answer_class > 0:
            self.votes[answer_class] = self.votes.get(answer_class, 0) + 1
            rival = max(rival, self.votes[answer_class])
        self.counts = OutcomeCounts(
            now.correct + (outcome is Outcome.CORRECT),
            rival,
            now.judged + (outcome in _JUDGED),
            now.attempts + (outcome is not None),
            now.requested + 1,
        )
        return self.counts


_JUDGED = frozenset({Outcome.CORRECT, Outcome.WRONG, Outcome.NO_ANSWER})


@dataclass(frozen=True, slots=True)
class StoppingPoint:
    """Where a problem stops: after ``asked`` attempts; ``estimate`` is its pass rate, None where nothing was judged.

    ``settled`` is False where the attempts end before the rule stops.
    """

    requested: int
    is_decided: bool
    pass_rate: float | None


class StoppingRule:
    """A band as a stopping rule. ``early_stopping`` off: all n attempts are asked for. See the module for the rest."""

    def __init__(self, band: Band, *, early_stopping: bool = True, error_rate: float = 0.0) -> None:
        self.band = band
        self.early_stopping = early_stopping
        self.error_rate = error_rate
        self._stops: dict[OutcomeCounts, bool] = {}
        self._needed: dict[OutcomeCounts, int] = {}
        self._forecasts: dict[OutcomeCounts, dict[str | None, float]] = {}
        self._found: dict[tuple[AttemptOutcome, ...], StoppingPoint] = {}

    def reason(self, correct: int, rival: int, judged: int, made: int) -> DropReason | None:
        """Return the decision on attempts that are all there, as `curation.difficulty.pass_rates.decide` makes it; None
        is keep.
        """
        band = self.band
        if judged < band.least_judged:
            return DropReason.VERIFIER_FAILED if made >= band.least_judged else DropReason.TOO_FEW_ATTEMPTS
        if self._suspected(rival, judged):
            return DropReason.SUSPECTED_WRONG_LABEL
        if correct < band.min_correct:
            return DropReason.NEVER_SOLVED
        return DropReason.TOO_EASY if correct > self._most(judged) else None

    def is_decided(self, counts: OutcomeCounts) -> bool:
        """Return whether no outcome of the attempts left can change the decision; they may also not be had."""
        band, left = self.band, self.band.attempts - counts.requested
        if left <= 0:
            return True
        if counts.judged < band.least_judged:
            if counts.judged + left >= band.least_judged:
                return False
            return counts.attempts >= band.least_judged or counts.attempts + left < band.least_judged
        if self._suspected(counts.top_wrong, counts.judged + left):
            return True
        if self._suspected(counts.top_wrong + left, counts.judged + left):
            return False
        if counts.correct < band.min_correct:
            return counts.correct + left < band.min_correct
        never_too_easy = counts.correct + left <= self._most(counts.judged + left)
        return never_too_easy or counts.correct > self._most(counts.judged + left)

    def should_stop(self, counts: OutcomeCounts) -> bool:
        """Return whether a problem stops after a prefix with these counts."""
        if counts.requested >= self.band.attempts:
            return True
        if not self.early_stopping:
            return False
        known = self._stops.get(counts)
        if known is None:
            known = self.is_decided(counts) or (self.error_rate > 0 and self._foreseen(counts))
            self._stops[counts] = known
        return known

    def needed(self, counts: OutcomeCounts) -> int:
        """Return how many more attempts are needed whatever comes: the fewest after which the problem can stop.

        Each way of being sealed is reached soonest by one kind of outcome: correct ones for too_easy, one rival's for
        suspected_wrong_label, failures for verifier_failed, attempts without an answer for never_solved, and these
        after as many correct ones as the band asks for, for keeping.
        """
        known = self._needed.get(counts)
        if known is None:
            known = 0 if self.should_stop(counts) else self._count_needed(counts)
            self._needed[counts] = known
        return known

    def _count_needed(self, now: OutcomeCounts) -> int:
        left = self.band.attempts - now.requested
        if not self.early_stopping:
            return left
        for more in range(1, left):
            asked, made, judged = now.requested + more, now.attempts + more, now.judged + more
            solved = now.correct + min(more, max(0, self.band.min_correct - now.correct))
            ends = (
                OutcomeCounts(now.correct + more, now.top_wrong, judged, made, asked),
                OutcomeCounts(now.correct, now.top_wrong + more, judged, made, asked),
                OutcomeCounts(now.correct, now.top_wrong, judged, made, asked),
                OutcomeCounts(solved, now.top_wrong, judged, made, asked),
                OutcomeCounts(now.correct, now.top_wrong, now.judged, made, asked),
            )
            if any(self.should_stop(end) for end in ends):
                return more
        return left

    def decided_after(self, outcomes: Iterable[AttemptOutcome]) -> int | None:
        """Return the length of the first prefix after which the problem stops; None where the attempts end before."""
        tally = OutcomeTally()
        for outcome, answer_class in outcomes:
            if self.should_stop(tally.add(outcome, answer_class)):
                return tally.counts.requested
        return None

    def stopping_point(self, outcomes: Sequence[AttemptOutcome]) -> StoppingPoint:
        """Return where a problem with these attempts stops, and its pass rate. Equal attempts are reckoned once."""
        key = tuple(outcomes)
        known = self._found.get(key)
        if known is None:
            at = self.decided_after(key)
            used = key if at is None else key[:at]
            known = self._found[key] = StoppingPoint(len(used), at is not None, self.unbiased_pass_rate(used))
            if len(self._found) > 200_000:
                self._found.clear()
        return known

    def unbiased_pass_rate(self, outcomes: Sequence[AttemptOutcome]) -> float | None:
        """Return the unbiased pass rate of a problem that stopped after these attempts; None where none was judged.

        Args:
            outcomes: the attempts up to the stop, in the order of their index.
        """
        correct = sum(outcome is Outcome.CORRECT for outcome, _ in outcomes)
        judged = sum(outcome in _JUDGED for outcome, _ in outcomes)
        if not judged:
            return None
        if not self.early_stopping:
            return correct / judged
        rivals = _running_rivals(outcomes)
        paths, begun = {0: 1}, {0: 0}  # by correct ones so far: orders that did not stop, and those begun well
        judged_so_far = made = 0
        for position, (outcome, _) in enumerate(outcomes, 1):
            made += outcome is not None
            if outcome in _JUDGED:
                judged_so_far += 1
                first = judged_so_far == 1
                paths, begun = _one_more(paths, begun, correct, judged - correct, judged_so_far, first)
            if position < len(outcomes):
                for solved in list(paths):
                    now = OutcomeCounts(solved, rivals[judged_so_far - solved], judged_so_far, made, position)
                    if self.should_stop(now):
                        del paths[solved], begun[solved]
        return begun[correct] / paths[correct]

    def likely_decision(self, counts: OutcomeCounts) -> tuple[str | None, float]:
        """Return the likeliest decision of n attempts, and its probability under the prior of the module."""
        known = self._forecasts.get(counts)
        if known is None:
            known = self._forecasts[counts] = self._forecast(counts)
        reason = max(known, key=lambda name: known[name])
        return reason, known[reason]

    def _foreseen(self, counts: OutcomeCounts) -> bool:
        return counts.judged > 0 and self.likely_decision(counts)[1] >= 1 - self.error_rate

    def _forecast(self, now: OutcomeCounts) -> dict[str | None, float]:
        left = self.band.attempts - now.requested
        others = now.judged - now.correct
        chances: dict[str | None, float] = {}
        for solved in range(left + 1):
            of_solved = _beta_binomial(solved, left, now.correct + _JEFFREYS, others + _JEFFREYS)
            rest = left - solved
            for more in range(rest + 1):
                agree = _beta_binomial(more, rest, now.top_wrong + _JEFFREYS, others - now.top_wrong + _JEFFREYS)
                reason = self.reason(now.correct + solved, now.top_wrong + more, now.judged + left, now.attempts + left)
                chances[reason] = chances.get(reason, 0.0) + of_solved * agree
        return chances

    def _suspected(self, rival: int, judged: int) -> bool:
        band = self.band
        return rival >= band.wrong_label_votes and rival > band.wrong_label_share * judged + _NEAR

    def _most(self, judged: int) -> int:
        return int(judged * self.band.max_pass_rate + _NEAR)


def _running_rivals(outcomes: Sequence[AttemptOutcome]) -> list[int]:
    """Return the leading rival's votes after the first 0, 1, 2, … judged attempts that are not correct."""
    votes: dict[int, int] = {}
    leading = [0]
    for outcome, answer_class in outcomes:
        if outcome not in _JUDGED or outcome is Outcome.CORRECT:
            continue
        top = leading[-1]
        if answer_class is not None and answer_class > 0:
            votes[answer_class] = votes.get(answer_class, 0) + 1
            top = max(top, votes[answer_class])
        leading.append(top)
    return leading


def _one_more(
    paths: dict[int, int], begun: dict[int, int], correct: int, others: int, judged: int, first: bool
) -> tuple[dict[int, int], dict[int, int]]:
    """Return orders of ``judged`` attempts from those of one less; ``correct`` and ``others`` are the most of each
    kind.
    """
    more: dict[int, int] = {}
    well: dict[int, int] = {}
    for solved, ways in paths.items():
        if solved < correct:
            more[solved + 1] = more.get(solved + 1, 0) + ways
            well[solved + 1] = well.get(solved + 1, 0) + (ways if first else begun[solved])
        if judged - solved <= others:
            more[solved] = more.get(solved, 0) + ways
            well[solved] = well.get(solved, 0) + (0 if first else begun[solved])
    return more, well


@lru_cache(maxsize=65536)
def _beta_binomial(hits: int, trials: int, a: float, b: float) -> float:
    """Return probability of ``hits`` of ``trials`` where the share has the prior Beta(a, b)."""
    choose = lgamma(trials + 1) - lgamma(hits + 1) - lgamma(trials - hits + 1)
    beta = lgamma(a + hits) + lgamma(b + trials - hits) - lgamma(a + b + trials)
    return exp(choose + beta - lgamma(a) - lgamma(b) + lgamma(a + b))
