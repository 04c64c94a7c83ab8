"""What a refresh will come to: how sure to be before a problem is left as it is, or its attempts end.

Each problem that its policy has not judged has a prior (`curation.difficulty.priors`), corrected by what the anchor's
attempts came to (`curation.difficulty.recalibration`). Left as it is, its decision is wrong with the probability that
fresh attempts would decide otherwise; judged again, with the probability at which its attempts end. One threshold
serves both: the largest at which all problems together are expected to lose no more of their decisions than the
settings allow. So attempts go where they settle most.

Problems come part by part: many of them share a prior, and of each only its prior's number is kept (4 bytes).

Pure functions over frames. The threshold is refused where the anchor, whose attempts are all there, refutes it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from curation.difficulty.anchor import Anchor
from curation.difficulty.early_stopping import AttemptOutcome, ProblemPrior, StoppingRule
from curation.difficulty.observations import Array
from curation.difficulty.posteriors import SIDES, beta_sides
from curation.difficulty.priors import (
    PRIOR,
    Replay,
    agreement_of_votes,
    as_priors,
    problem_priors,
    replay,
    wrong_votes,
)
from curation.difficulty.recalibration import Recalibration, recalibrate
from curation.difficulty.refresh import expected_side

THRESHOLDS = tuple(float(value) for value in np.round(np.arange(0.005, 0.3001, 0.005), 3))
"""Those that are tried, ascending."""


_SHARED = ("correct", "other", "agree", "differ")
"""What makes a prior, of the columns of `PRIOR`."""


@dataclass(frozen=True, slots=True)
class ForecastPart:
    """Some of a set's problems: their `DECISION` rows in the set's last version, and everyone's counts at them."""

    decisions: pl.DataFrame
    counts: pl.DataFrame


@dataclass(frozen=True, slots=True)
class SharedPriors:
    """The priors of all problems, each met once.

    Args:
        table: the columns of `PRIOR` but for the problem and the error rate, one row a prior.
        sides: [priors, 3] the chances of each side of the band.
        of_part: for each part [problems] the place of each problem's prior.
    """

    table: pl.DataFrame
    sides: Array
    of_part: tuple[np.ndarray, ...]

    def sides_of(self, part: int, problems: pl.Series) -> pl.DataFrame:
        """Return the `SIDES` rows of a part, whose problems these are."""
        found = pl.DataFrame(self.sides[self.of_part[part]], SIDES.names()[1:], orient="row")
        return found.with_columns(problems.alias("problem")).select(SIDES.names()).cast(SIDES)

    def priors_of(self, part: int, problems: pl.Series, error_rate: float) -> pl.DataFrame:
        """Return the `PRIOR` rows of a part, whose problems these are."""
        found = self.table[self.of_part[part]]
        return found.with_columns(problems.alias("problem"), error_rate=error_rate).select(PRIOR.names()).cast(PRIOR)


@dataclass(frozen=True, slots=True)
class RefreshForecast:
    """How a refresh spends its attempts.

    Args:
        threshold: probability of another decision below which a problem is left, or its attempts end.
        shared: the priors of all problems; the anchor's problems need theirs no more.
        lost: expected share of all decisions that will not be a full judgement's.
        share: expected attempts, the anchor's among them, of those of a full judgement.
        replay: the threshold on the anchor.
        correction: of the priors, by the anchor's attempts.
    """

    threshold: float
    shared: SharedPriors
    lost: float
    share: float
    replay: Replay
    correction: Recalibration

    @property
    def sentence(self) -> str:
        """Return in one sentence what the refresh is expected to come to, or why it goes on without the model."""
        if not self.replay.holds:
            return (
                f"anchor: stopping at {self.threshold:g} would have decided {self.replay.lost} of its "
                f"{self.replay.problems} problems otherwise, so attempts are made until they decide by themselves"
            )
        return (
            f"anchor: {100 * self.lost:.1f} % of the decisions are expected to differ from a full judgement's, for "
            f"{100 * self.share:.0f} % of its attempts"
        )


def foresee_refresh(
    anchor: Anchor,
    parts: Iterable[ForecastPart],
    attempts: Mapping[str, Sequence[AttemptOutcome]],
    rule: StoppingRule,
    error_rate: float,
) -> RefreshForecast:
    """Return how to spend the attempts of a refresh.

    Args:
        parts: all problems of the set; they are gone through twice.
        attempts: of the anchor's problems, in the order of the index, up to their stop.
        rule: without priors.
        error_rate: share of all decisions that may differ from a full judgement's.
    """
    votes = [wrong_votes(part.decisions.filter(pl.col("judged") > 0)) for part in parts]
    summed = pl.concat(votes).group_by("agree", "others").agg(pl.col("problems").sum()).sort("agree", "others")
    agreement = agreement_of_votes(summed)
    own = anchor.counts.filter(pl.col("policy") == anchor.policy)
    names = own["problem"].unique()
    correction = recalibrate(problem_priors(anchor.model, anchor.counts, anchor.policy, names, agreement, 0.0), own)
    gathered = _Gathered(attempts)
    for part in parts:
        names = part.decisions["problem"]
        table = problem_priors(anchor.model, part.counts, anchor.policy, names, agreement, 0.0)
        gathered.add(part.decisions, correction.applied(table))
    shared = gathered.shared(rule)
    outcome = _Outcomes(shared, gathered.classes, rule)
    place = bisect_right(THRESHOLDS, error_rate, lo=1, key=lambda threshold: outcome.of(threshold)[0]) - 1
    threshold = THRESHOLDS[place]
    known = as_priors(pl.concat(gathered.of_anchor).with_columns(error_rate=pl.lit(threshold)))
    replayed = replay(rule.given(known), rule, attempts, threshold)
    return RefreshForecast(threshold, shared, *outcome.of(threshold), replayed, correction)


