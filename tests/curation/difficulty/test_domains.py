"""Abilities by domain: planted shifts are found, what a domain tells is used there, one domain changes nothing."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from curation.difficulty.item_response import ItemResponseModel, fit, with_domains
from tests.curation.difficulty.simulated import COUNTS

SHIFTS = {"algebra": 1.2, "geometry": -1.2}
"""By how much `new` is better in a domain than it is in general; `old` is the same everywhere."""


def attempts(problems: int, seed: int, tried: int = 8) -> tuple[pl.DataFrame, pl.DataFrame, dict[str, float]]:
    """Counts of `old` at all problems and of `new` at every eighth, domains, and the true pass rates of `new`."""
    rng = np.random.default_rng(seed)
    rows, domains, rates = [], [], {}
    for number in range(problems):
        name, domain = f"p{number:04}", ("algebra", "geometry")[number % 2]
        difficulty = rng.normal(0.8 * (domain == "geometry"), 2.0)
        rates[name] = float(1 / (1 + np.exp(difficulty - 0.5 - SHIFTS[domain])))
        rows.append((name, "old", int(rng.binomial(8, 1 / (1 + np.exp(difficulty)))), 8))
        if number // 2 % tried == 0:
            rows.append((name, "new", int(rng.binomial(16, rates[name])), 16))
        domains.append((name, domain))
    counts = pl.DataFrame(rows, schema=COUNTS, orient="row")
    return counts, pl.DataFrame(domains, schema={"problem": pl.String, "domain": pl.String}, orient="row"), rates


@pytest.fixture(scope="module")
def found() -> tuple[pl.DataFrame, pl.DataFrame, dict[str, float], ItemResponseModel]:
    counts, domains, rates = attempts(1200, seed=3)
    told = with_domains(counts, domains)
    return counts, told, rates, fit(told)


Found = tuple[pl.DataFrame, pl.DataFrame, dict[str, float], ItemResponseModel]


def test_planted_abilities_of_domains_are_found(found: Found) -> None:
    model = found[3]
    for domain, shift in SHIFTS.items():
        assert model.in_domain(domain).abilities["new"] == pytest.approx(0.5 + shift, abs=0.4)
        assert model.in_domain(domain).abilities["old"] == 0.0
    assert model.in_domain("unheard of") is model


def test_one_domain_changes_nothing() -> None:
    counts, domains, _ = attempts(120, seed=5)
    assert with_domains(counts, domains.with_columns(domain=pl.lit("all"))).equals(counts)
    alone = fit(counts.with_columns(domain=pl.lit("all")))
    assert alone.domains == {}
    assert alone.abilities == fit(counts).abilities
