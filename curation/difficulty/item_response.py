"""Fits one item response model (Rasch 1960; Birnbaum 1968) over all policies' attempts.

Shares of correct attempts are Beta(m k, (1 - m) k) around ``m = 1 / (1 + exp(-a (t - d)))`` for ability t, difficulty d
and slope a, fitted by EM (Bock and Aitkin 1981; Silverman, Jones, Wilson and Nychka 1990).

Invariants: pure; the order of rows changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import copysign, inf, log

import numpy as np
import polars as pl
from numpy.typing import NDArray

from curation.config.sources import PriorAttempts
from curation.records import GoldilocksError

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

WINDOWS = 8
"""Max policies that a training's rollouts are split into."""

_SUM_BLOCK = 4_000_000
"""Numbers copied at once while rows are summed."""


@dataclass(frozen=True, slots=True)
class Observations:
    """Attempts as arrays; problems with the same counts share a pattern.

    Args:
        pattern: [problems]; ``problems`` are sorted ids.
        first: [patterns + 1] where patterns start in ``keys``.
        policy, correct, judged: [keys].
    """

    problems: pl.Series
    pattern: Indices
    first: Indices
    keys: Indices
    policies: tuple[str, ...]
    policy: Indices
    correct: Indices
    judged: Indices

    @property
    def frequency(self) -> Array:
        """Return [patterns] how many problems have each."""
        return np.bincount(self.pattern, minlength=len(self.first) - 1).astype(np.float64)

    @property
    def pattern_of_row(self) -> Indices:
        """Return the pattern of each row of keys."""
        return np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))

    @property
    def problems_of_key(self) -> Array:
        """Return [keys] how many problems have each."""
        rows = np.bincount(self.keys, weights=self.frequency[self.pattern_of_row], minlength=len(self.policy))
        return np.asarray(rows, dtype=np.float64)

    def summed(self, table: Array, start: int = 0, stop: int | None = None) -> Array:
        """Return [patterns, columns] sums of ``table`` [keys, columns]."""
        first = self.first[start : None if stop is None else stop + 1]
        return sums_of_runs(table, self.keys[first[0] : first[-1]], first - first[0])

    def summed_by_key(self, table: Array) -> Array:
        """Return [keys, columns] sums of ``table`` [patterns, columns]."""
        order = np.argsort(self.keys, kind="stable")
        sizes = np.bincount(self.keys, minlength=len(self.policy))
        return sums_of_runs(table, self.pattern_of_row[order], np.concatenate([[0], np.cumsum(sizes)]))


def sums_of_runs(table: Array, rows: Indices, first: Indices) -> Array:
    """Return [runs, columns] sums over ``rows[first[i] : first[i + 1]]``.

    Matrix products would wake BLAS's threads.
    """
    sums = np.zeros((len(first) - 1, table.shape[1]))
    filled = np.flatnonzero(np.diff(first))
    begins, ends = first[filled], first[filled + 1]
    for start, stop in _blocks(ends, max(1, _SUM_BLOCK // max(1, table.shape[1]))):
        low = begins[start]
        sums[filled[start:stop]] = np.add.reduceat(table[rows[low : ends[stop - 1]]], begins[start:stop] - low)
    return sums


def _blocks(ends: Indices, size: int) -> Iterator[tuple[int, int]]:
    start = 0
    while start < len(ends):
        before = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + size, side="right")))
        yield start, stop
        start = stop


