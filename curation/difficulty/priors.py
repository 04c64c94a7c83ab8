"""Priors of early stopping from an item response model: what everyone's attempts say of a problem before its own.

For a policy that has not tried a problem its pass rate there is a mixture of Beta distributions over the difficulties
that everyone's attempts leave possible (`curation.difficulty.posteriors`). Early stopping takes the one Beta
distribution of the same mean and variance, rounded to steps that are small beside what a few attempts tell, so that
many problems share one table of forecasts. The share of wrong attempts that agree has a Beta prior of its own, learnt
from all problems.

A prior is used only where it bears itself out. `replay` stops the anchor's problems, which have their attempts, as the
prior would have: where more decisions are lost than the error rate allows, or the model's expectations are refuted
(`Calibration`), the priors are refused, and the rule goes on without them.

Pure functions over frames. A problem's prior never looks at the policy's own attempts at it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb

import numpy as np
import polars as pl

from curation.difficulty.early_stopping import AttemptOutcome, ProblemPrior, StoppingRule
from curation.difficulty.forecast import Prior
from curation.difficulty.item_response import ItemResponseModel, fit, posterior_means, rising
from curation.difficulty.observations import Array, observations, parts_of_domains
from curation.difficulty.posteriors import Calibration, calibration

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
"""Priors are refused where so many lost decisions have a smaller probability at the error rate."""

_MEAN_STEP, _SIZE_STEP = 0.2, 0.35
"""Priors are rounded to so many logits of their mean, and so much in the logarithm of their size."""

_LEAST_SIZE, _MOST_SIZE = 0.2, 400.0
_AGREE_MEANS, _AGREE_SIZES = np.linspace(0.02, 0.98, 49), np.geomspace(0.3, 60, 24)


def problem_priors(
    model: ItemResponseModel,
    counts: pl.DataFrame,
    policy: str,
    problems: pl.Series,
    agreement: tuple[float, float],
    error_rate: float,
) -> pl.DataFrame:
    """Return `PRIOR` rows of a policy, in the order of ``problems``.

    Args:
        counts: problem, policy, correct, judged: everyone's; the policy's own are left out; and ``domain``, where the
            model tells domains apart.
        agreement: from `agreement_prior`.
    """
    others = counts.filter(pl.col("policy") != policy)
    parts = parts_of_domains(others, problems)
    rows = [_priors(model.in_domain(domain), part, policy, names) for domain, part, names in parts]
    table = pl.concat(rows).with_columns(
        agree=pl.lit(agreement[0]), differ=pl.lit(agreement[1]), error_rate=pl.lit(error_rate)
    )
    ids = problems.alias("problem").to_frame()
    told = ids.join(table, on="problem", how="left", maintain_order="left")
    told = told.join(_informants(others, problems), on="problem", how="left", maintain_order="left")
    return told.with_columns(pl.col("informed_by").fill_null("")).select(PRIOR.names()).cast(PRIOR)


def _informants(counts: pl.DataFrame, problems: pl.Series) -> pl.DataFrame:
    """Return problem and informed_by of the problems that these policies tried."""
    tried = counts.filter((pl.col("judged") > 0) & pl.col("problem").is_in(problems.implode()))
    sums = tried.group_by("problem", "policy").agg(pl.col("judged").sum()).sort("problem", "policy")
    named = pl.format("{} {}", "policy", "judged").str.join(", ").alias("informed_by")
    return sums.group_by("problem", maintain_order=True).agg(named)


def _priors(model: ItemResponseModel, counts: pl.DataFrame, policy: str, problems: pl.Series) -> pl.DataFrame:
    """Return problem, correct and other of the problems of one domain, in any order."""
    seen = observations(counts, problems)
    means, k = model.means(policy), model.concentration
    mean, square = posterior_means(model, seen, np.stack([means, means * (means * k + 1) / (k + 1)], axis=1)).T
    variance = square - mean**2
    size = np.clip(mean * (1 - mean) / np.maximum(variance, 1e-12) - 1, _LEAST_SIZE, _MOST_SIZE)
    correct, other = rounded(mean, size)
    return pl.DataFrame({"correct": correct[seen.pattern], "other": other[seen.pattern]}).with_columns(seen.problems)


def rounded(mean: Array, size: Array) -> tuple[Array, Array]:
    """Return Beta distributions of these means and sizes (a + b), in steps that many problems share."""
    logit = np.round(np.log(mean / (1 - mean)) / _MEAN_STEP) * _MEAN_STEP
    mean, size = 1 / (1 + np.exp(-logit)), np.exp(np.round(np.log(size) / _SIZE_STEP) * _SIZE_STEP)
    return mean * size, (1 - mean) * size


def agreement_prior(rates: pl.DataFrame) -> tuple[float, float]:
    """Return the Beta distribution of the share of other attempts that agree with the top wrong answer.

    The likeliest one on a grid, given each problem's votes as beta-binomial; a weak prior keeps it near Jeffreys' where
    little was seen.

    Args:
        rates: correct, judged and top_wrong_votes of problems.
    """
    return agreement_of_votes(wrong_votes(rates))


def wrong_votes(rates: pl.DataFrame) -> pl.DataFrame:
    """Return how many problems have so many votes that agree of so many others: agree, others, problems."""
    return (
        rates.select(agree="top_wrong_votes", others=pl.col("judged") - pl.col("correct"))
        .filter(pl.col("others") > 0)
        .group_by("agree", "others")
        .agg(problems=pl.len())
        .sort("agree", "others")
    )


def agreement_of_votes(votes: pl.DataFrame) -> tuple[float, float]:
    """Return the `agreement_prior` of the `wrong_votes` of all problems."""
    means, sizes = (grid.ravel() for grid in np.meshgrid(_AGREE_MEANS, _AGREE_SIZES))
    fit = -0.5 * np.log(sizes) ** 2 - 2 * (means - 0.5) ** 2
    if votes.height:
        most = int(votes["others"].max())  # type: ignore[arg-type]
        of_agree, of_differ = rising(means * sizes, most), rising((1 - means) * sizes, most)
        of_all = rising(sizes, most)
        agree, others = votes["agree"].to_numpy(), votes["others"].to_numpy()
        fit = fit + votes["problems"].to_numpy() @ (of_agree[agree] + of_differ[others - agree] - of_all[others])
    best = int(np.argmax(fit))
    return round(float(means[best] * sizes[best]), 4), round(float((1 - means[best]) * sizes[best]), 4)


def as_priors(table: pl.DataFrame) -> dict[str, ProblemPrior]:
    """Return `PRIOR` rows as `StoppingRule.given` takes them; equal ones are one object."""
    if "informed_by" not in table.columns:  # stored before it was there
        table = table.with_columns(informed_by=pl.lit(""))
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
    """What stopping by priors would have come to on problems that have their attempts.

    Args:
        problems: how many, ``lost`` of them with another decision than all attempts give.
        attempts: needed with the priors, and ``attempts_without`` them.
        error_rate: the nominal one.
    """

    problems: int
    lost: int
    attempts: int
    attempts_without: int
    error_rate: float

    @property
    def holds(self) -> bool:
        """Return whether so many lost decisions are likely enough where each is lost at the error rate at most."""
        fewer = sum(
            comb(self.problems, lost) * self.error_rate**lost * (1 - self.error_rate) ** (self.problems - lost)
            for lost in range(self.lost)
        )
        return 1 - fewer >= REFUSED_BELOW


def replay(
    rule: StoppingRule, exact: StoppingRule, attempts: Mapping[str, Sequence[AttemptOutcome]], error_rate: float
) -> Replay:
    """Return what the rule's priors would have come to.

    Args:
        rule: `StoppingRule.given` the priors.
        exact: the rule that the attempts were made by.
        attempts: of each problem, in the order of the index, up to its stop by ``exact``.
    """
    lost = needed = without = 0
    for problem, outcomes in attempts.items():
        full, mine = exact.of(problem).ending(outcomes), rule.of(problem).ending(outcomes)
        without += full[1]
        needed += mine[1]
        lost += full[0] != mine[0]
    return Replay(len(attempts), lost, needed, without, error_rate)


@dataclass(frozen=True, slots=True)
class LearntPriors:
    """Priors of one policy, and whether they may be used.

    Args:
        table: `PRIOR` rows.
        calibration: what was expected of the policy beside what was seen.
        replay: the priors on problems that have their attempts; ``of_anchor`` are these priors.
    """

    policy: str
    table: pl.DataFrame
    calibration: Calibration
    replay: Replay
    of_anchor: pl.DataFrame

    @property
    def hold(self) -> bool:
        """Return whether the priors bear themselves out."""
        return self.calibration.holds and self.replay.holds

    @property
    def sentence(self) -> str:
        """Return in one sentence what the priors save, or why they are refused."""
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
    """Return the priors of a policy that has tried some problems in full, its anchor.

    Args:
        counts: problem, policy, correct, judged: everyone's, the anchor's among them.
        rates: problem, policy, correct, judged and top_wrong_votes, of the anchor at least.
        problems: whose priors are wanted; the anchor's get none.
        attempts: of the anchor's problems, in the order of the index, up to their stop by ``exact``.
        error_rate: with which a decision may be foreseen wrongly.
    """
    tried = counts.filter((pl.col("policy") == policy) & (pl.col("judged") > 0))["problem"]
    model = fit(counts, always=tried)
    agreement = agreement_prior(rates)
    of_anchor = problem_priors(model, counts, policy, pl.Series("problem", list(attempts)), agreement, error_rate)
    replayed = replay(exact.given(as_priors(of_anchor)), exact, attempts, error_rate)
    others = problems.filter(~problems.is_in(list(attempts)))
    table = problem_priors(model, counts, policy, others, agreement, error_rate)
    return LearntPriors(policy, table, calibration(model, counts, policy), replayed, of_anchor)
