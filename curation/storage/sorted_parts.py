"""Read and write tables larger than memory."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

import polars as pl

from curation.storage.stages import atomic_replace, table_files, write_parquet

ROWS_AT_ONCE = 50_000
"""Max rows of a part, also when hashed."""

_BEGIN = pl.col("problem").str.slice(0, 3)


def scan_table(folder: Path, table: str) -> pl.LazyFrame:
    """Scan a finished stage's table."""
    files = table_files(folder, table)
    return pl.scan_parquet(files, glob=False) if files else pl.LazyFrame()


def in_order(*tables: pl.LazyFrame, by: Sequence[str] = ("problem",)) -> Iterator[tuple[pl.DataFrame, ...]]:
    """Yield rows of the same problems together."""
    begins = [table.group_by(begin=_BEGIN).len().collect(engine="streaming") for table in tables]
    sizes = pl.concat(begins).group_by("begin").agg(pl.col("len").sum()).sort("begin")
    bounds: list[str] = []
    count = ROWS_AT_ONCE
    for begin, rows in sizes.iter_rows():
        count += rows
        if count > ROWS_AT_ONCE:
            bounds.append(begin)
            count = rows
    for first, end in zip_longest(bounds, bounds[1:]):
        from_first = pl.col("problem") >= first
        in_range = from_first if end is None else from_first & (pl.col("problem") < end)
        yield tuple(table.filter(in_range).collect(engine="streaming").sort(by) for table in tables)


def in_slices(table: pl.LazyFrame) -> Iterator[pl.DataFrame]:
    """Yield slices of `ROWS_AT_ONCE` rows."""
    height = table.select(pl.len()).collect().item()
    for start in range(0, height, ROWS_AT_ONCE):
        yield table.slice(start, ROWS_AT_ONCE).collect(engine="streaming")


def write_files(
    folder: Path, name: str, frames: Iterable[pl.DataFrame], schema: pl.Schema, limit: int, size: Callable[..., float]
) -> list[Path]:
    """Write frames as files of up to ``limit`` by ``size``; return their paths."""
    files, batch = list[Path](), [schema.to_frame()]

    def write() -> None:
        files.append(folder / f"{name}-{len(files):05}.parquet")
        write_parquet(files[-1], pl.concat(batch))

    for frame in frames:
        filled = sum(map(size, batch))
        if filled and filled + size(frame) > limit:
            write()
            batch = batch[:1]
        batch.append(frame)
    write()
    return files


def write_scanned(path: Path, table: pl.LazyFrame) -> None:
    """Write a table aside and rename it."""
    with atomic_replace(path) as file:
        table.sink_parquet(file, compression="zstd", compression_level=3, statistics=True, row_group_size=ROWS_AT_ONCE)


def digest_in_order(table: pl.LazyFrame, by: Sequence[str] = ("problem",)) -> str:
    """Return the hash of a table's CSV, sorted by ``by``."""
    digest = hashlib.blake2b(digest_size=16)
    digest.update(pl.DataFrame(schema=table.collect_schema()).write_csv().encode())
    for (frame,) in in_order(table, by=by):
        for rows in frame.iter_slices(ROWS_AT_ONCE):
            digest.update(rows.write_csv(include_header=False).encode())
    return digest.hexdigest()
