"""Generate an endless seeded supply of short sums, graded by level.

Invariants:

- a seed gives the same problems on every machine and Python version;
- whether a problem is held out depends on its computation alone;
- statements are distinct unless ``repeats``; answers are whole numbers, not negative;
- torch is not imported.
"""

from __future__ import annotations

import hashlib
import tomllib
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate
from pathlib import Path
from random import Random

from curation.records import normalise_text, problem_id


class Split(StrEnum):
    """Training or held-out problems."""

    TRAIN = "train"
    HELD_OUT = "held_out"


HELD_OUT_SHARE = 0.2
ENGLISH_SHARE = 0.7

_TRIES = 10_000
_TABLES = tomllib.loads(Path(__file__).with_name("problems.toml").read_text(encoding="utf-8"))

WORDINGS: Mapping[str, Mapping[str, list[str]]] = _TABLES["wordings"]
"""Texts by language and kind, which ask for one number; only English has all kinds."""


@dataclass(frozen=True, slots=True)
class Exercise:
    """A problem with its numbers and answer.

    Example: ``Exercise("What is 47 + 38?", "add", 2, "en", {"a": 47, "b": 38}, 85, "38+47")``
    """

    statement: str
    kind: str
    level: int  # 1 (an easy step) … 5 (harder than the embedded model's training data)
    lang: str
    operands: Mapping[str, int]
    answer: int
    computation: str  # the same for every wording of the same sum, in any order of its terms

    @property
    def id(self) -> str:
        return problem_id(self.statement)

    @property
    def held_out(self) -> bool:
        digest = hashlib.blake2b(self.computation.encode(), digest_size=8).digest()
        return int.from_bytes(digest) / 2**64 < HELD_OUT_SHARE


def generate_exercises(
    seed: int, split: Split | None = None, *, kinds: Sequence[str] = (), repeats: bool = False
) -> Iterator[Exercise]:
    """Yield exercises without end, by default of all splits and kinds, with distinct statements unless ``repeats``."""
    levels = [level for level in _TABLES["levels"] if not kinds or level["kind"] in kinds]
    bounds = list(accumulate(level["share"] for level in levels))
    random, used = Random(seed), set[str]()
    while True:
        for _ in range(_TRIES):
            point = random.random() * bounds[-1]
            exercise = _exercise(random, **levels[bisect_right(bounds, point)])
            if split is not None and exercise.held_out is (split is Split.TRAIN):
                continue
            name = "" if repeats else normalise_text(exercise.statement)
            if repeats or name not in used:
                used.add(name)
                yield exercise
                break
        else:
            raise ValueError(f"after {len(used)} exercises of {kinds or 'all kinds'} no new one was found")


def _exercise(random: Random, kind: str, level: int, numbers: Sequence[tuple[int, int]], **_: int) -> Exercise:
    drawn = [random.randint(low, high) for low, high in numbers]
    operands, answer, computation = _sum(random, kind, level, *drawn)
    foreign = [lang for lang, texts in WORDINGS.items() if lang != "en" and kind in texts]
    lang = "en" if not foreign or random.random() < ENGLISH_SHARE else random.choice(foreign)
    words = {name: random.choice(options) for name, options in _TABLES["words"].items()}
    statement = random.choice(WORDINGS[lang][kind]).format(**operands, **words)
    return Exercise(statement, kind, level, lang, operands, answer, computation)


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
            a, b = random.randint(2 * a, 10 * a - 1), a
            return {"a": a, "b": b}, a % b, f"{a}%{b}"
        case "larger":
            b += a == b
            return {"a": a, "b": b}, max(a, b), f"max {min(a, b)} {max(a, b)}"
        case "equation":
            return {"a": a, "b": b, "r": a * c + b}, c, f"{a}x+{b}={a * c + b}"
        case _:
            return {"a": a, "b": b}, a * b, f"{min(a, b)}*{max(a, b)}"
