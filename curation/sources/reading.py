"""Sources in batches of Problems.

Invariants: sound + bad = rows, and both count for positions; a bad row is dropped as ``bad_row`` and kept in
`QUARANTINE`; too many bad rows, or any in the joined table, end the reading.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

import polars as pl

from curation.config import Source
from curation.records import DROPPED, DropReason, SourceError, problem_id
from curation.sources.problems import check_columns, problem_rows
from curation.sources.rows import BadRowError, RawRow, Row
from curation.sources.selection import FIRST_ROWS, selected_rows
from curation.sources.tables import source_state

Built = TypeVar("Built")
Build = Callable[[list[Row], Sequence[int]], Built]
"""Builds something of rows and their source positions."""

STAGE = "sources"
TABLE = "quarantine"
"""A stage's table of bad rows, one file a shard."""

QUARANTINE = pl.Schema(
    {
        "source": pl.String(),
        "row": pl.Int64(),  # position in the source, from 0
        "file": pl.String(),  # relative to the recipe's folder if it is in it; or a URL
        "line": pl.Int64(),  # from 1; of a parquet file or a data set, the row's number
        "reason": pl.String(),
        "raw": pl.Binary(),  # the line as it was, its first `MAX_KEPT` bytes; of what has no lines, the row as JSON
    }
)
MAX_KEPT = 1 << 20
"""Max stored bytes of a bad row."""
BATCH_BYTES = 64 << 20
"""Max bytes of a batch's packages' tests, which are read later."""


@dataclass(frozen=True, slots=True)
class Part(Generic[Built]):
    """A batch's built rows, and its bad rows, dropped and in full."""

    rows: int
    built: Built
    positions: list[int]
    """The sound rows', in the source."""
    dropped: pl.DataFrame
    quarantine: pl.DataFrame


def source_digest(source: Source, folder: Path) -> str:
    """Return a hash of what the source holds."""
    return source_state(source, folder).digest


def read_source(source: Source, folder: Path, batch_rows: int) -> Iterator[pl.DataFrame]:
    """Yield the source's rows as `PROBLEM` frames."""
    return (part.built for part in read_parts(source, folder, batch_rows, partial(problem_rows, source)))


def check_source(source: Source, folder: Path, build: Build[object] | None = None) -> None:
    """Refuse a missing or empty source, or one whose first rows lack a column."""
    limit = min(source.limit or FIRST_ROWS, FIRST_ROWS)
    few = source.model_copy(update={"limit": limit})
    next(read_parts(few, folder, limit, build if build is not None else partial(problem_rows, source)))


def read_parts(
    source: Source, folder: Path, batch_rows: int, build: Build[Built], counts: Counter[str] | None = None
) -> Iterator[Part[Built]]:
    """Yield batches of the source's rows, built by ``build``.

    Args:
        counts: by `curation.sources.selection.STEPS`, updated while reading.

    Raises:
        SourceError: the source is empty, lacks a column, or has too many bad rows.
    """
    rows = selected_rows(source, folder, batch_rows, counts if counts is not None else Counter())
    first = list(itertools.islice(rows, FIRST_ROWS))
    if not first:
        what = f"rows{_taken_by(source)}"
        if source.kind == "kattis":
            what = "problem package (a folder with problem.yaml and data/)"
        raise SourceError(f"source {source.name}: {source.path} holds no {what}.")
    if source.kind != "kattis":
        check_columns(source, [raw.row for raw in first if raw.row is not None])
    bad_rows = sound_rows = 0
    for batch in _batches(itertools.chain(first, rows), batch_rows):
        built = _build(batch, build)
        bad = [raw for raw in batch if raw.reason]
        bad_rows += len(bad)
        if bad_rows > source.bad_rows:
            raise _too_many(source, bad[source.bad_rows - bad_rows])
        sound = [raw.position for raw in batch if not raw.reason]
        sound_rows += len(sound)
        table = _table(source, folder, bad)
        dropped = _dropped(source, table)
        yield Part(len(batch), built, sound, dropped, table)
    if not sound_rows:
        raise SourceError(f"source {source.name}: no row of it can be read (the last one: {dropped['evidence'][-1]}).")


def _batches(rows: Iterator[RawRow], batch_rows: int) -> Iterator[list[RawRow]]:
    batch, size = list[RawRow](), 0
    for raw in rows:
        batch.append(raw)
        size += raw.size
        if len(batch) == batch_rows or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _build(batch: Sequence[RawRow], build: Build[Built]) -> Built:
    """Return what is built of the sound rows; others get a reason."""

    def built(raws: Sequence[RawRow]) -> Built:
        sound = [raw for raw in raws if not raw.reason]
        return build([raw.row for raw in sound if raw.row is not None], [raw.position for raw in sound])

    try:
        return built(batch)
    except BadRowError:
        for raw in batch:
            try:
                built([raw])
            except BadRowError as error:
                raw.reason = str(error)
    return built(batch)


def _taken_by(source: Source) -> str:
    steps = [f"`{name}`" for name in ("where", "quota", "join") if getattr(source, name) is not None]
    return f" that its {' and '.join(steps)} take{'s'[len(steps) != 1 :]}" if steps else ""


def _too_many(source: Source, bad: RawRow) -> SourceError:
    found = f"{bad.place}: {bad.reason.rstrip('.')}"
    if source.bad_rows:
        return SourceError(
            f"source {source.name}: more than {source.bad_rows:,} rows cannot be read (the last one: {found}); mend "
            "the source, or raise its `bad_rows`."
        )
    shown = "" if bad.row is not None else f": {(bad.raw or b'')[:60].decode('utf-8', 'replace')!r}"
    way_out = f"Mend it, or set `bad_rows = 100` for source {source.name} in a recipe to set up to 100 such rows aside."
    return SourceError(f"source {source.name}: {found}{shown}. {way_out}")


def _table(source: Source, folder: Path, bad: Sequence[RawRow]) -> pl.DataFrame:
    rows = []
    for raw in bad:
        path, content, reason = raw.path, raw.content, raw.reason
        if len(content) > MAX_KEPT:
            reason = f"{reason} (of its {len(content):,} bytes the first {MAX_KEPT:,} are kept)"
        file = path.relative_to(folder) if isinstance(path, Path) and path.is_relative_to(folder) else path
        rows.append((source.name, raw.position, str(file), raw.line, reason, content[:MAX_KEPT]))
    return pl.DataFrame(rows, schema=QUARANTINE, orient="row")


def _dropped(source: Source, quarantine: pl.DataFrame) -> pl.DataFrame:
    ids = [
        problem_id(raw.decode("utf-8", "replace") or f"{file}, line {line}", None, source.domain)
        for raw, file, line in quarantine.select("raw", "file", "line").iter_rows()
    ]
    dropped = quarantine.with_columns(
        id=pl.Series(ids, dtype=pl.String),
        group=pl.Series(ids, dtype=pl.String),
        domain=pl.lit(str(source.domain)),
        license=pl.lit(source.license),
        weight=pl.lit(source.weight),
        stage=pl.lit(STAGE),
        reason=pl.lit(str(DropReason.BAD_ROW)),
        evidence=pl.format("{}, line {}: {}", "file", "line", "reason"),
    )
    return dropped.match_to_schema(DROPPED, missing_columns="insert", extra_columns="ignore")
