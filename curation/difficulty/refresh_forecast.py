"""What a refresh will come to: how sure to be before a problem is left as it is, or its attempts end.

Each problem that its policy has not judged has a prior (`curation.difficulty.priors`), corrected by what the anchor's
attempts came to (`curation.difficulty.recalibration`). Left as it is, its decision is wrong with the probability that
fresh attempts would decide otherwise; judged again, with the probability at which its attempts end. One threshold
serves both: the largest at which all problems together are expected to lose no more of their decisions than the
settings allow. So attempts go where they settle most.

Pure functions over frames. The threshold is refused where the anchor, whose attempts are all there, refutes it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from curation.difficulty.anchor import Anchor
from curation.difficulty.early_stopping import AttemptOutcome, ProblemPrior, StoppingRule
from curation.difficulty.posteriors import SIDES, beta_sides
from curation.difficulty.priors import Replay, agreement_prior, as_priors, problem_priors, replay
from curation.difficulty.recalibration import Recalibration, recalibrate
from curation.difficulty.refresh import expected_side

THRESHOLDS = tuple(float(value) for value in np.round(np.arange(0.005, 0.3001, 0.005), 3))
"""Those that are tried, ascending."""


@dataclass(frozen=True, slots=True)
class RefreshForecast:
    """How a refresh spends its attempts.

    Args:
        threshold: probability of another decision below which a problem is left, or its attempts end.
        sides: `SIDES` rows of all problems; ``priors`` `PRIOR` rows of those that the anchor has not judged.
        lost: expected share of all decisions that will not be a full judgement's.
        share: expected attempts, the anchor's among them, of those of a full judgement.
        replay: the threshold on the anchor.
        correction: of the priors, by the anchor's attempts.
    """

    threshold: float
    sides: pl.DataFrame
    priors: pl.DataFrame
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
    decisions: pl.DataFrame,
    attempts: Mapping[str, Sequence[AttemptOutcome]],
    rule: StoppingRule,
    error_rate: float,
) -> RefreshForecast:
    """Return how to spend the attempts of a refresh.

    Args:
        decisions: `DECISION` rows of the set's last version.
        attempts: of the anchor's problems, in the order of the index, up to their stop.
        rule: without priors.
        error_rate: share of all decisions that may differ from a full judgement's.
    """
    names = decisions["problem"]
    agreement = agreement_prior(decisions.filter(pl.col("judged") > 0))
    table = problem_priors(anchor.model, anchor.counts, anchor.policy, names, agreement, 0.0)
    correction = recalibrate(table, anchor.counts.filter(pl.col("policy") == anchor.policy))
    table = correction.applied(table)
    is_anchor = names.is_in(list(attempts)).to_numpy()
    columns = ("correct", "other", "agree", "differ")
    keys = table.select(columns).unique(maintain_order=True).with_row_index("key")
    of_problem = table.join(keys, on=columns, how="left", maintain_order="left")["key"].to_numpy()
    priors = list(as_priors(keys.with_columns(problem=pl.col("key").cast(pl.String), error_rate=0.0)).values())
    sides = beta_sides(keys["correct"].to_numpy(), keys["other"].to_numpy(), rule.band)[of_problem]
    change = _change(decisions, sides)
    full = _expected(rule, priors, 0.0)[0][of_problem]

    def outcome(threshold: float) -> tuple[float, float]:
        needed, lost = _expected(rule, priors, threshold)
        is_asked = ~is_anchor & (change >= threshold)
        losses = np.where(is_asked, lost[of_problem], np.where(is_anchor, 0.0, change))
        spent = needed[of_problem][is_asked].sum() + full[is_anchor].sum()
        return float(losses.mean()), float(spent / full.sum())

    place = bisect_right(THRESHOLDS, error_rate, lo=1, key=lambda threshold: outcome(threshold)[0]) - 1
    threshold = THRESHOLDS[place]
    table = table.with_columns(error_rate=pl.lit(threshold))
    known = as_priors(table.filter(pl.Series(is_anchor)))
    replayed = replay(rule.given(known), rule, attempts, threshold)
    table = table.filter(pl.Series(~is_anchor))
    of_sides = pl.DataFrame(sides, SIDES.names()[1:], orient="row").with_columns(names.alias("problem"))
    return RefreshForecast(
        threshold, of_sides.select(SIDES.names()).cast(SIDES), table, *outcome(threshold), replayed, correction
    )


def _expected(rule: StoppingRule, priors: list[ProblemPrior], error_rate: float) -> tuple[np.ndarray, np.ndarray]:
    """Return [priors] the attempts and the lost decisions that are expected of each."""
    known = {str(place): ProblemPrior(prior.prior, error_rate) for place, prior in enumerate(priors)}
    rules = rule.given(known)
    found = [rules.of(name).expectation() for name in known]
    return np.array([item.attempts for item in found]), np.array([item.lost for item in found])


def _change(decisions: pl.DataFrame, sides: np.ndarray) -> np.ndarray:
    """Return the probability that fresh attempts decide otherwise than was decided; ``sides`` are [problems, 3]."""
    where = np.array([expected_side(reason) for reason in decisions["reason"]])
    return np.asarray(1 - sides[np.arange(len(sides)), 1 + where])