def observations(counts: pl.DataFrame, problems: pl.Series | None = None) -> Observations:
    """Return attempts as arrays.

    Args:
        counts: problem, policy, correct, judged; repeated rows are summed.
        problems: by default all with attempts.

    Raises:
        GoldilocksError: more are correct than judged.
    """
    rows = (
        counts.filter(pl.col("judged") > 0)
        .group_by("problem", "policy")
        .agg(pl.col("correct").sum().cast(pl.Int64), pl.col("judged").sum().cast(pl.Int64))
    )
    bad = rows.filter((pl.col("correct") > pl.col("judged")) | (pl.col("correct") < 0))
    if bad.height:
        row = bad.sort("problem", "policy").row(0, named=True)
        raise GoldilocksError(
            f"{row['correct']} of {row['judged']} attempts of {row['policy']} at {row['problem']} are correct"
        )
    ids = (rows["problem"] if problems is None else problems).unique().sort().alias("problem").to_frame()
    keys = rows.select("policy", "correct", "judged").unique().sort("policy", "correct", "judged").with_row_index("key")
    patterns = (
        rows.join(keys, on=["policy", "correct", "judged"]).group_by("problem").agg(pl.col("key").sort().alias("keys"))
    )
    placed = ids.join(patterns, on="problem", how="left", maintain_order="left").with_columns(
        pl.col("keys").list.eval(pl.element().cast(pl.String)).list.join(" ").fill_null("").alias("name")
    )
    unique = placed.select("name", "keys").unique("name").sort("name").with_row_index("pattern")
    of_problem = placed.join(unique.select("name", "pattern"), on="name", how="left", maintain_order="left")
    policies = keys["policy"].unique().sort()
    of_policy = keys.join(policies.to_frame().with_row_index("number"), on="policy", how="left", maintain_order="left")
    sizes = unique["keys"].list.len().fill_null(0).to_numpy()
    return Observations(
        ids["problem"],
        of_problem["pattern"].to_numpy().astype(np.int64),
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        unique["keys"].explode().drop_nulls().to_numpy().astype(np.int64),
        tuple(policies.to_list()),
        of_policy["number"].to_numpy().astype(np.int64),
        keys["correct"].to_numpy(),
        keys["judged"].to_numpy(),
    )


def with_domains(counts: pl.DataFrame, domains: pl.DataFrame | None) -> pl.DataFrame:
    """Return counts with domains, unchanged for a single domain.

    Problems without attempts get a row of zeros.
    """
    if domains is None or domains["domain"].n_unique() < 2:
        return counts
    return with_domain_column(counts, domains)


def with_domain_column(counts: pl.DataFrame, domains: pl.DataFrame) -> pl.DataFrame:
    """Return `with_domains` even for a single domain."""
    untried = domains.join(counts, on="problem", how="anti").select(
        "problem", policy=pl.lit(""), correct=pl.lit(0, pl.Int64), judged=pl.lit(0, pl.Int64)
    )
    whole = pl.concat([counts, untried.cast(counts.schema)])
    return whole.join(domains.unique("problem"), on="problem", how="left", maintain_order="left")


def domain_counts(counts: pl.DataFrame, problems: pl.Series) -> Iterator[tuple[str | None, pl.DataFrame, pl.Series]]:
    """Yield each domain with its counts and problems."""
    if "domain" not in counts.columns or not len(problems):
        yield None, counts, problems
        return
    domain_of = counts.select("problem", "domain").unique("problem")
    placed = problems.alias("problem").to_frame().join(domain_of, on="problem", how="left", maintain_order="left")
    for (domain,), ids in placed.group_by("domain", maintain_order=True):
        yield domain, counts.join(ids.select("problem"), on="problem", how="semi"), ids["problem"]


def prior_counts(problems: pl.DataFrame, stated: Mapping[str, Sequence[PriorAttempts]]) -> pl.DataFrame:
    """Return the rows' own pass rates as problem, policy, correct and judged.

    Args:
        problems: id, source and meta.
        stated: by source.

    Raises:
        GoldilocksError: a value is no pass rate.
    """
    rows = []
    named = problems.filter(pl.col("source").is_in(list(stated)) & pl.col("meta").is_not_null())
    for problem, source, meta in named.select("id", "source", "meta").iter_rows():
        kept = json.loads(meta)
        for prior in stated[source]:
            values = [kept.get(path) for path in prior.paths]
            if any(value is None or str(value).strip().lower() in _NOTHING for value in values):
                continue
            try:
                first, *rest = (float(value) for value in values)
                total = int(rest[0] if rest else prior.attempts)
                correct = round(first if rest else first * total)
            except (TypeError, ValueError, OverflowError):
                correct, total = -1, 0
            if not 0 <= correct <= total:
                raise GoldilocksError(
                    f"source {source}, problem {problem}: `{'`, `'.join(prior.paths)}` is {values!r:.80}, which is no "
                    "pass rate; name other columns in `prior_attempts`, or leave it out."
                )
            rows.append((problem, prior.policy, correct, total))
    return pl.DataFrame(rows, schema=_COUNTS, orient="row")


