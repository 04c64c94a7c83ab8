"""Sources as batches of Problems: rows are selected by `where`, quota, join and limit, in this order.

Invariants: the selection is deterministic; sound + bad = rows, and both keep their positions in the source; a bad row
passes the selection, is dropped as ``bad_row`` and kept in `QUARANTINE`; too many bad rows, or any in the joined table,
end the reading.
"""

from __future__ import annotations

import hashlib
import heapq
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

import polars as pl
from polars.exceptions import ColumnNotFoundError, PolarsError

from curation.config import Source
from curation.config.base import names
from curation.records import DROPPED, DropReason, SourceError, problem_id
from curation.sources.problems import check_columns, problem_rows
from curation.sources.rows import BadRowError, RawRow, Row, require_path, value_at
from curation.sources.tables import source_state, table_rows
from curation.storage.remote import first_line

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
        "raw": pl.Binary(),  # the line's first `MAX_KEPT` bytes; without lines, the row as JSON
    }
)
MAX_KEPT = 1 << 20
"""Max stored bytes of a bad row."""
BATCH_BYTES = 64 << 20
"""Max bytes of a batch's packages' tests, which are read later."""
FIRST_ROWS = 1000
"""First rows, of which one must have each column."""
SPACE = 1 << 64
"""Range of the rows' draw numbers."""
STEPS = ("rows", "where", "drawn", "joined", "matched")
"""Counted rows: all, those left after each step, and those with a match in the joined table."""


@dataclass(frozen=True, slots=True)
class Part(Generic[Built]):
    """A batch's built rows, and its bad rows, dropped and in full."""

    rows: int
    built: Built
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
        counts: by `STEPS`, updated while reading.

    Raises:
        SourceError: the source is empty, lacks a column, or has too many bad rows.
    """
    rows = selected_rows(source, folder, batch_rows, counts if counts is not None else Counter())
    first = list(itertools.islice(rows, FIRST_ROWS))
    if not first:
        steps = " and ".join(f"`{name}`" for name in ("where", "quota", "join") if getattr(source, name) is not None)
        what = f"rows{f' that pass its {steps}' if steps else ''}"
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
        sound_rows += len(batch) - len(bad)
        if bad_rows > source.bad_rows:
            raise _too_many(source, bad[source.bad_rows - bad_rows])
        quarantine = _quarantine(source, folder, bad)
        yield Part(len(batch), built, _dropped(source, quarantine), quarantine)
    if not sound_rows:
        raise SourceError(f"source {source.name}: no row of it can be read (the last one: {bad[-1].sentence}).")


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
    """Build the sound rows; give others a reason."""

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


def _too_many(source: Source, bad: RawRow) -> SourceError:
    if source.bad_rows:
        return SourceError(
            f"source {source.name}: more than {source.bad_rows:,} rows cannot be read (the last one: {bad.sentence}); "
            "mend the source, or raise its `bad_rows`."
        )
    return SourceError(
        f"source {source.name}: {bad.sentence}. Mend it, or set `bad_rows = 100` for source {source.name} in a recipe "
        "to set up to 100 such rows aside."
    )


def _quarantine(source: Source, folder: Path, bad: Sequence[RawRow]) -> pl.DataFrame:
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
    values = {"domain": str(source.domain), "license": source.license, "weight": source.weight, "stage": STAGE}
    dropped = quarantine.with_columns(
        id=pl.Series(ids, dtype=pl.String),
        group=pl.Series(ids, dtype=pl.String),
        evidence=pl.format("{}, line {}: {}", "file", "line", "reason"),
        reason=pl.lit(str(DropReason.BAD_ROW)),
        **{name: pl.lit(value) for name, value in values.items()},
    )
    return dropped.match_to_schema(DROPPED, missing_columns="insert", extra_columns="ignore")


def selected_rows(source: Source, folder: Path, batch_rows: int, counts: Counter[str]) -> Iterator[RawRow]:
    """Yield a source's selected rows, readable or not.

    Args:
        counts: by `STEPS`, updated while reading.

    Raises:
        SourceError: a step does not fit the rows, or the joined table has a bad row.
    """

    def counted(rows: Iterable[RawRow], step: str) -> Iterator[RawRow]:
        for row in rows:
            counts[step] += 1
            yield row

    rows = counted(table_rows(source, folder, batch_rows), "rows")
    rows = counted(_of_where(source, rows, batch_rows), "where")
    rows = counted(_drawn(source, folder, batch_rows, rows), "drawn")
    rows = counted(_joined(source, folder, batch_rows, rows, counts), "joined")
    return itertools.islice(rows, source.limit)


def _require_first(rows: Iterable[RawRow], paths: Sequence[str], where: str) -> Iterator[RawRow]:
    rows = iter(rows)
    first = list(itertools.islice(rows, FIRST_ROWS))
    for path in paths:
        require_path([raw.row for raw in first if raw.row is not None], path, where)
    yield from first
    yield from rows


def _condition(source: Source) -> tuple[str, pl.Expr, list[str]]:
    """Return a source's `where` in words, as an expression, and its columns."""
    where = f'source {source.name}: `where = "{source.where}"`'
    try:
        expression = pl.sql_expr(source.where or "")
        columns = list(dict.fromkeys(expression.meta.root_names()))
    except PolarsError as error:
        raise SourceError(f"{where} is no SQL expression ({first_line(error)[:200]}).") from error
    if not columns:
        raise SourceError(f"{where} names no column.")
    if not _asks_each_row(expression):
        raise SourceError(f"{where} needs all rows together, but rows are read a batch at a time.")
    return where, expression, columns


