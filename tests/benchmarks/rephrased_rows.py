"""Sets of rephrased benchmark rows, and sets that are disjoint from the benchmark, with what is measured of them.

The originals of a file of pairs are the benchmark. Disjoint sets have a few rows that are the same problem all the same
(MBPP and HumanEval both ask whether a number is prime).
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from curation.filters.decontamination.overlap import BenchmarkIndex, OverlapSettings

MBPP = "code/mbpp_sanitized"
DISJOINT = {"gsm8k_rephrased": ("math/svamp",), "humaneval_rephrased": (MBPP,)}
LOOKED_AT = {"humaneval_rephrased": lambda pair: int(pair["id"].split("/")[1]) % 2 == 0}
"""Pairs on which a threshold was chosen; the others were only scored."""
OF_PROGRAMS = OverlapSettings(programs=True)
"""What `flows.stages.decontamination.overlap_settings` says in the code pipeline."""


def statements(path: Path) -> list[str]:
    """Return the statements of a file of rows."""
    text = path.read_text(encoding="utf-8")
    rows = json.loads(text) if path.suffix == ".json" else [json.loads(line) for line in text.split("\n") if line]
    return [text for row in rows for text in [row.get("problem") or row.get("prompt")] if text]


def measured(
    benchmark: list[str], sets: dict[str, list[str]], settings: OverlapSettings
) -> tuple[dict[str, pl.DataFrame], dict[str, float]]:
    """Return the scores of each set, and the CPU seconds that they took."""
    index = BenchmarkIndex(
        pl.DataFrame({"benchmark": "b", "row": range(len(benchmark)), "statement": benchmark}), settings
    )
    for texts in sets.values():
        index.count(pl.Series(texts))
    scores, seconds = {}, {}
    for name, texts in sets.items():
        start = time.process_time()
        scores[name] = index.scores(pl.Series(texts))
        seconds[name] = time.process_time() - start
    return scores, seconds


@dataclass(frozen=True, slots=True)
class Scored:
    """A file of pairs, the sets shown with it, and what was measured of them."""

    pairs: list[dict[str, Any]]
    some: list[dict[str, Any]]  # those with a rephrased text
    benchmark: list[str]
    sets: dict[str, list[str]]  # texts by name
    scores: dict[str, pl.DataFrame]
    seconds: dict[str, float]
    is_own: pl.Series  # of the scores of rephrased rows: whether the benchmark's row is their own original

    @property
    def left_out(self) -> pl.DataFrame:
        """Return what is left where each row's own original is no row of the benchmark."""
        return self.scores["rephrased"].filter(~self.is_own)


def scored_pairs(data: Path, name: str, settings: OverlapSettings) -> Scored:
    """Return what is measured of a file of pairs."""
    pairs = [json.loads(line) for line in (data / "contamination" / f"{name}.jsonl").open(encoding="utf-8")]
    pairs = [{"id": number, **pair} for number, pair in enumerate(pairs)]
    some = [pair for pair in pairs if pair["rephrased"].strip()]
    sets = {"rephrased": [pair["rephrased"] for pair in some]}
    sets |= {path: statements(data / f"{path}.jsonl") for path in DISJOINT[name]}
    tasks = {pair["original"]: pair["id"] for pair in reversed(pairs)} if settings.programs else {}
    originals = list(tasks) or [pair["original"] for pair in pairs]
    ids = pl.Series(list(tasks.values()) or [pair["id"] for pair in pairs])
    # many hits of a row, so that those on its own original can be told from the others
    scores, seconds = measured(originals, sets, replace(settings, most=100))
    found = scores["rephrased"]
    is_own = pl.Series([pair["id"] for pair in some])[found["row"]] == ids[found["benchmark_row"]]
    return Scored(pairs, some, originals, sets, scores, seconds, is_own)