_NOTHING = ("", "n/a", "nan", "none", "null")
_COUNTS = {"problem": pl.String, "policy": pl.String, "correct": pl.Int64, "judged": pl.Int64}


def rollout_counts(trained: pl.DataFrame) -> pl.DataFrame:
    """Return training rollouts as counts of `WINDOWS` policies, by step."""
    if not trained.height:
        return trained.select("problem", policy=pl.lit("training"), correct="correct", judged="judged")
    first, last = trained.select(first=pl.col("step").min(), last=pl.col("step").max()).row(0)
    width = max(1, -(-(last - first + 1) // WINDOWS))
    begin = first + (pl.col("step") - first) // width * width
    name = pl.format("training, steps {} to {}", begin, pl.min_horizontal(begin + width - 1, pl.lit(last)))
    rows = trained.with_columns(policy=name).group_by("problem", "policy", maintain_order=True)
    return rows.agg(pl.col("correct", "judged").sum())


DIFFICULTIES = np.linspace(-10.0, 10.0, 51)
"""Grid in logits, relative to the reference policy."""

SLOPES = (0.5, 0.7, 1.0, 1.4, 2.0)
"""Grid of learnt slopes."""

MAX_PROBLEMS = 5_000
"""Default max problems to learn from."""

_ABILITY_SD, _CONCENTRATION, _CONCENTRATION_SD = 4.0, 10.0, 1.0
_DOMAIN_SD, _DOMAIN_WEIGHT, _DOMAIN_TURNS = 0.4, 4.0, 3
"""Initial spread of abilities over domains (logits), its weight in abilities, and rounds."""

_DOMAIN_PROBLEMS = 25.0
"""Weight of the general difficulties in a domain, in problems."""

_CURVATURE_STEP = 0.1
"""Step of a likelihood's curvature, in logits."""

_MIN_ABILITY, _MAX_ABILITY = -12.0, 12.0
_MAX_ROUNDS = 200
_BLOCK = 20_000
_TOLERANCE, _STEP = 1e-4, 1e-3
"""EM ends below this gain per problem (nats), a search below this step (logits)."""

_WIDTH, _MAX_STEPS = 0.01, 60
"""Width of finite differences, and max steps of a search."""


@dataclass(frozen=True, slots=True)
class ItemResponseModel:
    """Abilities, and the distribution of difficulties and slopes.

    Args:
        abilities: in logits; 0 for the policy with the most attempts.
        weights: [grid]; slopes vary fastest.
        concentration: k of the Beta distributions.
    """

    abilities: Mapping[str, float]
    weights: Array
    slopes: tuple[float, ...]
    concentration: float
    rounds: int = 0
    domains: Mapping[str, ItemResponseModel] = field(default_factory=dict)

    @property
    def difficulty(self) -> Array:
        """Return [grid] difficulties."""
        return np.repeat(DIFFICULTIES, len(self.slopes))

    @property
    def slope(self) -> Array:
        """Return [grid] slopes."""
        return np.tile(np.array(self.slopes), len(DIFFICULTIES))

    def in_domain(self, domain: str | None) -> ItemResponseModel:
        """Return the domain's model, or this one."""
        return self if domain is None else self.domains.get(domain, self)

    def means(self, policy: str) -> Array:
        """Return [grid] a policy's expected pass rates.

        Raises:
            GoldilocksError: it has no attempt here.
        """
        if policy not in self.abilities:
            known = ", ".join(sorted(self.abilities)) or "none"
            raise GoldilocksError(f"the item response model has seen no attempt of {policy}; it knows {known}")
        return _means(self.abilities[policy], self.difficulty, self.slope)


def fit(
    counts: pl.DataFrame,
    *,
    slopes: bool = False,
    max_problems: int = MAX_PROBLEMS,
    always: pl.Series | None = None,
    seed: int = 0,
    start: ItemResponseModel | None = None,
) -> ItemResponseModel:
    """Return the model of these attempts.

    Args:
        counts: problem, policy, correct, judged, optionally ``domain``.
        slopes: learn slopes too (2PL).
        always: problems to include if `max_problems` are drawn.
        start: a similar model, to save rounds.

    Raises:
        GoldilocksError: nothing was judged.
    """
    ids = counts.filter(pl.col("judged") > 0)["problem"].unique().sort()
    if not len(ids):
        raise GoldilocksError("an item response model needs attempts, and none was judged")
    if len(ids) > max_problems:
        rank = np.random.default_rng(seed).permutation(len(ids))
        if always is not None:
            rank[ids.is_in(always.implode()).to_numpy()] -= len(ids)
        counts = counts.join(ids.gather(np.argsort(rank)[:max_problems]).to_frame(), on="problem", how="semi")
    seen = observations(counts)
    grid = SLOPES if slopes else (1.0,)
    model = ItemResponseModel(_first_abilities(seen), _prior(grid), grid, _CONCENTRATION)
    if start is not None:
        known = {name: start.abilities.get(name, first) for name, first in model.abilities.items()}
        model = replace(start, abilities=known, domains={})
    reference, frequency, last = seen.policies[_reference(seen)], seen.frequency, -inf
    for number in range(1, _MAX_ROUNDS + 1):
        posterior, likelihood = _posterior(seen, model)
        if likelihood - last < _TOLERANCE * frequency.sum():
            break
        last = likelihood
        tallies = _tallies(seen, posterior * frequency[:, None])
        model = replace(model, weights=_smoothed(frequency @ posterior, grid), rounds=number)
        best = {
            name: 0.0 if name == reference else _best_ability(model, tally, model.abilities[name])
            for name, tally in tallies.items()
        }
        model = replace(model, abilities=best)
        model = replace(model, concentration=_best_concentration(model, tallies))
    return replace(model, domains=_fit_domains(counts, model, reference)) if "domain" in counts.columns else model


def _fit_domains(counts: pl.DataFrame, general: ItemResponseModel, reference: str) -> dict[str, ItemResponseModel]:
    observed = {
        domain: observations(own_counts)
        for (domain,), own_counts in sorted(
            counts.filter(pl.col("judged") > 0).group_by("domain"), key=lambda item: item[0]
        )
        if domain is not None
    }
    if len(observed) < 2:
        return {}
    spread, models = _DOMAIN_SD, dict.fromkeys(observed, general)
    for _ in range(_DOMAIN_TURNS):
        fits = [_fit_domain(seen, models[domain], general, reference, spread) for domain, seen in observed.items()]
        models = {domain: model for domain, (model, _) in zip(observed, fits, strict=True)}
        squares = [square for _, of_policies in fits for square in of_policies]
        prior_square = _DOMAIN_SD**2 * _DOMAIN_WEIGHT
        spread = ((sum(squares) + prior_square) / (len(squares) + _DOMAIN_WEIGHT)) ** 0.5
    return models


def _fit_domain(
    seen: Observations, model: ItemResponseModel, general: ItemResponseModel, reference: str, spread: float
) -> tuple[ItemResponseModel, list[float]]:
    """Return a domain's model, and its abilities' expected squared distances from the general ones."""
    frequency, last, tallies = seen.frequency, -inf, dict[str, _Tally]()
    prior = general.weights * _DOMAIN_PROBLEMS
    for _ in range(_MAX_ROUNDS):
        posterior, likelihood = _posterior(seen, model)
        if likelihood - last < _TOLERANCE * frequency.sum():
            break
        last = likelihood
        tallies = _tallies(seen, posterior * frequency[:, None])
        best = {
            name: _best_ability(model, tally, model.abilities[name], general.abilities[name], spread)
            for name, tally in tallies.items()
            if name != reference
        }
        weights = _smoothed(frequency @ posterior + prior, model.slopes)
        model = replace(model, weights=weights, abilities={**general.abilities, **best}, domains={})
    squares = []
    for name in tallies.keys() - {reference}:
        ability = model.abilities[name]
        values = [
            tallies[name].log_likelihood(_means(at, model.difficulty, model.slope), model.concentration)
            for at in (ability - _CURVATURE_STEP, ability, ability + _CURVATURE_STEP)
        ]
        information = max(0.0, (2 * values[1] - values[0] - values[2]) / _CURVATURE_STEP**2) + spread**-2
        squares.append((ability - general.abilities[name]) ** 2 + 1 / information)
    return model, squares


def difficulty_posteriors(model: ItemResponseModel, seen: Observations) -> Array:
    """Return [patterns, grid] P(difficulty, slope | attempts)."""
    return _posterior(seen, model)[0]


def posterior_means(model: ItemResponseModel, seen: Observations, values: Array) -> Array:
    """Return [patterns, columns] posterior means of ``values`` [grid, columns]."""
    table, prior = _log_likelihoods(seen, model), np.log(model.weights)
    patterns = len(seen.first) - 1
    means = np.zeros((patterns, values.shape[1]))
    for start in range(0, patterns, _BLOCK):
        stop = min(start + _BLOCK, patterns)
        logs = seen.summed(table, start, stop) + prior
        shares = np.exp(logs - logs.max(axis=1, keepdims=True))
        means[start:stop] = (shares @ values) / shares.sum(axis=1, keepdims=True)
    return means


def _posterior(seen: Observations, model: ItemResponseModel) -> tuple[Array, float]:
    """Return [patterns, grid] posteriors, and the log-likelihood up to a constant."""
    logs = seen.summed(_log_likelihoods(seen, model)) + np.log(model.weights)
    top = logs.max(axis=1, keepdims=True)
    shares = np.exp(logs - top)
    totals = shares.sum(axis=1, keepdims=True)
    return shares / totals, float(seen.frequency @ (np.log(totals) + top)[:, 0])


@dataclass(frozen=True, slots=True)
class _Tally:
    """Counts by grid point: ``correct[g, j]`` problems with more than j correct, and so on."""

    correct: Array
    wrong: Array
    judged: Array

    def log_likelihood(self, means: Array, k: float) -> float:
        """Return the expected log-likelihood at means [grid], up to a constant."""
        return self.of_shares(means, k) - _weighed(self.judged, k)

    def of_shares(self, means: Array, k: float) -> float:
        """Return the terms that depend on the means."""
        return _weighed(self.correct, means * k) + _weighed(self.wrong, (1 - means) * k)


def _tallies(seen: Observations, mass: Array) -> dict[str, _Tally]:
    by_key = seen.summed_by_key(mass)
    tallies = {}
    for number, name in enumerate(seen.policies):
        chosen = np.flatnonzero(seen.policy == number)
        correct, judged, own_mass = seen.correct[chosen], seen.judged[chosen], by_key[chosen]
        tallies[name] = _Tally(
            _more_than(own_mass, correct), _more_than(own_mass, judged - correct), _more_than(own_mass, judged)
        )
    return tallies


def _more_than(mass: Array, numbers: Indices) -> Array:
    """Return [grid, max_number] the mass of rows whose number exceeds 0, 1, …"""
    max_number = int(numbers.max(initial=0))
    at = np.zeros((mass.shape[1], max_number + 1))
    np.add.at(at.T, numbers, mass)
    return np.flip(np.cumsum(np.flip(at, axis=1), axis=1), axis=1)[:, 1:]


def _weighed(tally: Array, start: Array | float) -> float:
    """Return the sum over grid and j of ``tally[g, j] log(start[g] + j)``."""
    steps = np.arange(tally.shape[1])
    return float((tally * np.log(np.asarray(start).reshape(-1, 1) + steps)).sum())


def _log_likelihoods(seen: Observations, model: ItemResponseModel) -> Array:
    return log_likelihoods(model, seen.policies, seen.policy, seen.correct, seen.judged)


def log_likelihoods(
    model: ItemResponseModel, policies: Sequence[str], policy: Indices, correct: Indices, judged: Indices
) -> Array:
    """Return [rows, grid] beta-binomial log-likelihoods, up to a constant per row; 0 for unknown policies.

    Args:
        policy: [rows] indices of ``policies``.
    """
    table = np.zeros((len(policy), len(model.weights)))
    k = model.concentration
    for number, name in enumerate(policies):
        chosen = np.flatnonzero(policy == number)
        if name not in model.abilities or not len(chosen):
            continue
        means, solved, made = model.means(name), correct[chosen], judged[chosen]
        max_judged = int(made.max())
        of_correct, of_wrong = rising(means * k, max_judged), rising((1 - means) * k, max_judged)
        of_judged = rising(np.array([k]), max_judged)
        table[chosen] = of_correct[solved] + of_wrong[made - solved] - of_judged[made]
    return table


def rising(start: Array, max_count: int) -> Array:
    """Return [max_count + 1, grid] ``log(start (start + 1) … (start + j - 1))``."""
    steps = np.log(start + np.arange(max_count).reshape(-1, 1))
    return np.concatenate([np.zeros((1, len(start))), np.cumsum(steps, axis=0)])


def _means(ability: float, difficulty: Array, slope: Array) -> Array:
    return 1 / (1 + np.exp(np.clip(-slope * (ability - difficulty), -30, 30)))


def _prior(slopes: Sequence[float]) -> Array:
    shape = np.exp(-0.5 * (DIFFICULTIES / 3) ** 2)
    weights = np.repeat(shape, len(slopes))
    return np.asarray(weights / weights.sum())


def _smoothed(mass: Array, slopes: Sequence[float]) -> Array:
    table = mass.reshape(len(DIFFICULTIES), len(slopes))
    padded = np.concatenate([table[:1], table, table[-1:]])
    smooth = (padded[:-2] + 2 * padded[1:-1] + padded[2:]) / 4
    weights = smooth.reshape(-1) + 0.5 * _prior(slopes)
    return np.asarray(weights / weights.sum())


def _reference(seen: Observations) -> int:
    """Return the policy with the most attempts."""
    rows = seen.problems_of_key
    return int(np.argmax(np.bincount(seen.policy, weights=rows * seen.judged, minlength=len(seen.policies))))


def _first_abilities(seen: Observations) -> dict[str, float]:
    """Return log-odds of correct attempts, relative to the reference policy."""
    rows = seen.problems_of_key
    size = len(seen.policies)
    correct = np.bincount(seen.policy, weights=rows * seen.correct, minlength=size) + 0.5
    judged = np.bincount(seen.policy, weights=rows * seen.judged, minlength=size) + 1.0
    odds = np.log(correct / (judged - correct))
    odds -= odds[_reference(seen)]
    return {policy: float(odds[number]) for number, policy in enumerate(seen.policies)}


def _best_ability(
    model: ItemResponseModel, tally: _Tally, start: float, centre: float = 0.0, spread: float = _ABILITY_SD
) -> float:
    def value(ability: float) -> float:
        means = _means(ability, model.difficulty, model.slope)
        return tally.of_shares(means, model.concentration) - 0.5 * ((ability - centre) / spread) ** 2

    return _maximum(value, _MIN_ABILITY, _MAX_ABILITY, start)


def _best_concentration(model: ItemResponseModel, tallies: Mapping[str, _Tally]) -> float:
    terms = [(tally, model.means(name)) for name, tally in tallies.items()]

    def value(log_k: float) -> float:
        prior = -0.5 * ((log_k - log(_CONCENTRATION)) / _CONCENTRATION_SD) ** 2
        return prior + sum(tally.log_likelihood(means, float(np.exp(log_k))) for tally, means in terms)

    return float(np.exp(_maximum(value, log(0.5), log(1000.0), log(model.concentration))))


def _maximum(value: Callable[[float], float], low: float, high: float, start: float) -> float:
    """Return the argument of a function's only peak, by Newton's steps of at most 1."""
    at = min(max(start, low + _WIDTH), high - _WIDTH)
    for _ in range(_MAX_STEPS):
        left, here, right = value(at - _WIDTH), value(at), value(at + _WIDTH)
        slope, curvature = (right - left) / (2 * _WIDTH), (left - 2 * here + right) / _WIDTH**2
        step = min(max(-slope / curvature, -1.0), 1.0) if curvature < 0 else copysign(1.0, slope)
        before, at = at, min(max(at + step, low + _WIDTH), high - _WIDTH)
        if abs(at - before) < _STEP:
            break
    return at
