"""Stops a problem at the first attempt after which the rest cannot change its decision.

With ``error_rate`` above 0 (not in the paper), a Polya urn predicts the decision earlier.

Invariants:
  - a stop depends only on attempts, in the order of their index, and the prior;
  - failed verdicts (TIMEOUT, BROKEN) count as unknown and prevent forecasts;
  - a `Prior` must not depend on the attempts that the rule reads, or pass rates are biased.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from curation.config import Band
from curation.records import DropReason, Outcome

_JEFFREYS = 0.5
_TOLERANCE = 1e-9

Decide = Callable[[int, int, int, int], str | None]
"""Maps counts (correct, top wrong votes, judged, attempts) to a drop reason or None."""


@dataclass(frozen=True, slots=True)
class Prior:
    """Beta(correct, other) of correct attempts; Beta(agree, differ) of incorrect ones with the top wrong answer."""

    correct: float = _JEFFREYS
    other: float = _JEFFREYS
    agree: float = _JEFFREYS
    differ: float = _JEFFREYS


@dataclass(frozen=True, slots=True)
class Forecast:
    """The likeliest decision (an index) and its probability, by [judged][correct, top wrong]."""

    reasons: tuple[str | None, ...]
    best: tuple[NDArray[np.int8], ...]
    chance: tuple[NDArray[np.float64], ...]


def forecast(prior: Prior, decide: Decide, judged: int, attempts: int) -> Forecast:
    """Return the forecast if ``judged`` of ``attempts`` are judged in the end."""
    grid = np.full((judged + 1, judged + 1), -1)
    reasons: list[str | None] = []
    for correct in range(judged + 1):
        for top_wrong in range(judged + 1 - correct):
            reason = decide(correct, top_wrong, judged, attempts)
            if reason not in reasons:
                reasons.append(reason)
            grid[correct, top_wrong] = reasons.index(reason)
    chances = (grid[..., None] == np.arange(len(reasons))).astype(np.float64)
    best, chance = [grid.astype(np.int8)], [chances.max(axis=2)]
    for so_far in range(judged - 1, -1, -1):
        solves, agrees = _next_chances(prior, so_far)
        wrong = agrees[..., None] * chances[:-1, 1:] + (1 - agrees)[..., None] * chances[:-1, :-1]
        chances = solves[..., None] * chances[1:, :-1] + (1 - solves)[..., None] * wrong
        best.append(chances.argmax(axis=2).astype(np.int8))
        chance.append(chances.max(axis=2))
    return Forecast(tuple(reasons), tuple(reversed(best)), tuple(reversed(chance)))


@dataclass(frozen=True, slots=True)
class Expectation:
    """Mean attempts, and probability of a wrong decision."""

    attempts: float
    lost: float


def expectation(prior: Prior, table: Forecast, error_rate: float, required_judged: int) -> Expectation:
    """Return the `Expectation` if all attempts are judged.

    Args:
        required_judged: min attempts before a stop if ``error_rate`` is 0.
    """
    reach, attempts, lost = np.ones((1, 1)), 0.0, 0.0
    last = len(table.best) - 1
    for made in range(last + 1):
        chance = table.chance[made]
        stops = (chance >= 1 - error_rate - _TOLERANCE) & bool(made >= (1 if error_rate else required_judged))
        ended = np.where(stops | (made == last), reach, 0.0)
        attempts += made * float(ended.sum())
        lost += float((ended * (1 - chance)).sum())
        if made == last:
            break
        on, (solves, agrees) = reach - ended, _next_chances(prior, made)
        reach = np.zeros((made + 2, made + 2))
        reach[1:, :-1] += on * solves
        reach[:-1, 1:] += on * (1 - solves) * agrees
        reach[:-1, :-1] += on * (1 - solves) * (1 - agrees)
    return Expectation(attempts, lost)


def _next_chances(prior: Prior, made: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return P(correct) and P(agreement | not correct), by [correct, top wrong]."""
    solved, top = np.arange(made + 1)[:, None], np.arange(made + 1)[None, :]
    incorrect = np.maximum(made - solved, top)  # impossible if solved + top > made
    solves = (prior.correct + solved) / (prior.correct + prior.other + made)
    return np.broadcast_to(solves, incorrect.shape), (prior.agree + top) / (prior.agree + prior.differ + incorrect)


