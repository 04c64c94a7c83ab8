"""Made inputs of a problem, and those on which all voting solutions agree."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

LARGE_BYTES = 256 << 10
"""Larger inputs test speed; few are kept."""

DESIGNED = "designed"
"""Shape of inputs that a model designed, each its own kind."""


@dataclass(frozen=True, slots=True, eq=False)
class SoundTest:
    """A made input and output on which all voting solutions agree, both zlib-compressed.

    ``failing`` are wrong solutions that fail on it, ``killed`` mutants; ``size`` is the input's, in bytes.
    """

    index: int
    packed: bytes
    output: bytes
    origin: str
    shape: str
    size: int
    failing: frozenset[int]
    killed: frozenset[int]
    runs: pl.DataFrame

    @property
    def fails(self) -> frozenset[int]:
        """Return the wrong solutions and, as negative numbers, mutants that fail on it."""
        return self.failing | self.killed

    @property
    def kind(self) -> str:
        """Return the shape; each designed input is a kind of its own."""
        return f"{self.shape} {self.index}" if self.shape == DESIGNED else self.shape


@dataclass(frozen=True, slots=True)
class NewInput:
    """A made input, with origin and shape."""

    text: str
    origin: str
    shape: str


def digest(text: str) -> bytes:
    """Return a text's hash."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def packed(text: str) -> bytes:
    """Return a text compressed."""
    return zlib.compress(text.encode("utf-8", "surrogatepass"), 1)


def unpacked(data: bytes) -> str:
    """Return a text that was compressed."""
    return zlib.decompress(data).decode("utf-8", "surrogatepass")


def agreed_tests(
    runs: pl.DataFrame, voting: set[int], wanted: int, slowest: float, factors: Mapping[str, float]
) -> pl.DataFrame:
    """Return the tests on which all voting solutions, at least ``wanted``, agree in time.

    Args:
        slowest: max CPU seconds, times the language's factor.
    """
    return (
        runs.filter(pl.col("solution").is_in(list(voting)))
        .group_by("problem", "test")
        .agg(
            pl.col("valid").all().alias("valid"),
            pl.col("output").n_unique().alias("classes"),
            pl.col("output").first(),
            (pl.col("cpu_s") / pl.col("lang").replace_strict(factors)).max().alias("slowest"),
            pl.len().alias("votes"),
        )
        .filter(pl.col("valid") & (pl.col("classes") == 1))
        .filter(pl.col("votes") >= max(len(voting), wanted))
        .filter(pl.col("slowest") <= slowest)
        .sort("test")
    )


def doubted_tests(runs: pl.DataFrame, voting: set[int]) -> set[int]:
    """Return the tests on which voting solutions disagree or one crashes; timeouts are ignored."""
    told = (
        runs.filter(pl.col("solution").is_in(list(voting)))
        .group_by("test")
        .agg(pl.col("output").filter("valid").n_unique().alias("classes"), (pl.col("ended") == "RTE").any())
    )
    return set(told.filter((pl.col("classes") > 1) | pl.col("ended"))["test"])


def failing_solutions(runs: pl.DataFrame, decisions: pl.DataFrame) -> dict[int, frozenset[int]]:
    """Return the wrong solutions that fail each kept test, by its index.

    Skipped runs are ignored.
    """
    expected = decisions.select("problem", "test", pl.col("output").alias("wanted"))
    wrong = runs.filter(~pl.col("right").fill_null(True)).join(expected, on=["problem", "test"])
    if "ended" in wrong.columns:
        wrong = wrong.filter(pl.col("ended") != "skipped")
    fails = wrong.filter((~pl.col("valid") | (pl.col("output") != pl.col("wanted"))).fill_null(True))
    grouped = fails.group_by("test").agg("solution")
    return {int(test): frozenset(solutions) for test, solutions in grouped.iter_rows()}