@dataclass(slots=True)
class _Gathered:
    """What is kept of the parts: each prior once, and how many problems of each class have it.

    ``classes`` counts problems by prior, side of the band, and whether the anchor has judged them.
    """

    attempts: Mapping[str, Sequence[AttemptOutcome]]
    keys: dict[tuple[object, ...], int] = field(default_factory=dict)
    of_part: list[np.ndarray] = field(default_factory=list)
    classes: dict[tuple[int, int, bool], int] = field(default_factory=dict)
    of_anchor: list[pl.DataFrame] = field(default_factory=lambda: [PRIOR.to_frame()])

    def add(self, decisions: pl.DataFrame, table: pl.DataFrame) -> None:
        """Take in the problems of a part with their `PRIOR` rows, which are in the same order."""
        columns = [*_SHARED, "informed_by"]
        unique = table.select(columns).unique(maintain_order=True)
        unique = unique.with_columns(
            key=pl.Series([self.keys.setdefault(row, len(self.keys)) for row in unique.iter_rows()], dtype=pl.UInt32)
        )
        key = table.join(unique, on=columns, how="left", maintain_order="left")["key"]
        self.of_part.append(key.to_numpy())
        is_anchor = table["problem"].is_in(list(self.attempts))
        self.of_anchor.append(table.filter(is_anchor))
        where = pl.Series([expected_side(reason) for reason in decisions["reason"]], dtype=pl.Int8)
        met = pl.DataFrame({"key": key, "where": where, "is_anchor": is_anchor})
        for *of_class, problems in met.group_by(pl.all()).len().sort(pl.all()).iter_rows():
            at = tuple(of_class)
            self.classes[at] = self.classes.get(at, 0) + problems

    def shared(self, rule: StoppingRule) -> SharedPriors:
        """Return the priors with the chances of each side of the rule's band."""
        schema = {name: PRIOR[name] for name in (*_SHARED, "informed_by")}
        table = pl.DataFrame(list(self.keys), schema, orient="row")
        sides = beta_sides(table["correct"].to_numpy(), table["other"].to_numpy(), rule.band)
        return SharedPriors(table, sides, tuple(self.of_part))


class _Outcomes:
    """What each threshold is expected to come to, over all classes of problems."""

    def __init__(self, shared: SharedPriors, classes: Mapping[tuple[int, int, bool], int], rule: StoppingRule) -> None:
        keys = shared.table.select(_SHARED).unique(maintain_order=True).with_row_index("key")
        of_prior = shared.table.join(keys, on=_SHARED, how="left", maintain_order="left")["key"].to_numpy()
        named = keys.with_columns(problem=pl.col("key").cast(pl.String), error_rate=0.0)
        self._priors, self._rule = list(as_priors(named).values()), rule
        prior, where, is_anchor = (np.array(column) for column in zip(*sorted(classes), strict=True))
        self._problems = np.array([classes[at] for at in sorted(classes)], dtype=np.float64)
        self._key, self._is_anchor = of_prior[prior], is_anchor
        self._change = 1 - shared.sides[prior, 1 + where]
        self._full = _expected(rule, self._priors, 0.0)[0][self._key]

    def of(self, threshold: float) -> tuple[float, float]:
        """Return the share of all decisions that are lost, and of a full judgement's attempts that are made."""
        needed, lost = _expected(self._rule, self._priors, threshold)
        is_asked = ~self._is_anchor & (self._change >= threshold)
        losses = np.where(is_asked, lost[self._key], np.where(self._is_anchor, 0.0, self._change))
        made = np.where(is_asked, needed[self._key], np.where(self._is_anchor, self._full, 0.0))
        weights, full = self._problems, float(self._problems @ self._full)
        return float(weights @ losses / weights.sum()), float(weights @ made) / full


def _expected(rule: StoppingRule, priors: list[ProblemPrior], error_rate: float) -> tuple[np.ndarray, np.ndarray]:
    """Return [priors] the attempts and the lost decisions that are expected of each."""
    known = {str(place): ProblemPrior(prior.prior, error_rate) for place, prior in enumerate(priors)}
    rules = rule.given(known)
    found = [rules.of(name).expectation() for name in known]
    return np.array([item.attempts for item in found]), np.array([item.lost for item in found])
