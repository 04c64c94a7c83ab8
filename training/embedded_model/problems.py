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
    numbers, answer, computation = _DRAWS[kind](random, level)
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


_Draw = tuple[dict[str, int], int, str]


def _add(random: Random, level: int) -> _Draw:
    (low, high), (least, most) = {
        1: ((11, 89), (2, 9)),
        2: ((12, 89), (12, 89)),
        3: ((100, 899), (12, 89)),
        4: ((100, 899), (100, 899)),
    }[level]
    a, b = _between(random, low, high), _between(random, least, most)
    return {"a": a, "b": b}, a + b, f"{min(a, b)}+{max(a, b)}"


def _subtract(random: Random, level: int) -> _Draw:
    (low, high), (least, most) = {
        1: ((11, 89), (2, 9)),
        2: ((11, 50), (11, 49)),
        3: ((100, 899), (12, 89)),
        4: ((101, 449), (100, 499)),
    }[level]
    b, more = _between(random, least, most), _between(random, low, high)
    a = b + more if level in (2, 4) else more
    return {"a": a, "b": b}, a - b, f"{a}-{b}"


def _multiply(random: Random, level: int) -> _Draw:
    low, high = {1: (11, 19), 2: (20, 99), 3: (100, 499)}[level]
    a, b = _between(random, low, high), _between(random, 3, 9)
    return {"a": a, "b": b}, a * b, f"{b}*{a}"


def _three(random: Random, level: int) -> _Draw:  # noqa: ARG001
    a, b, c = (_between(random, 11, 49) for _ in range(3))
    return {"a": a, "b": b, "c": c}, a + b + c, "+".join(map(str, sorted((a, b, c))))


def _giving(random: Random, level: int) -> _Draw:  # noqa: ARG001
    a, b, c = _between(random, 30, 80), _between(random, 5, 25), _between(random, 3, 20)
    return {"a": a, "b": b, "c": c}, a - b + c, f"{a}-{b}+{c}"


def _two_steps(random: Random, level: int) -> _Draw:  # noqa: ARG001
    a, b, c = _between(random, 5, 40), _between(random, 3, 9), _between(random, 3, 12)
    return {"a": a, "b": b, "c": c}, a + b * c, f"{a}+{b}*{c}"


def _remainder(random: Random, level: int) -> _Draw:  # noqa: ARG001
    b = _between(random, 3, 9)
    a = _between(random, 2 * b, 10 * b - 1)
    return {"a": a, "b": b}, a % b, f"{a}%{b}"


def _larger(random: Random, level: int) -> _Draw:
    a, b = (_between(random, 10 ** (level + 1), 10 ** (level + 2) - 1) for _ in range(2))
    b += a == b
    return {"a": a, "b": b}, max(a, b), f"max {min(a, b)} {max(a, b)}"


def _equation(random: Random, level: int) -> _Draw:
    a, b = _between(random, 2, 9), _between(random, 3, 9 if level == 2 else 30)
    x = _between(random, 2, 15)
    return {"a": a, "b": b, "r": a * x + b}, x, f"{a}x+{b}={a * x + b}"


def _big_product(random: Random, level: int) -> _Draw:  # noqa: ARG001
    a, b = _between(random, 23, 98), _between(random, 34, 97)
    return {"a": a, "b": b}, a * b, f"{min(a, b)}*{max(a, b)}"


_DRAWS = {
    "add": _add,
    "subtract": _subtract,
    "multiply": _multiply,
    "three": _three,
    "giving": _giving,
    "two_steps": _two_steps,
    "remainder": _remainder,
    "larger": _larger,
    "equation": _equation,
    "big_product": _big_product,
}
