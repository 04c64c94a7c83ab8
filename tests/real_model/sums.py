"""Sums in one step for the real model, and how they are shown to it: drawn by a seed, split by content.

Whether a sum is held out is a property of its two numbers, whatever their order and whatever the seed: 23 + 4 and
4 + 23 are never on two sides. The worked examples that the prompt shows are on neither.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from random import Random

import polars as pl

from curation.records import Domain, problem_id
from tests.places import SHARED_DATA

LARGEST, LARGEST_ADDED = 29, 9
HELD_OUT_SHARE = 0.25
SHOWN = ((2, 5), (13, 5))
"""Sums of the worked examples."""

EXAMPLES = (
    *((f"What is {a} + {b}?", f"{a} + {b} = \\boxed{{{a + b}}}") for a, b in SHOWN),
    ("Tom has 9 pens and buys 4 more. How many pens has Tom?", r"9 + 4 = \boxed{13}"),
)
"""What the prompt shows: without any, this model writes a box in one response of fifty or less."""

WORD_PROBLEMS = SHARED_DATA / "math" / "svamp.jsonl"
"""SVAMP's problems in one step, where they are at hand."""


@dataclass(frozen=True, slots=True)
class Sum:
    """Two numbers to add. Example: ``Sum(23, 4).statement == "What is 23 + 4?"``"""

    a: int
    b: int

    @property
    def statement(self) -> str:
        """Return what is asked."""
        return f"What is {self.a} + {self.b}?"

    @property
    def answer(self) -> str:
        """Return the reference answer."""
        return str(self.a + self.b)

    @property
    def held_out(self) -> bool:
        """Return whether it is on the held-out side."""
        name = "+".join(str(number) for number in sorted((self.a, self.b)))
        return hashlib.blake2b(name.encode(), digest_size=1).digest()[0] < HELD_OUT_SHARE * 256


def draw_sums(seed: int, count: int, *, held_out: bool) -> list[Sum]:
    """Return so many sums of one side, each once; all there are where there are fewer."""
    shown = {frozenset(pair) for pair in SHOWN}
    every = [Sum(a, b) for a in range(1, LARGEST + 1) for b in range(1, LARGEST_ADDED + 1)]
    side = [one for one in every if one.held_out is held_out and frozenset((one.a, one.b)) not in shown]
    Random(seed).shuffle(side)
    return side[:count]


def write_problems(path: Path, sums: list[Sum]) -> None:
    """Write sums as rows for a source of a recipe."""
    rows = (json.dumps({"problem": one.statement, "answer": one.answer, "lang": "en"}) + "\n" for one in sums)
    path.write_text("".join(rows), encoding="utf-8")


def write_set(folder: Path, sums: list[Sum]) -> None:
    """Write sums as a curated set, as far as the trainer reads one."""
    frame = pl.DataFrame(
        {
            "id": [problem_id(one.statement) for one in sums],
            "domain": Domain.MATH.value,
            "statement": [one.statement for one in sums],
            "answer": [one.answer for one in sums],
            "lang": "en",
            "meta": "{}",
        }
    ).with_columns(pl.col("id").alias("group"))
    (folder / "data").mkdir(parents=True, exist_ok=True)
    frame.write_parquet(folder / "data" / "train-00000-of-00001.parquet")
