"""The item response model: its likelihood against sums by hand, and what it learns of simulated policies."""

from math import comb, exp, gamma, log

import numpy as np
import polars as pl
import pytest

from curation.difficulty.item_response import (
    DIFFICULTIES,
    ItemResponseModel,
    difficulty_posteriors,
    fit,
    observations,
    with_domains,
)
from curation.records import GoldilocksError
from tests.curation.difficulty.simulated import COUNTS, counts_of, simulated


def beta_binomial(correct: int, judged: int, a: float, b: float) -> float:
    def beta(x: float, y: float) -> float:
        return gamma(x) * gamma(y) / gamma(x + y)

    return comb(judged, correct) * beta(correct + a, judged - correct + b) / beta(a, b)


def test_the_posterior_is_the_prior_times_the_beta_binomial_of_every_policy() -> None:
    weights = np.exp(-0.5 * ((DIFFICULTIES - 1) / 2) ** 2)
    model = ItemResponseModel({"weak": 0.0, "strong": 1.5}, weights / weights.sum(), (1.0,), 6.0)
    attempts = {"weak": (1, 4), "strong": (7, 9)}
    byhand = []
    for weight, difficulty in zip(model.weights, DIFFICULTIES, strict=True):
        for policy, (correct, judged) in attempts.items():
            mean = 1 / (1 + exp(difficulty - model.abilities[policy]))
            weight *= beta_binomial(correct, judged, 6 * mean, 6 * (1 - mean))
        byhand.append(weight)
    rows = [("p", policy, *counts) for policy, counts in attempts.items()]
    seen = observations(counts_of(rows))
    assert difficulty_posteriors(model, seen)[0] == pytest.approx(np.array(byhand) / sum(byhand), rel=1e-9)


def test_problems_with_equal_counts_are_one_pattern_and_untried_ones_have_the_prior() -> None:
    table = counts_of([("b", "x", 1, 2), ("a", "x", 1, 2), ("c", "x", 0, 2), ("c", "y", 3, 3), ("d", "x", 0, 0)])
    seen = observations(table, pl.Series(["d", "c", "b", "a"]))
    assert seen.problems.to_list() == ["a", "b", "c", "d"]
    assert seen.pattern[0] == seen.pattern[1]
    assert len(set(seen.pattern)) == 3
    model = fit(table)
    posterior = difficulty_posteriors(model, seen)
    assert posterior[seen.pattern[3]] == pytest.approx(model.weights)


def test_abilities_and_how_alike_policies_are_come_out_of_simulated_attempts() -> None:
    concentration = 40.0
    truth = {"a": 0.0, "b": 1.2, "c": -0.7}
    table = simulated(1500, truth, 16, concentration, seed=3)
    model = fit(table)
    found = {name: model.abilities[name] - model.abilities["a"] for name in truth}
    assert found == pytest.approx(truth, abs=0.25)
    assert abs(log(model.concentration / concentration)) < 0.5


def test_refusals() -> None:
    for counts, said in (((0, 0), "none was judged"), ((3, 2), "3 of 2 attempts of x at p are correct")):
        with pytest.raises(GoldilocksError, match=said):
            fit(counts_of([("p", "x", *counts)]))
    model = fit(counts_of([("p", "x", 1, 2)]))
    with pytest.raises(GoldilocksError, match="has seen no attempt of y; it knows x"):
        model.means("y")


SHIFTS = {"algebra": 1.2, "geometry": -1.2}
"""By how much `new` is better in a domain than it is in general; `old` is the same everywhere."""


def attempts(problems: int, seed: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Counts of `old` at all problems and of `new` at every eighth, and domains."""
    rng = np.random.default_rng(seed)
    rows, domains = [], []
    for number in range(problems):
        name, domain = f"p{number:04}", ("algebra", "geometry")[number % 2]
        difficulty = rng.normal(0.8 * (domain == "geometry"), 2.0)
        rows.append((name, "old", int(rng.binomial(8, 1 / (1 + np.exp(difficulty)))), 8))
        if number // 2 % 8 == 0:
            rate = 1 / (1 + np.exp(difficulty - 0.5 - SHIFTS[domain]))
            rows.append((name, "new", int(rng.binomial(16, rate)), 16))
        domains.append((name, domain))
    counts = pl.DataFrame(rows, schema=COUNTS, orient="row")
    return counts, pl.DataFrame(domains, schema={"problem": pl.String, "domain": pl.String}, orient="row")


def test_planted_abilities_of_domains_are_found() -> None:
    model = fit(with_domains(*attempts(1200, seed=3)))
    for domain, shift in SHIFTS.items():
        assert model.in_domain(domain).abilities["new"] == pytest.approx(0.5 + shift, abs=0.4)
        assert model.in_domain(domain).abilities["old"] == 0.0
    assert model.in_domain("unheard of") is model


def test_one_domain_changes_nothing() -> None:
    counts, domains = attempts(120, seed=5)
    assert with_domains(counts, domains.with_columns(domain=pl.lit("all"))).equals(counts)
    alone = fit(counts.with_columns(domain=pl.lit("all")))
    assert alone.domains == {}
    assert alone.abilities == fit(counts).abilities