VERSION = "early_stopping@2"

WRONG_LABEL_VOTES = 3
"""Min equal wrong answers of a suspected wrong label."""


AttemptOutcome = tuple[Outcome | None, int | None]
"""An attempt's outcome (None: no such attempt) and answer class (0: the reference's)."""


@dataclass(frozen=True, slots=True)
class OutcomeCounts:
    """Counts of a prefix; ``attempts`` include failed verdicts, ``requested`` missing attempts too."""

    correct: int = 0
    top_wrong: int = 0
    judged: int = 0
    attempts: int = 0
    requested: int = 0

    @property
    def failed(self) -> int:
        """Return the number of failed verdicts."""
        return self.attempts - self.judged


@dataclass(slots=True)
class OutcomeTally:
    """Counts attempts in index order."""

    votes: dict[int, int] = field(default_factory=dict)
    counts: OutcomeCounts = field(default_factory=OutcomeCounts)

    def add(self, outcome: Outcome | None, answer_class: int | None) -> OutcomeCounts:
        """Add one attempt and return the new counts."""
        before = self.counts
        top_wrong = before.top_wrong
        if answer_class is not None and answer_class > 0:
            self.votes[answer_class] = self.votes.get(answer_class, 0) + 1
            top_wrong = max(top_wrong, self.votes[answer_class])
        self.counts = OutcomeCounts(
            before.correct + (outcome is Outcome.CORRECT),
            top_wrong,
            before.judged + (outcome in _JUDGED),
            before.attempts + (outcome is not None),
            before.requested + 1,
        )
        return self.counts


_JUDGED = frozenset({Outcome.CORRECT, Outcome.WRONG, Outcome.NO_ANSWER})


@dataclass(frozen=True, slots=True)
class StoppingPoint:
    """Where a problem stops, and its unbiased pass rate; ``is_decided`` is False if its attempts end before."""

    requested: int
    is_decided: bool
    pass_rate: float | None


@dataclass(frozen=True, slots=True)
class ProblemPrior:
    """A problem's prior, and its forecast's error rate (0: no forecast)."""

    prior: Prior
    error_rate: float
    informed_by: str = field(default="", compare=False)


