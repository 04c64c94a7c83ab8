"""What an item response model expects of each problem for one policy: its pass rate, and its side of the band.

With the policy's own c of n attempts the pass rate at a difficulty is Beta(m k + c, (1 - m) k + n - c); over the
difficulties that everyone's attempts leave possible it is a mixture of these
(`curation.difficulty.item_response.ItemResponseModel`). All figures follow from the mixture without sampling.

`calibration` asks whether the model may be believed: for problems that the policy has tried, what would have been
expected of them without these attempts, beside what was seen, by tenths.

Pure functions over frames.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import erfc, sqrt

import numpy as np
import polars as pl

from curation.config import Band
from curation.difficulty.item_response import ItemResponseModel, difficulty_posteriors, rising
from curation.difficulty.observations import Array, observations, parts_of_domains

POSTERIOR = pl.Schema(
    {
        "problem": pl.String(),
        "mean": pl.Float64(),  # of the pass rate, for the policy
        "low": pl.Float64(),  # 95 % interval, equal tails
        "high": pl.Float64(),
    }
)

SIDES = pl.Schema({"problem": pl.String(), "below": pl.Float64(), "inside": pl.Float64(), "above": pl.Float64()})
"""Probabilities that fresh attempts put a problem below, inside or above the band."""

TENTHS = 10
"""Classes of calibration, with equally many problems each."""

_LOGITS = np.linspace(-14.0, 14.0, 561)
"""Pass rates at which distributions are tabulated."""

_TOLERANCE = 1e-9
_REFUSED_BELOW = 1e-3
_REFUSED_ABOVE = 0.05


def pass_rate_posteriors(
    model: ItemResponseModel, counts: pl.DataFrame, policy: str, problems: pl.Series
) -> pl.DataFrame:
    """Return `POSTERIOR` rows of one policy, in the order of ``problems``.

    Args:
        counts: problem, policy, correct, judged: everyone's, the policy's own among them; and ``domain``, where the
            model tells domains apart.
    """
    parts = parts_of_domains(counts, problems)
    rows = [_rates(model.in_domain(domain), own, policy, names) for domain, own, names in parts]
    return _in_order(problems, pl.concat(rows)).select(POSTERIOR.names()).cast(POSTERIOR)


def _rates(model: ItemResponseModel, counts: pl.DataFrame, policy: str, problems: pl.Series) -> pl.DataFrame:
    """Return the posteriors of the problems of one domain, in any order."""
    seen = observations(counts, problems)
    weights, means, k = difficulty_posteriors(model, seen), model.means(policy), model.concentration
    own = np.zeros((len(weights), 2))
    if policy in seen.policies:
        rows = np.flatnonzero(seen.policy[seen.keys] == seen.policies.index(policy))
        own[seen.pattern_of_row[rows]] = np.stack([seen.correct, seen.judged], axis=1)[seen.keys[rows]]
    rates = 1 / (1 + np.exp(-_LOGITS))
    found = np.zeros((len(weights), 3))
    for correct, judged in np.unique(own, axis=0):
        chosen = np.flatnonzero((own == (correct, judged)).all(axis=1))
        a, b = means * k + correct, (1 - means) * k + judged - correct
        found[chosen, 0] = weights[chosen] @ (a / (a + b))
        cumulative = weights[chosen] @ _beta_cdf(a, b)
        for column, share in ((1, 0.025), (2, 0.975)):
            found[chosen, column] = [float(np.interp(share, row, rates, left=0.0, right=1.0)) for row in cumulative]
    table = pl.DataFrame(found[seen.pattern], schema=["mean", "low", "high"], orient="row")
    return table.with_columns(seen.problems)


def beta_sides(correct: Array, other: Array, band: Band) -> Array:
    """Return [rows, 3] the chances that the band's number of fresh attempts put a problem below, inside or above it.

    Args:
        correct, other: [rows] of the Beta distributions of the pass rates.
    """
    n, most = band.attempts, int(band.attempts * band.max_pass_rate + _TOLERANCE)
    of_correct, of_wrong = rising(correct, n), rising(other, n)
    ways = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    choose = ways[n] - ways - ways[::-1]
    chances = np.exp(choose[:, None] + of_correct + of_wrong[::-1] - rising(correct + other, n)[n])
    cuts = (slice(0, band.min_correct), slice(band.min_correct, most + 1), slice(most + 1, n + 1))
    return np.stack([chances[cut].sum(axis=0) for cut in cuts], axis=1)


@dataclass(frozen=True, slots=True)
class Calibration:
    """What was expected of a policy beside what was seen.

    Args:
        tenths: expected and seen share of correct attempts, attempts and z-value of each tenth of the problems.
        p_value: of the tenths' deviations, if the model were true.
        worst: largest deviation of a tenth beyond what chance explains (two standard errors).
    """

    tenths: pl.DataFrame
    p_value: float
    worst: float

    @property
    def holds(self) -> bool:
        """Return whether the model may be used: deviations are chance, or too small to matter."""
        return self.p_value >= _REFUSED_BELOW or self.worst <= _REFUSED_ABOVE

    def worst_tenth(self, policy: str) -> str:
        """Return in words what was expected and seen where they are furthest apart, by their z-value."""
        worst = self.tenths.sort(pl.col("z").abs(), descending=True).row(0, named=True)
        return (
            f"what others solve does not tell what {policy} solves (of its tenth {worst['tenth'] + 1} "
            f"{worst['expected']:.2f} was expected and {worst['seen']:.2f} seen)"
        )

    @property
    def lines(self) -> list[str]:
        """Return the tenths as lines of text: expected and seen share of correct attempts, attempts, z-value."""
        return [
            f"tenth {tenth + 1:2}: expected {expected:.3f}, seen {seen:.3f} of {attempts:,} attempts (z {z:+.1f})"
            for tenth, expected, seen, attempts, z in self.tenths.iter_rows()
        ]


def calibration(model: ItemResponseModel, counts: pl.DataFrame, policy: str) -> Calibration:
    """Return how the model's expectations without a policy's attempts compare with these attempts.

    Args:
        counts: problem, policy, correct, judged: everyone's, the policy's own among them.
    """
    own = (
        counts.filter((pl.col("policy") == policy) & (pl.col("judged") > 0))
        .group_by("problem")
        .agg(pl.col("correct").sum(), pl.col("judged").sum())
        .sort("problem")
    )
    met = counts.join(own.select("problem"), on="problem", how="semi")
    parts = parts_of_domains(met, own["problem"])
    rows = [_expected(model.in_domain(domain), part, own, policy, names) for domain, part, names in parts]
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
    """Return the rows of ``own`` of one domain with the correct attempts that others' tell, and their variance."""
    own = own.join(problems.alias("problem").to_frame(), on="problem", how="semi", maintain_order="left")
    seen = observations(counts.filter(pl.col("policy") != policy), own["problem"])
    weights, means, k = difficulty_posteriors(model, seen)[seen.pattern], model.means(policy), model.concentration
    n = own["judged"].to_numpy().astype(np.float64)
    mean = weights @ means
    within = (weights @ (means * (1 - means))) * n * (k + n) / (k + 1)
    return own.with_columns(expected=mean * n, variance=within + n**2 * (weights @ means**2 - mean**2))


