"""Finds a file's overlaps with benchmark files.

Invariants: one output line per row, in order; the file appears only when complete.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson
import polars as pl

from curation.filters.decontamination.dropping import count_templates
from curation.filters.decontamination.overlap import OVERLAP, BenchmarkIndex, OverlapSettings
from curation.records import SourceError, problem_id
from curation.sources.files import read_rows
from curation.sources.rows import Row, value_at

BATCH_ROWS = 5000

FIELDS = ("problem", "statement", "question", "prompt", "original", "text")
"""Possible columns of statements, in order."""


@dataclass(frozen=True, slots=True)
class OverlapCounts:
    """Counts of rows, overlaps and templates."""

    rows: int
    hit_rows: int
    template_rows: int
    hits: dict[str, int]


def contamination_file(
    path: Path,
    against: Sequence[Path],
    out: Path,
    settings: OverlapSettings | None = None,
    *,
    field: str | None = None,
    benchmark_field: str | None = None,
) -> OverlapCounts:
    """Write the hits of the rows of ``path`` in the files ``against``.

    Args:
        path, against: .jsonl (also .gz and .zst), .parquet or .csv.
        field, benchmark_field: dotted paths, by default the first of `FIELDS`.

    Raises:
        SourceError: a file is missing, empty, unreadable or without statements.
    """
    index = BenchmarkIndex(
        pl.concat(_benchmark(benchmark, benchmark_field) for benchmark in against), settings or OverlapSettings()
    )
    for batch in _batches(path, field):
        index.count(batch["statement"])
    aside = out.with_name(out.name + ".part")
    rows = hit_rows = template_rows = 0
    hits: dict[str, int] = {}
    with aside.open("wb") as lines:
        for batch in _batches(path, field):
            hits_by_row: dict[int, list[Row]] = {}
            found = index.hits(batch["statement"])
            for hit in found.iter_rows(named=True):
                hits_by_row.setdefault(hit["row"], []).append(
                    {
                        "benchmark": hit["benchmark"],
                        "row": hit["benchmark_row"],
                        "method": hit["method"],
                        "score": round(hit["score"], 4),
                        "agreement": round(hit["agreement"], 4),
                        "kind": hit["kind"],
                    }
                )
            overlaps = found.filter(pl.col("kind") == OVERLAP)
            for method, count in overlaps.group_by("method").len().sort("method").iter_rows():
                hits[method] = hits.get(method, 0) + count
            for place, name in enumerate(batch["id"]):
                line = {"row": rows + place, "id": name, "hits": hits_by_row.get(place, [])}
                lines.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))
            rows += batch.height
            hit_rows += overlaps["row"].n_unique()
            template_rows += count_templates(found)
    os.replace(aside, out)
    return OverlapCounts(rows, hit_rows, template_rows, hits)


def _benchmark(path: Path, field: str | None) -> pl.DataFrame:
    statements = pl.concat(batch["statement"] for batch in _batches(path, field))
    name = path.name.split(".")[0]
    return pl.DataFrame(
        {"benchmark": [name] * len(statements), "row": range(len(statements)), "statement": statements},
        schema_overrides={"row": pl.Int64},
    )


def _batches(path: Path, field: str | None) -> Iterator[pl.DataFrame]:
    rows = read_rows(path)
    first = True
    while batch := list(itertools.islice(rows, BATCH_ROWS)):
        field = field or _field(batch[0], path)
        statements = [_text(value_at(row, field)) for row in batch]
        if first and not any(statements):
            raise SourceError(f"{path}: no row has a text at `{field}`; there are: {', '.join(batch[0])}.")
        first = False
        ids = [
            str(row["id"]) if row.get("id") is not None else problem_id(text or "")
            for row, text in zip(batch, statements, strict=True)
        ]
        yield pl.DataFrame({"id": ids, "statement": statements}, schema={"id": pl.String, "statement": pl.String})
    if first:
        raise SourceError(f"{path} holds no rows.")


def _field(row: Row, path: Path) -> str:
    for name in FIELDS:
        if name in row:
            return name
    raise SourceError(f"{path}: no column is named {', '.join(FIELDS)}; name one of: {', '.join(row)}.")


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
