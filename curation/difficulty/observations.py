"""Attempts of many policies at many problems as arrays, as an item response model reads them.

Only counts matter to it: how many of a policy's judged attempts at a problem are correct. Problems with the same counts
of the same policies are one *pattern*, computed once: 700,000 problems with 16 attempts of two policies are a few
hundred patterns.

Invariant: the order of rows changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from curation.records import GoldilocksError

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

WINDOWS = 8
"""Policies that the rollouts of one training are taken for, at most."""

_BLOCK = 4_000_000
"""Numbers that are copied at once while rows are summed."""


@dataclass(frozen=True, slots=True)
class Observations:
    """Attempts as arrays. Problems with the same counts of the same policies share a pattern, which is met but once.

    Args:
        problems: ids, sorted; ``pattern`` [problems] is which pattern each has.
        first: [patterns + 1] where each pattern's keys begin in ``keys``; a key is one (policy, correct, judged).
        policies: names; ``policy``, ``correct`` and ``judged`` are [keys].
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
        """Return [rows of keys] the pattern that each belongs to."""
        return np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))

    @property
    def problems_of_key(self) -> Array:
        """Return [keys] how many problems have each."""
        rows = np.bincount(self.keys, weights=self.frequency[self.pattern_of_row], minlength=len(self.policy))
        return np.asarray(rows, dtype=np.float64)

    def summed(self, table: Array, start: int = 0, stop: int | None = None) -> Array:
        """Return [patterns, columns] the sums of the rows of ``table`` [keys, columns]; zeros for no rows.

        Args:
            start, stop: the patterns wanted; all where absent.
        """
        first = self.first[start : None if stop is None else stop + 1]
        return _sums_of_runs(table, self.keys[first[0] : first[-1]], first - first[0])

    def summed_by_key(self, table: Array) -> Array:
        """Return [keys, columns] the sums of the rows of ``table`` [patterns, columns] over the patterns with each."""
        order = np.argsort(self.keys, kind="stable")
        sizes = np.bincount(self.keys, minlength=len(self.policy))
        return _sums_of_runs(table, self.pattern_of_row[order], np.concatenate([[0], np.cumsum(sizes)]))


def _sums_of_runs(table: Array, rows: Indices, first: Indices) -> Array:
    """Return [runs, columns] the sums of ``table[rows]``, where run i is ``rows[first[i] : first[i + 1]]``.

    Sparse on purpose: the same as a product of matrices wakes BLAS's threads hundreds of times for tiny tables.
    """
    sums = np.zeros((len(first) - 1, table.shape[1]))
    filled = np.flatnonzero(np.diff(first))
    begins, ends = first[filled], first[filled + 1]
    for start, stop in _blocks(ends, max(1, _BLOCK // max(1, table.shape[1]))):
        low = begins[start]
        sums[filled[start:stop]] = np.add.reduceat(table[rows[low : ends[stop - 1]]], begins[start:stop] - low)
    return sums


def _blocks(ends: Indices, size: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of runs that hold about ``size`` rows together, at least one run each."""
    start = 0
    while start < len(ends):
        before = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + size, side="right")))
        yield start, stop
        start = stop


def observations(counts: pl.DataFrame, problems: pl.Series | None = None) -> Observations:
    """Return attempts as arrays.

    Args:
        counts: problem, policy, correct, judged; rows of one problem and policy are added up.
        problems: ids to have, where others than those with attempts.

    Raises:
        GoldilocksError: more attempts are correct than were judged.
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
    """Return counts with the domain of each problem; problems that nobody tried have a row without attempts.

    Args:
        counts: problem, policy, correct, judged.
        domains: problem, domain; None, or one domain alone: nothing is told apart.
    """
    if domains is None or domains["domain"].n_unique() < 2:
        return counts
    return told_apart(counts, domains)


def told_apart(counts: pl.DataFrame, domains: pl.DataFrame) -> pl.DataFrame:
    """Return what `with_domains` does of a part of the problems, which may be of one domain alone."""
    untried = domains.join(counts, on="problem", how="anti").select(
        "problem", policy=pl.lit(""), correct=pl.lit(0, pl.Int64), judged=pl.lit(0, pl.Int64)
    )
    whole = pl.concat([counts, untried.cast(counts.schema)])
    return whole.join(domains.unique("problem"), on="problem", how="left", maintain_order="left")


def parts_of_domains(counts: pl.DataFrame, problems: pl.Series) -> Iterator[tuple[str | None, pl.DataFrame, pl.Series]]:
    """Yield each domain of these problems with its counts and its problems; None where there are no domains."""
    if "domain" not in counts.columns or not len(problems):
        yield None, counts, problems
        return
    domain_of = counts.select("problem", "domain").unique("problem")
    placed = problems.alias("problem").to_frame().join(domain_of, on="problem", how="left", maintain_order="left")
    for (domain,), part in placed.group_by("domain", maintain_order=True):
        yield domain, counts.join(part.select("problem"), on="problem", how="semi"), part["problem"]


def rollout_counts(trained: pl.DataFrame) -> pl.DataFrame:
    """Return rollouts of training as problem, policy, correct and judged: each window of steps is a policy of its own.

    The policy that is trained grows, so its rollouts are those of up to `WINDOWS` policies, by their step.

    Args:
        trained: problem, step, correct and judged.
    """
    if not trained.height:
        return trained.select("problem", policy=pl.lit("training"), correct="correct", judged="judged")
    first, last = trained.select(first=pl.col("step").min(), last=pl.col("step").max()).row(0)
    width = max(1, -(-(last - first + 1) // WINDOWS))
    begin = first + (pl.col("step") - first) // width * width
    name = pl.format("training, steps {} to {}", begin, pl.min_horizontal(begin + width - 1, pl.lit(last)))
    rows = trained.with_columns(policy=name).group_by("problem", "policy", maintain_order=True)
    return rows.agg(pl.col("correct", "judged").sum())