def _in_order(problems: pl.Series, table: pl.DataFrame) -> pl.DataFrame:
    return problems.alias("problem").to_frame().join(table, on="problem", how="left", maintain_order="left")


def _beta_cdf(a: Array, b: Array) -> Array:
    """Return [grid, rates] the distribution functions of Beta(a, b) at the tabulated pass rates.

    In logits the density is p^a (1 - p)^b; what lies beyond the table is added at its ends.
    """
    log_p, log_q = -np.log1p(np.exp(-_LOGITS)), -np.log1p(np.exp(_LOGITS))
    logs = a[:, None] * log_p + b[:, None] * log_q
    top = logs.max(axis=1, keepdims=True)
    density = np.exp(logs - top) * (_LOGITS[1] - _LOGITS[0])
    below, above = np.exp(logs[:, 0] - top[:, 0]) / a, np.exp(logs[:, -1] - top[:, 0]) / b
    steps = (density[:, 1:] + density[:, :-1]) / 2
    cumulative = np.concatenate([below[:, None], below[:, None] + np.cumsum(steps, axis=1)], axis=1)
    return np.asarray(cumulative / (cumulative[:, -1] + above)[:, None])


def _chi_squared_tail(value: float, freedom: int) -> float:
    """Return P(chi-squared > value) by the cube-root approximation (Wilson and Hilferty 1931)."""
    if freedom == 0:
        return 1.0
    z = ((value / freedom) ** (1 / 3) - (1 - 2 / (9 * freedom))) / sqrt(2 / (9 * freedom))
    return 0.5 * erfc(z / sqrt(2))
