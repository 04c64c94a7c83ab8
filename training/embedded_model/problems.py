"""Generate an endless seeded supply of short sums, graded by level.

Invariants:

- the same seed gives the same problems on every machine and Python version;
- whether a problem is held out depends on its computation alone, in every wording, language and run;
- a supply repeats no statement unless asked to; every answer is a whole number, not negative;
- no torch is imported here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from random import Random
from typing import TypeVar

from curation.records import normalise_text, problem_id
from training.embedded_model.wordings import LANGS, NAMES, THINGS, WARES, wordings


class Split(StrEnum):
    """The problems that a supply draws from."""

    TRAIN = "train"
    HELD_OUT = "held_out"


HELD_OUT_SHARE = 0.2
ENGLISH_SHARE = 0.7

SHARES: Mapping[tuple[str, int], float] = {
    ("add", 1): 8, ("add", 2): 8, ("add", 3): 7, ("add", 4): 6,
    ("subtract", 1): 8, ("subtract", 2): 8, ("subtract", 3): 7, ("subtract", 4): 5,
    ("multiply", 1): 7, ("multiply", 2): 7, ("multiply", 3): 5,
    ("three", 3): 5, ("giving", 3): 5, ("two_steps", 3): 5,
    ("remainder", 2): 6, ("larger", 1): 4, ("larger", 2): 3,
    ("equation", 2): 5, ("equation", 3): 5, ("big_product", 5): 5,
}  # fmt: skip
"""Relative frequency of each (kind, level)."""

_RANGES: Mapping[tuple[str, int], tuple[tuple[int, int], ...]] = {
    ("add", 1): ((11, 89), (2, 9)), ("add", 2): ((12, 89), (12, 89)),
    ("add", 3): ((100, 899), (12, 89)), ("add", 4): ((100, 899), (100, 899)),
    ("subtract", 1): ((2, 9), (11, 89)), ("subtract", 2): ((11, 49), (11, 50)),
    ("subtract", 3): ((12, 89), (100, 899)), ("subtract", 4): ((100, 499), (101, 449)),
    ("multiply", 1): ((11, 19), (3, 9)), ("multiply", 2): ((20, 99), (3, 9)), ("multiply", 3): ((100, 499), (3, 9)),
    ("three", 3): ((11, 49), (11, 49), (11, 49)), ("giving", 3): ((30, 80), (5, 25), (3, 20)),
    ("two_steps", 3): ((5, 40), (3, 9), (3, 12)), ("remainder", 2): ((3, 9),),
    ("larger", 1): ((100, 999), (100, 999)), ("larger", 2): ((1000, 9999), (1000, 9999)),
    ("equation", 2): ((2, 9), (3, 9), (2, 15)), ("equation", 3): ((2, 9), (3, 30), (2, 15)),
    ("big_product", 5): ((23, 98), (34, 97)),
}  # fmt: skip
"""Smallest and largest value of each number drawn."""

_TRIES = 10_000

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Exercise:
    """A problem with its numbers and answer.

    Example: ``Exercise("What is 47 + 38?", "add", 2, "en", {"a": 47, "b": 38}, 85, "38+47")``
    """

    statement: str
    kind: str
    level: int  # 1 (one easy step) … 5 (beyond what the embedded model was shown)
    lang: str
    operands: Mapping[str, int]
    answer: int
    computation: str  # the same for every wording of the same sum, whatever the order of its terms

    @property
    def id(self) -> str:
        """Return the problem's id."""
        return problem_id(self.statement)

    @property
    def held_out(self) -> bool:
        """Return whether its computation is held out."""
        return _held_out(self.computation)


def _held_out(computation: str) -> bool:
    point = int.from_bytes(hashlib.blake2b(computation.encode(), digest_size=8).digest()) / 2**64
    return point < HELD_OUT_SHARE


def generate_exercises(
    seed: int, split: Split | None = None, *, kinds: Sequence[str] = (), repeats: bool = False
) -> Iterator[Exercise]:
    """Yield exercises without end, no statement twice unless ``repeats``.

    Args:
        split: both splits if None.
        kinds: all if empty.

    Raises:
        ValueError: no fresh exercise can be found any more.
    """
    cells = [cell for cell in SHARES if not kinds or cell[0] in kinds]
    bounds = _running(SHARES[cell] for cell in cells)
    random, used = Random(seed), set[str]()
    while True:
        for _ in range(_TRIES):
            point = random.random() * bounds[-1]
            kind, level = next(cell for cell, bound in zip(cells, bounds, strict=True) if point < bound)
            exercise = _exercise(random, kind, level)
            if split is not None and exercise.held_out is (split is Split.TRAIN):
                continue
            name = "" if repeats else normalise_text(exercise.statement)
            if repeats or name not in used:
                used.add(name)
                yield exercise
                break
        else:
            raise ValueError(f"after {len(used)} exercises of {kinds or 'all kinds'} no fresh one was found")


def _running(shares: Iterator[float]) -> list[float]:
    sums: list[float] = []
    for share in shares:
        sums.append(share + (sums[-1] if sums else 0.0))
    return sums


def _exercise(random: Random, kind: str, level: int) -> Exercise:
    drawn = [_between(random, low, high) for low, high in _RANGES[kind, level]]
    numbers, answer, computation = _sum(random, kind, level, *drawn)
    foreign = [lang for lang in LANGS if lang != "en" and wordings(kind, lang)]
    lang = "en" if not foreign or random.random() < ENGLISH_SHARE else _pick(random, foreign)
    words = {
        "name": _pick(random, NAMES),
        "things": _pick(random, THINGS),
        "ware": _pick(random, WARES),
        "x": _pick(random, "xynt"),
    }
    statement = _pick(random, wordings(kind, lang)).format(**numbers, **words)
    return Exercise(statement, kind, level, lang, numbers, answer, computation)


def _pick(random: Random, options: Sequence[T]) -> T:
    return options[random.randrange(len(options))]


def _between(random: Random, low: int, high: int) -> int:
    return low + random.randrange(high - low + 1)


def _sum(random: Random, kind: str, level: int, a: int, b: int = 0, c: int = 0) -> tuple[dict[str, int], int, str]:
    """Return the numbers of a statement, its answer and its computation."""
    match kind:
        case "add":
            return {"a": a, "b": b}, a + b, f"{min(a, b)}+{max(a, b)}"
        case "subtract":  # the second number was drawn first
            a, b = (a + b if level in (2, 4) else b), a
            return {"a": a, "b": b}, a - b, f"{a}-{b}"
        case "multiply":
            return {"a": a, "b": b}, a * b, f"{b}*{a}"
        case "three":
            return {"a": a, "b": b, "c": c}, a + b + c, "+".join(map(str, sorted((a, b, c))))
        case "giving":
            return {"a": a, "b": b, "c": c}, a - b + c, f"{a}-{b}+{c}"
        case "two_steps":
            return {"a": a, "b": b, "c": c}, a + b * c, f"{a}+{b}*{c}"
        case "remainder":
            a, b = _between(random, 2 * a, 10 * a - 1), a
            return {"a": a, "b": b}, a % b, f"{a}%{b}"
        case "larger":
            b += a == b
            return {"a": a, "b": b}, max(a, b), f"max {min(a, b)} {max(a, b)}"
        case "equation":
            return {"a": a, "b": b, "r": a * c + b}, c, f"{a}x+{b}={a * c + b}"
        case _:
            return {"a": a, "b": b}, a * b, f"{min(a, b)}*{max(a, b)}"
