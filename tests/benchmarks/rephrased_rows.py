"""Rephrased rows of HumanEval and GSM8K, whose originals are the benchmark, and sets that are disjoint from it.

A few rows of disjoint sets are the same problem nevertheless. Odd tasks of HumanEval are held out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from curation.filters.decontamination.overlap import METHODS, BenchmarkIndex, OverlapSettings

PROGRAMS = OverlapSettings(programs=True, methods=METHODS)
"""What `flows.stages.decontamination.overlap_settings` returns in the code pipeline."""
PROBLEMS = OverlapSettings(methods=METHODS)


@dataclass(frozen=True, slots=True)
class RowSet:
    """Rows with what was measured of them against a benchmark."""

    name: str
    rows: list[str]
    benchmark: list[str]
    scores: pl.DataFrame
    settings: OverlapSettings
    own: pl.Series | None = None
    """Of rephrased rows: by the row, the place of its own original in the benchmark."""
    count: int | None = None
    """Of how many rows the scores are, where not of all."""


def _read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def _statements(path: Path) -> list[str]:
    return [text for row in _read(path) for text in [row.get("problem") or row.get("prompt")] if text]


def _index(benchmark: list[str], settings: OverlapSettings, *sets: list[str]) -> BenchmarkIndex:
    """Return an index that has counted all sets; it keeps many hits of a row, its own original among them."""
    frame = pl.DataFrame({"benchmark": "b", "row": range(len(benchmark)), "statement": benchmark})
    index = BenchmarkIndex(frame, replace(settings, most=100))
    for texts in sets:
        index.count(pl.Series(texts))
    return index


def program_sets(data: Path) -> Iterator[RowSet]:
    """Yield the held-out rephrased rows of HumanEval, and all of them without their own originals."""
    name, pairs = "humaneval_rephrased", _read(data / "contamination" / "humaneval_rephrased.jsonl")
    some = [pair for pair in pairs if pair["rephrased"].strip()]
    texts, tasks = [pair["rephrased"] for pair in some], {pair["original"]: pair["id"] for pair in reversed(pairs)}
    benchmark = list(tasks)
    scores = _index(benchmark, PROGRAMS, texts, _statements(data / "code" / "mbpp_sanitized.jsonl")).scores(
        pl.Series(texts)
    )
    places = {pair["id"]: benchmark.index(pair["original"]) for pair in reversed(pairs)}
    own = pl.Series([places[pair["id"]] for pair in some])
    odd = pl.Series([int(pair["id"].split("/")[1]) % 2 == 1 for pair in some])
    held_out = scores.filter(odd[scores["row"]])
    yield RowSet(f"{name}, own row, held out", texts, benchmark, held_out, PROGRAMS, own, int(odd.sum()))
    known = pl.Series([pair["id"] for pair in some])[scores["row"]]
    left_out = scores.filter(known != pl.Series(list(tasks.values()))[scores["benchmark_row"]])
    yield RowSet(f"{name}, left out, all", texts, benchmark, left_out, PROGRAMS)


def problem_sets(data: Path) -> Iterator[RowSet]:
    """Yield the rephrased rows of GSM8K, the same without their own originals, and SVAMP."""
    name, pairs = "gsm8k_rephrased", _read(data / "contamination" / "gsm8k_rephrased.jsonl")
    some = [(place, pair["rephrased"]) for place, pair in enumerate(pairs) if pair["rephrased"].strip()]
    texts, others = [text for _, text in some], _statements(data / "math" / "svamp.jsonl")
    benchmark, own = [pair["original"] for pair in pairs], pl.Series([place for place, _ in some])
    index = _index(benchmark, PROBLEMS, texts, others)
    scores = index.scores(pl.Series(texts))
    yield RowSet(f"{name}, own row", texts, benchmark, scores, PROBLEMS, own)
    left_out = scores.filter(own[scores["row"]] != scores["benchmark_row"])
    yield RowSet(f"{name}, left out", texts, benchmark, left_out, PROBLEMS)
    yield RowSet("math/svamp", others, benchmark, index.scores(pl.Series(others)), PROBLEMS)