def _asks_each_row(expression: pl.Expr) -> bool:
    """Return whether an expression needs no aggregates or windows."""
    meta = expression.meta
    if meta.is_literal():
        return True
    try:
        is_separable = meta.is_row_separable()
    except ColumnNotFoundError:  # polars cannot decide it without the columns' types: arithmetic
        is_separable = True
    return is_separable and all(map(_asks_each_row, meta.pop()))


def _of_where(source: Source, rows: Iterator[RawRow], batch_rows: int) -> Iterator[RawRow]:
    """Yield the rows for which the condition holds; null drops a row, and CSV columns are text."""
    if source.where is None:
        yield from rows
        return
    where, expression, columns = _condition(source)
    unseen = columns
    while batch := list(itertools.islice(rows, batch_rows)):
        readable = [raw.row for raw in batch if raw.row is not None]
        for name in unseen if readable else ():
            is_quoted = f'"{name}"' in source.where
            hint = f" (text is written in 'single quotes': \"{name}\" is a column)" if is_quoted else ""
            require_path(readable, name, f"{where}{hint}")
        unseen = [] if readable else unseen
        kept = iter(_holds(where, expression, columns, readable))
        yield from (raw for raw in batch if raw.row is None or next(kept))


def _holds(where: str, expression: pl.Expr, columns: Sequence[str], rows: Sequence[Row]) -> pl.Series:
    shown = ""
    try:
        frame = pl.DataFrame([pl.Series(name, [row.get(name) for row in rows], strict=False) for name in columns])
        shown = "; its columns are: " + ", ".join(f"{name} {kind}" for name, kind in frame.schema.items())
        kept = frame.select(kept=expression)["kept"]
    except (PolarsError, TypeError, ValueError) as error:
        raise SourceError(f"{where} cannot be applied to its rows ({first_line(error)}){shown}.") from error
    if kept.dtype not in (pl.Boolean, pl.Null):
        raise SourceError(f"{where} is {kept.dtype}, not true or false; compare it with something.")
    return kept


def _drawn(source: Source, folder: Path, batch_rows: int, rows: Iterable[RawRow]) -> Iterator[RawRow]:
    """Yield the rows that the quota draws; a larger quota draws a superset."""
    if source.quota is None:
        return iter(rows)
    bound: float = source.quota * SPACE
    if isinstance(source.quota, int):
        columns = sorted(_condition(source)[2]) if source.where is not None else []
        readable = (raw for raw in table_rows(source, folder, batch_rows, columns) if raw.row is not None)
        numbers = (_number(source.name, raw.position) for raw in _of_where(source, readable, batch_rows))
        bound = max(heapq.nsmallest(source.quota, numbers), default=-1) + 1
    return (raw for raw in rows if raw.row is None or _number(source.name, raw.position) < bound)


def _number(source: str, position: int) -> int:
    text = f"0 {source} {position}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


Key = tuple[str, ...]


def _joined(
    source: Source, folder: Path, batch_rows: int, rows: Iterable[RawRow], counts: Counter[str]
) -> Iterator[RawRow]:
    """Yield the rows with their matches in the second table."""
    join, second = source.join, source.joined
    if join is None or second is None:
        yield from rows
        return
    where = f"source {source.name}: join with {join.path}"
    paths = names(join.key if join.key is not None else join.on)
    by_key: dict[Key, list[dict[str, Any]]] = {}
    for raw in _require_first(table_rows(second, folder, batch_rows), [*paths, *join.columns], where):
        if raw.row is None:
            raise SourceError(f"{where}: {raw.sentence}; mend it; its key is unknown.")
        if (key := _key(raw.row, paths)) is None:
            continue
        matches = by_key.setdefault(key, [])
        if join.most is None or len(matches) < join.most:
            matches.append({path.rpartition(".")[2]: value_at(raw.row, path) for path in join.columns} or dict(raw.row))
    if not by_key:
        raise SourceError(f"{where}: it has no rows with a key.")
    paths = names(join.on)
    for raw in _require_first(rows, paths, f"source {source.name}: `join.on`"):
        if raw.row is not None:
            key = _key(raw.row, paths)
            matches = by_key.get(key, []) if key is not None else []
            counts["matched"] += bool(matches)
            raw.row = {**raw.row, join.into: matches}
        yield raw


def _key(row: Row, paths: Sequence[str]) -> Key | None:
    values = [value_at(row, path) for path in paths]
    return None if any(value is None for value in values) else tuple(map(str, values))
