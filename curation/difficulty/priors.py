"""Derives priors of early stopping from an item response model, and checks them on the anchor.

Invariants: pure; a problem's prior never reads the policy's own attempts at it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb, erfc, sqrt

import numpy as np
import polars as pl

from curation.config import Band
from curation.difficulty.early_stopping import AttemptOutcome, Prior, ProblemPrior, StoppingRule
from curation.difficulty.item_response import (
    Array,
    ItemResponseModel,
    difficulty_posteriors,
    domain_counts,
    fit,
    observations,
    posterior_means,
    rising,
)

SIDES = pl.Schema({"problem": pl.String(), "below": pl.Float64(), "inside": pl.Float64(), "above": pl.Float64()})
"""Probabilities that fresh attempts end below, inside or above the band."""

TENTHS = 10
"""Calibration classes of equal size."""

_TOLERANCE = 1e-9
_REFUSED_BELOW = 1e-3
_REFUSED_ABOVE = 0.05


def beta_sides(correct: Array, other: Array, band: Band) -> Array:
    """Return [rows, 3] probabilities of `SIDES`."""
    n, max_correct = band.attempts, int(band.attempts * band.max_pass_rate + _TOLERANCE)
    of_correct, of_wrong = rising(correct, n), rising(other, n)
    ways = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    choose = ways[n] - ways - ways[::-1]
    chances = np.exp(choose[:, None] + of_correct + of_wrong[::-1] - rising(correct + other, n)[n])
    cuts = (slice(0, band.min_correct), slice(band.min_correct, max_correct + 1), slice(max_correct + 1, n + 1))
    return np.stack([chances[cut].sum(axis=0) for cut in cuts], axis=1)


@dataclass(frozen=True, slots=True)
class Calibration:
    """Expected and seen shares of correct attempts, by tenths of the problems.

    Args:
        worst: a tenth's max deviation beyond two standard errors.
    """

    tenths: pl.DataFrame
    p_value: float
    worst: float

    @property
    def holds(self) -> bool:
        """Return whether deviations are random or too small to matter."""
        return self.p_value >= _REFUSED_BELOW or self.worst <= _REFUSED_ABOVE

    def worst_tenth(self, policy: str) -> str:
        """Describe the tenth with the largest z-value."""
        worst = self.tenths.sort(pl.col("z").abs(), descending=True).row(0, named=True)
        return (
            f"what others solve does not predict what {policy} solves (of its tenth {worst['tenth'] + 1} "
            f"{worst['expected']:.2f} was expected and {worst['seen']:.2f} seen)"
        )


def calibration(model: ItemResponseModel, counts: pl.DataFrame, policy: str) -> Calibration:
    """Compare a policy's attempts with expectations without them."""
    own = (
        counts.filter((pl.col("policy") == policy) & (pl.col("judged") > 0))
        .group_by("problem")
        .agg(pl.col("correct").sum(), pl.col("judged").sum())
        .sort("problem")
    )
    tried = counts.join(own.select("problem"), on="problem", how="semi")
    domains = domain_counts(tried, own["problem"])
    rows = [_expected(model.in_domain(domain), own_counts, own, policy, names) for domain, own_counts, names in domains]
    table = pl.concat(rows).sort("expected", "problem")
    by = (pl.int_range(pl.len()) * TENTHS // pl.len()).alias("tenth")
    sums = (
        table.sort(pl.col("expected") / pl.col("judged"), "problem")
        .with_columns(by)
        .group_by("tenth", maintain_order=True)
        .agg(pl.col("correct", "judged", "expected", "variance").sum())
        .with_columns(z=(pl.col("correct") - pl.col("expected")) / pl.col("variance").clip(1e-12).sqrt())
    )
    tenths = sums.select(
        "tenth",
        expected=pl.col("expected") / pl.col("judged"),
        seen=pl.col("correct") / pl.col("judged"),
        attempts="judged",
        z="z",
    )
    beyond = ((sums["correct"] - sums["expected"]).abs() - 2 * sums["variance"].sqrt()) / sums["judged"]
    return Calibration(tenths, _chi_squared_tail(float((sums["z"] ** 2).sum()), sums.height), float(beyond.max() or 0))  # type: ignore[arg-type]


def _expected(
    model: ItemResponseModel, counts: pl.DataFrame, own: pl.DataFrame, policy: str, problems: pl.Series
) -> pl.DataFrame:
    """Return a domain's rows of ``own`` with expected correct attempts and variance."""
    own = own.join(problems.alias("problem").to_frame(), on="problem", how="semi", maintain_order="left")
    seen = observations(counts.filter(pl.col("policy") != policy), own["problem"])
    weights, means, k = difficulty_posteriors(model, seen)[seen.pattern], model.means(policy), model.concentration
    n = own["judged"].to_numpy().astype(np.float64)
    mean = weights @ means
    within = (weights @ (means * (1 - means))) * n * (k + n) / (k + 1)
    return own.with_columns(expected=mean * n, variance=within + n**2 * (weights @ means**2 - mean**2))


def _chi_squared_tail(value: float, freedom: int) -> float:
    """Return P(chi-squared > value) (Wilson and Hilferty 1931)."""
    if freedom == 0:
        return 1.0
    z = ((value / freedom) ** (1 / 3) - (1 - 2 / (9 * freedom))) / sqrt(2 / (9 * freedom))
    return 0.5 * erfc(z / sqrt(2))


PRIOR = pl.Schema(
    {
        "problem": pl.String(),
        "correct": pl.Float64(),  # Beta(correct, other) of the share of correct attempts
        "other": pl.Float64(),
        "agree": pl.Float64(),  # Beta(agree, differ) of the share of the others that agree with the top wrong answer
        "differ": pl.Float64(),
        "error_rate": pl.Float64(),  # with which a decision may be foreseen wrongly; 0: none is foreseen
        "informed_by": pl.String(),  # whose attempts at the problem it counts, as `policy 12, other 3`; may be empty
    }
)

REFUSED_BELOW = 0.01
"""Min probability of the lost decisions at the error rate."""

_MEAN_STEP, _SIZE_STEP = 0.2, 0.35
"""Rounding steps of a prior's mean (logits) and size (logarithm)."""

_MIN_SIZE, _MAX_SIZE = 0.2, 400.0
_AGREE_MEANS, _AGREE_SIZES = np.linspace(0.02, 0.98, 49), np.geomspace(0.3, 60, 24)


def problem_priors(
    model: ItemResponseModel,
    counts: pl.DataFrame,
    policy: str,
    problems: pl.Series,
    agreement: tuple[float, float],
    error_rate: float,
) -> pl.DataFrame:
    """Return a policy's `PRIOR` rows in the order of ``problems``.

    Args:
        counts: problem, policy, correct, judged of all policies, and ``domain`` if modelled.
    """
    others = counts.filter(pl.col("policy") != policy)
    domains = domain_counts(others, problems)
    rows = [_priors(model.in_domain(domain), own_counts, policy, names) for domain, own_counts, names in domains]
    table = pl.concat(rows).with_columns(
        agree=pl.lit(agreement[0]), differ=pl.lit(agreement[1]), error_rate=pl.lit(error_rate)
    )
    ids = problems.alias("problem").to_frame()
    informed = ids.join(table, on="problem", how="left", maintain_order="left")
    informed = informed.join(_informants(others, problems), on="problem", how="left", maintain_order="left")
    return informed.with_columns(pl.col("informed_by").fill_null("")).select(PRIOR.names()).cast(PRIOR)


def _informants(counts: pl.DataFrame, problems: pl.Series) -> pl.DataFrame:
    tried = counts.filter((pl.col("judged") > 0) & pl.col("problem").is_in(problems.implode()))
    sums = tried.group_by("problem", "policy").agg(pl.col("judged").sum()).sort("problem", "policy")
    named = pl.format("{} {}", "policy", "judged").str.join(", ").alias("informed_by")
    return sums.group_by("problem", maintain_order=True).agg(named)


def _priors(model: ItemResponseModel, counts: pl.DataFrame, policy: str, problems: pl.Series) -> pl.DataFrame:
    seen = observations(counts, problems)
    means, k = model.means(policy), model.concentration
    mean, square = posterior_means(model, seen, np.stack([means, means * (means * k + 1) / (k + 1)], axis=1)).T
    variance = square - mean**2
    size = np.clip(mean * (1 - mean) / np.maximum(variance, 1e-12) - 1, _MIN_SIZE, _MAX_SIZE)
    correct, other = rounded(mean, size)
    return pl.DataFrame({"correct": correct[seen.pattern], "other": other[seen.pattern]}).with_columns(seen.problems)


def rounded(mean: Array, size: Array) -> tuple[Array, Array]:
    """Return rounded Beta distributions of these means and sizes (a + b)."""
    logit = np.round(np.log(mean / (1 - mean)) / _MEAN_STEP) * _MEAN_STEP
    mean, size = 1 / (1 + np.exp(-logit)), np.exp(np.round(np.log(size) / _SIZE_STEP) * _SIZE_STEP)
    return mean * size, (1 - mean) * size


def agreement_prior(rates: pl.DataFrame) -> tuple[float, float]:
    """Return the likeliest Beta distribution of agreement on the top wrong answer.

    Args:
        rates: with correct, judged and top_wrong_votes.
    """
    votes = (
        rates.select(agree="top_wrong_votes", others=pl.col("judged") - pl.col("correct"))
        .filter(pl.col("others") > 0)
        .group_by("agree", "others")
        .agg(problems=pl.len())
        .sort("agree", "others")
    )
    means, sizes = (grid.ravel() for grid in np.meshgrid(_AGREE_MEANS, _AGREE_SIZES))
    fit = -0.5 * np.log(sizes) ** 2 - 2 * (means - 0.5) ** 2
    if votes.height:
        max_wrong = int(votes["others"].max())  # type: ignore[arg-type]
        of_agree, of_differ = rising(means * sizes, max_wrong), rising((1 - means) * sizes, max_wrong)
        of_all = rising(sizes, max_wrong)
        agree, others = votes["agree"].to_numpy(), votes["others"].to_numpy()
        fit = fit + votes["problems"].to_numpy() @ (of_agree[agree] + of_differ[others - agree] - of_all[others])
    best = int(np.argmax(fit))
    return round(float(means[best] * sizes[best]), 4), round(float((1 - means[best]) * sizes[best]), 4)


def as_priors(table: pl.DataFrame) -> dict[str, ProblemPrior]:
    """Return `PRIOR` rows as `StoppingRule.given` takes them."""
    known: dict[tuple[object, ...], ProblemPrior] = {}
    priors = {}
    for problem, *numbers, error_rate, informed_by in table.select(PRIOR.names()).iter_rows():
        key = (*numbers, error_rate, informed_by)
        if key not in known:
            known[key] = ProblemPrior(Prior(*numbers), error_rate, informed_by)
        priors[problem] = known[key]
    return priors


@dataclass(frozen=True, slots=True)
class Replay:
    """Outcome of stopping by priors; all attempts decide the ``lost`` problems otherwise."""

    problems: int
    lost: int
    attempts: int
    attempts_without: int
    error_rate: float

    @property
    def holds(self) -> bool:
        """Return whether the lost decisions fit the error rate."""
        fewer = sum(
            comb(self.problems, lost) * self.error_rate**lost * (1 - self.error_rate) ** (self.problems - lost)
            for lost in range(self.lost)
        )
        return 1 - fewer >= REFUSED_BELOW


def replay(
    rule: StoppingRule, exact: StoppingRule, attempts: Mapping[str, Sequence[AttemptOutcome]], error_rate: float
) -> Replay:
    """Return the outcome of stopping by priors.

    Args:
        rule: `StoppingRule.given` the priors.
        exact: the rule that stopped the attempts.
        attempts: in index order.
    """
    lost = needed = without = 0
    for problem, outcomes in attempts.items():
        full, early = exact.of(problem).ending(outcomes), rule.of(problem).ending(outcomes)
        without += full[1]
        needed += early[1]
        lost += full[0] != early[0]
    return Replay(len(attempts), lost, needed, without, error_rate)


@dataclass(frozen=True, slots=True)
class LearntPriors:
    """A policy's `PRIOR` rows and their checks."""

    policy: str
    table: pl.DataFrame
    calibration: Calibration
    replay: Replay
    of_anchor: pl.DataFrame

    @property
    def hold(self) -> bool:
        """Return whether the priors may be used."""
        return self.calibration.holds and self.replay.holds

    @property
    def sentence(self) -> str:
        """Describe what the priors save, or their refusal."""
        replay = self.replay
        if not self.calibration.holds:
            return (
                f"the difficulty model is not used: {self.calibration.worst_tenth(self.policy)}, so sampling stops by "
                "the attempts alone"
            )
        if not replay.holds:
            return (
                f"the difficulty model is not used: of {replay.problems:,} problems judged in full it would have "
                f"decided {replay.lost:,} otherwise, more than an error rate of {replay.error_rate:g} allows, so "
                "sampling stops by the attempts alone"
            )
        return (
            f"the difficulty model is used: on {replay.problems:,} problems judged in full it would have needed "
            f"{replay.attempts:,} attempts instead of {replay.attempts_without:,} and decided {replay.lost:,} otherwise"
        )


def learn_priors(
    counts: pl.DataFrame,
    rates: pl.DataFrame,
    policy: str,
    problems: pl.Series,
    attempts: Mapping[str, Sequence[AttemptOutcome]],
    exact: StoppingRule,
    error_rate: float,
) -> LearntPriors:
    """Return a policy's priors, checked on its anchor.

    Args:
        counts: problem, policy, correct, judged of all policies.
        rates, attempts: of the anchor; attempts in order, up to the stops of ``exact``.
        problems: ids; the anchor's get no priors.
    """
    tried = counts.filter((pl.col("policy") == policy) & (pl.col("judged") > 0))["problem"]
    model = fit(counts, always=tried)
    agreement = agreement_prior(rates)
    of_anchor = problem_priors(model, counts, policy, pl.Series("problem", list(attempts)), agreement, error_rate)
    replayed = replay(exact.given(as_priors(of_anchor)), exact, attempts, error_rate)
    others = problems.filter(~problems.is_in(list(attempts)))
    table = problem_priors(model, counts, policy, others, agreement, error_rate)
    return LearntPriors(policy, table, calibration(model, counts, policy), replayed, of_anchor)
