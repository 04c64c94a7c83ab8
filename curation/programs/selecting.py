"""Selects inputs with rare kinds of answer, and generated tests to keep."""

from __future__ import annotations

import hashlib
import re
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

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
    runs: pl.DataFrame, voting: set[int], min_votes: int, slowest: float, factors: Mapping[str, float]
) -> pl.DataFrame:
    """Return the tests on which all voting solutions, at least ``min_votes``, agree in time.

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
        .filter(pl.col("votes") >= max(len(voting), min_votes))
        .filter(pl.col("slowest") <= slowest)
        .sort("test")
    )


def doubted_tests(runs: pl.DataFrame, voting: set[int]) -> set[int]:
    """Return the tests on which voting solutions disagree or one crashes; timeouts are ignored."""
    outcomes = (
        runs.filter(pl.col("solution").is_in(list(voting)))
        .group_by("test")
        .agg(pl.col("output").filter("valid").n_unique().alias("classes"), (pl.col("ended") == "RTE").any())
    )
    return set(outcomes.filter((pl.col("classes") > 1) | pl.col("ended"))["test"])


def failing_solutions(runs: pl.DataFrame, decisions: pl.DataFrame) -> dict[int, frozenset[int]]:
    """Return the wrong solutions that fail each kept test, by its index.

    Skipped runs are ignored.
    """
    expected = decisions.select("problem", "test", pl.col("output").alias("kept_output"))
    wrong = runs.filter(~pl.col("right").fill_null(True)).join(expected, on=["problem", "test"])
    if "ended" in wrong.columns:
        wrong = wrong.filter(pl.col("ended") != "skipped")
    fails = wrong.filter((~pl.col("valid") | (pl.col("output") != pl.col("kept_output"))).fill_null(True))
    grouped = fails.group_by("test").agg("solution")
    return {int(test): frozenset(solutions) for test, solutions in grouped.iter_rows()}


VERSION = "test_generation@17"

TIMES = 3
"""Tests that should fail each known wrong solution."""


def select_tests(sound: Sequence[SoundTest], caught: Mapping[int, int], room: int, fill: int) -> list[SoundTest]:
    """Return up to ``room`` tests to keep, in order.

    Tests that catch new solutions (real before mutants) come before those that catch rarely caught ones; others follow
    up to ``fill``.

    Args:
        caught: failures per solution on earlier tests.
    """
    times, selected, remaining = Counter(caught), list[SoundTest](), list(sound)

    def gain(test: SoundTest) -> tuple[int, int, float, int]:
        new = [solution for solution in test.fails if not times[solution]]
        more = sum(1 / (1 + times[solution]) for solution in test.fails if times[solution] < TIMES)
        return sum(solution >= 0 for solution in new), len(new), more, -test.index

    def take(test: SoundTest) -> None:
        selected.append(test)
        remaining.remove(test)
        times.update(test.fails)

    while remaining and len(selected) < room and gain(best := max(remaining, key=gain))[2]:
        take(best)
    used, answered = Counter[str](), {test.output for test in selected}

    def turn(test: SoundTest) -> tuple[int, int, int]:
        return used[test.kind] + (test.output in answered), -len(test.fails), test.index

    while remaining and len(selected) < min(room, fill):
        best = min(remaining, key=turn)
        answered.add(best.output)
        used[best.kind] += 1
        take(best)
    return sorted(selected, key=lambda test: test.index)


_NUMBER = re.compile(r"-?\d{1,40}(?:\.\d*)?")
_TOKENS = 3
_SMALL = 3
"""Max number that is a kind of its own."""


def output_kind(output: str) -> str:
    r"""Return an output's first words, sizes of first numbers, and length.

    Example: ``output_kind("YES\n1 4521\n")`` is ``"YES 1 4d 2l"``
    """
    tokens = output.split(None, _TOKENS)[:_TOKENS]
    lines = output.count("\n", 0, 1 << 16).bit_length()
    return " ".join([*map(_token_kind, tokens), f"{lines}l"])


def _token_kind(token: str) -> str:
    if _NUMBER.fullmatch(token) is None:
        return token[:12].lower() if len(token) <= 12 else f"{len(token).bit_length()}w"
    whole = token.partition(".")[0]
    if len(whole) <= 2 and abs(int(whole)) <= _SMALL and float(token) == int(whole):
        return whole
    return f"{'-' if token[0] == '-' else ''}{len(whole.lstrip('-'))}d"


@dataclass(slots=True)
class OutputClasses:
    """Counts kinds of output and keeps inputs with rare ones, newest last."""

    max_rare: int = 12
    seen: Counter[str] = field(default_factory=Counter)
    rare: list[str] = field(default_factory=list)

    def choose(self, inputs: Sequence[str], output_kinds: Sequence[str | None], count: int) -> list[int]:
        """Return up to ``count`` indices of inputs, rarest kinds of output first.

        Args:
            output_kinds: the trusted program's; None skips an input.
        """
        kinds = {at: kind for at, kind in enumerate(output_kinds) if kind is not None}
        drawn = Counter(kinds.values())
        chosen: list[int] = []
        while kinds and len(chosen) < count:
            at = min(kinds, key=lambda at: (self.seen[kinds[at]], drawn[kinds[at]], at))
            kind = kinds.pop(at)
            if not self.seen[kind] or drawn[kind] <= len(inputs) // 8:
                self.rare = [*self.rare, inputs[at]][-self.max_rare :]
            self.seen[kind] += 1
            chosen.append(at)
        return chosen