class StoppingRule:
    """Stops problems by a band; without ``early_stopping``, after all attempts."""

    def __init__(
        self, band: Band, *, early_stopping: bool = True, error_rate: float = 0.0, prior: Prior | None = None
    ) -> None:
        self.band = band
        self.early_stopping = early_stopping
        self.error_rate = error_rate
        self.prior = prior or Prior()
        self.priors: Mapping[str, ProblemPrior] = {}
        self._by_prior: dict[ProblemPrior, StoppingRule] = {}
        self._stops: dict[OutcomeCounts, bool] = {}
        self._needed: dict[OutcomeCounts, int] = {}
        self._tables: dict[tuple[Prior, int, int], Forecast] = {}
        self._points: dict[tuple[AttemptOutcome, ...], StoppingPoint] = {}
        self._expectation: Expectation | None = None

    def given(
        self, priors: Mapping[str, ProblemPrior], band: Band | None = None, error_rate: float | None = None
    ) -> StoppingRule:
        """Return this rule with these priors (by problem id), band and error rate."""
        rule = StoppingRule(
            band or self.band,
            early_stopping=self.early_stopping,
            error_rate=self.error_rate if error_rate is None else error_rate,
            prior=self.prior,
        )
        rule.priors = priors
        if band is None:
            rule._by_prior, rule._tables = self._by_prior, self._tables
        return rule

    def of(self, problem: str) -> StoppingRule:
        """Return a problem's rule, with its prior."""
        known = self.priors.get(problem)
        if known is None or not self.early_stopping:
            return self
        rule = self._by_prior.get(known)
        if rule is None:
            rule = StoppingRule(self.band, error_rate=known.error_rate, prior=known.prior)
            rule._tables = self._tables
            self._by_prior[known] = rule
        return rule

    @property
    def foresees(self) -> bool:
        """Return whether any decision may be foreseen."""
        return self.error_rate > 0 or any(known.error_rate > 0 for known in self.priors.values())

    def reason(self, correct: int, top_wrong: int, judged: int, attempts: int) -> DropReason | None:
        """Return the drop reason of these final counts, or None."""
        band = self.band
        if attempts < band.required_judged:
            return DropReason.TOO_FEW_ATTEMPTS
        if judged < band.required_judged or not self.is_certain(correct, top_wrong, attempts - judged, attempts):
            return DropReason.VERIFIER_FAILED
        if self._is_suspected(top_wrong, judged):
            return DropReason.SUSPECTED_WRONG_LABEL
        if correct < band.min_correct:
            return DropReason.NEVER_SOLVED
        return DropReason.TOO_EASY if correct > self.max_correct(judged) else None

    def is_certain(self, correct: int, top_wrong: int, unknown: int, total: int) -> bool:
        """Return whether every outcome of ``unknown`` attempts leads to the same decision."""
        if self._is_suspected(top_wrong, total):
            return True
        if self._is_suspected(top_wrong + unknown, total):
            return False
        if correct < self.band.min_correct:
            return correct + unknown < self.band.min_correct
        max_correct = self.max_correct(total)
        return correct > max_correct or correct + unknown <= max_correct

    def is_decided(self, counts: OutcomeCounts) -> bool:
        """Return whether remaining and failed attempts cannot change the decision."""
        band, remaining = self.band, self.band.attempts - counts.requested
        if remaining <= 0 or counts.attempts + remaining < band.required_judged:
            return True
        if counts.judged < band.required_judged:
            return False
        return self.is_certain(counts.correct, counts.top_wrong, counts.failed + remaining, counts.attempts + remaining)

    def should_stop(self, counts: OutcomeCounts) -> bool:
        """Return whether a problem stops at these counts."""
        if counts.requested >= self.band.attempts:
            return True
        if not self.early_stopping:
            return False
        stops = self._stops.get(counts)
        if stops is None:
            foresees = self.error_rate > 0 and not counts.failed
            stops = self.is_decided(counts) or (foresees and self._is_foreseen(counts))
            self._stops[counts] = stops
        return stops

    def needed(self, counts: OutcomeCounts) -> int:
        """Return the min number of further attempts before a possible stop."""
        fewest = self._needed.get(counts)
        if fewest is None:
            fewest = 0 if self.should_stop(counts) else self._count_needed(counts)
            self._needed[counts] = fewest
        return fewest

    def _count_needed(self, now: OutcomeCounts) -> int:
        remaining = self.band.attempts - now.requested
        if not self.early_stopping:
            return remaining
        for more in range(1, remaining):
            requested, attempts, judged = now.requested + more, now.attempts + more, now.judged + more
            solved = now.correct + min(more, max(0, self.band.min_correct - now.correct))
            ends = (
                OutcomeCounts(now.correct + more, now.top_wrong, judged, attempts, requested),
                OutcomeCounts(now.correct, now.top_wrong + more, judged, attempts, requested),
                OutcomeCounts(now.correct, now.top_wrong, judged, attempts, requested),
                OutcomeCounts(solved, now.top_wrong, judged, attempts, requested),
            )
            if any(self.should_stop(end) for end in ends):
                return more
        return remaining

    def counts_at_stop(self, outcomes: Iterable[AttemptOutcome]) -> OutcomeCounts:
        """Return the counts at the stop, or of all attempts."""
        tally = OutcomeTally()
        for outcome, answer_class in outcomes:
            if self.should_stop(tally.add(outcome, answer_class)):
                break
        return tally.counts

    def ending(self, outcomes: Sequence[AttemptOutcome]) -> tuple[str | None, int]:
        """Return the decision, and the attempts it took."""
        counts = self.counts_at_stop(outcomes)
        return self.decision(counts), counts.requested

    def decision(self, counts: OutcomeCounts) -> str | None:
        """Return the decision at a stop, foreseen or counted."""
        if self.error_rate > 0 and not counts.failed and not self.is_decided(counts):
            return self.likely_decision(counts)[0]
        return self.reason(counts.correct, counts.top_wrong, counts.judged, counts.attempts)

    def stopping_point(self, outcomes: Sequence[AttemptOutcome]) -> StoppingPoint:
        """Return where a problem stops; cached."""
        key = tuple(outcomes)
        point = self._points.get(key)
        if point is None:
            counts = self.counts_at_stop(key)
            is_decided, rate = bool(key) and self.should_stop(counts), self.unbiased_pass_rate(key[: counts.requested])
            point = self._points[key] = StoppingPoint(counts.requested, is_decided, rate)
            if len(self._points) > 200_000:
                self._points.clear()
        return point

    def unbiased_pass_rate(self, outcomes: Sequence[AttemptOutcome]) -> float | None:
        """Return the unbiased pass rate, or None without judged attempts.

        Girshick, Mosteller and Savage 1946; Blackwell 1947.
        """
        correct = sum(outcome is Outcome.CORRECT for outcome, _ in outcomes)
        judged = sum(outcome in _JUDGED for outcome, _ in outcomes)
        if not judged:
            return None
        if not self.early_stopping:
            return correct / judged
        top_wrong_votes = _running_top_wrong_votes(outcomes)
        # by correct attempts so far: orders that did not stop, and those that begin with a correct attempt
        orders = {0: (1, 0)}
        judged_so_far = attempts = 0
        for position, (outcome, _) in enumerate(outcomes, 1):
            attempts += outcome is not None
            if outcome in _JUDGED:
                judged_so_far += 1
                orders = _extend_orders(orders, correct, judged - correct, judged_so_far)
            if position < len(outcomes):
                for solved in list(orders):
                    top_wrong = top_wrong_votes[judged_so_far - solved]
                    now = OutcomeCounts(solved, top_wrong, judged_so_far, attempts, position)
                    if self.should_stop(now):
                        del orders[solved]
        ways, begun_correct = orders[correct]
        return begun_correct / ways

    def likely_decision(self, counts: OutcomeCounts) -> tuple[str | None, float]:
        """Return the likeliest final decision and its probability."""
        remaining = self.band.attempts - counts.requested
        table = self._forecast(counts.judged + remaining, counts.attempts + remaining)
        at = counts.correct, counts.top_wrong
        return table.reasons[table.best[counts.judged][at]], float(table.chance[counts.judged][at])

    def expectation(self) -> Expectation:
        """Return the `Expectation` under the rule's prior."""
        n = self.band.attempts
        if not self.early_stopping:
            return Expectation(n, 0.0)
        if self._expectation is None:
            table = self._forecast(n, n)
            self._expectation = expectation(self.prior, table, self.error_rate, self.band.required_judged)
        return self._expectation

    def _forecast(self, judged: int, attempts: int) -> Forecast:
        table = self._tables.get((self.prior, judged, attempts))
        if table is None:
            table = self._tables[self.prior, judged, attempts] = forecast(self.prior, self.reason, judged, attempts)
        return table

    def _is_foreseen(self, counts: OutcomeCounts) -> bool:
        return counts.judged > 0 and self.likely_decision(counts)[1] >= 1 - self.error_rate

    def _is_suspected(self, top_wrong: int, judged: int) -> bool:
        band = self.band
        return top_wrong >= WRONG_LABEL_VOTES and top_wrong > band.wrong_label_share * judged + _TOLERANCE

    def max_correct(self, judged: int) -> int:
        """Return the max correct attempts of kept problems."""
        return int(judged * self.band.max_pass_rate + _TOLERANCE)


def _running_top_wrong_votes(outcomes: Sequence[AttemptOutcome]) -> list[int]:
    """Return the top wrong votes after 0, 1, 2, … incorrect attempts."""
    tally = OutcomeTally()
    incorrect = [pair for pair in outcomes if pair[0] in _JUDGED and pair[0] is not Outcome.CORRECT]
    return [0, *(tally.add(*pair).top_wrong for pair in incorrect)]


def _extend_orders(
    orders: Mapping[int, tuple[int, int]], correct: int, incorrect: int, judged: int
) -> dict[int, tuple[int, int]]:
    """Return the counts one attempt longer, of all orders and of those that begin with a correct attempt."""
    longer: dict[int, tuple[int, int]] = {}
    for solved, (ways, begun) in orders.items():
        steps = [(solved + 1, ways if judged == 1 else begun)] if solved < correct else []
        if judged - solved <= incorrect:
            steps.append((solved, begun))
        for at, begun_correct in steps:
            so_far = longer.get(at, (0, 0))
            longer[at] = so_far[0] + ways, so_far[1] + begun_correct
    return longer
