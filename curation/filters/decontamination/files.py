"""Finds a file's overlaps with benchmark files.

Invariants: one output line per row, in order; the file appears only when complete.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl

from curation.filters.decontamination.overlap import OVERLAP, BenchmarkIndex, OverlapSettings, count_templates
from curation.records import SourceError, problem_id
from curation.sources.files import read_rows
from curation.sources.rows import value_at
from curation.storage.stages import atomic_replace

BATCH_ROWS = 5000

FIELDS = ("problem", "statement", "question", "prompt", "original", "text")
"""Possible columns of statements, in order."""


_HIT = pl.struct(
    "benchmark", pl.col("benchmark_row").alias("row"), "method", pl.col("score", "agreement").round(4), "kind"
)


def contamination_file(
    path: Path,
    against: Sequence[Path],
    out: Path,
    settings: OverlapSettings | None = None,
    *,
    field: str | None = None,
    benchmark_field: str | None = None,
) -> tuple[int, int, int, dict[str, int]]:
    """Write the hits of the rows of ``path`` in the files ``against``.

    Returns the numbers of rows, of rows with an overlap and with only a template, and overlaps by method.

    Args:
        field, benchmark_field: dotted paths, by default the first of `FIELDS`.

    Raises:
        SourceError: a file is unusable.
    """
    index = BenchmarkIndex(
        pl.concat(_benchmark(benchmark, benchmark_field) for benchmark in against), settings or OverlapSettings()
    )
    for batch in _batches(path, field):
        index.count(batch["statement"])
    rows = hit_rows = template_rows = 0
    hits: Counter[str] = Counter()
    with atomic_replace(out) as lines:
        for batch in _batches(path, field):
            batch_hits = index.hits(batch["statement"])
            by_row = batch_hits.group_by("row", maintain_order=True).agg(hits=_HIT)
            numbered = batch.select("id").with_row_index("row").with_columns(pl.col("row").cast(pl.Int64))
            listed = numbered.join(by_row, on="row", how="left", maintain_order="left")
            listed.select(pl.col("row") + rows, "id", pl.col("hits").fill_null([])).write_ndjson(lines)
            overlaps = batch_hits.filter(pl.col("kind") == OVERLAP)
            hits.update(overlaps["method"].to_list())
            rows += batch.height
            hit_rows += overlaps["row"].n_unique()
            template_rows += count_templates(batch_hits)
    return rows, hit_rows, template_rows, dict(sorted(hits.items()))


def _benchmark(path: Path, field: str | None) -> pl.DataFrame:
    statements = pl.concat(batch.select("statement") for batch in _batches(path, field)).with_row_index("row")
    return statements.select(
        pl.lit(path.name.split(".")[0]).alias("benchmark"), pl.col("row").cast(pl.Int64), "statement"
    )


def _batches(path: Path, field: str | None) -> Iterator[pl.DataFrame]:
    rows = read_rows(path)
    batch = list(itertools.islice(rows, BATCH_ROWS))
    if not batch:
        raise SourceError(f"{path} holds no rows.")
    column = field or next((name for name in FIELDS if name in batch[0]), None)
    if column is None:
        raise SourceError(f"{path}: no column is named {', '.join(FIELDS)}; name one of: {', '.join(batch[0])}.")
    if not any(isinstance(text := value_at(row, column), str) and text for row in batch):
        raise SourceError(f"{path}: no row has a text at `{column}`; there are: {', '.join(batch[0])}.")
    while batch:
        texts = [text if isinstance(text := value_at(row, column), str) else "" for row in batch]
        ids = [
            str(row["id"]) if row.get("id") is not None else problem_id(text)
            for row, text in zip(batch, texts, strict=True)
        ]
        yield pl.DataFrame(
            {"id": ids, "statement": [text or None for text in texts]}, {"id": pl.String, "statement": pl.String}
        )
        batch = list(itertools.islice(rows, BATCH_ROWS))
