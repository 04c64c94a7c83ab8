"""Selection of a source's rows: `where`, quota, join and limit, in this order.

Invariants: rows keep their positions; the selection is deterministic; unreadable rows pass.
"""

from __future__ import annotations

import hashlib
import heapq
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from polars.exceptions import ColumnNotFoundError, PolarsError

from curation.config import Source
from curation.config.base import names
from curation.config.sources import Join
from curation.records import SourceError
from curation.sources.rows import RawRow, Row, require_path, value_at
from curation.sources.tables import table_rows
from curation.storage.remote import first_line

FIRST_ROWS = 1000
"""First rows, of which one must have each column."""
SPACE = 1 << 64
"""Range of the rows' draw numbers."""

STEPS = ("rows", "where", "drawn", "joined", "matched")
"""Counted rows: those seen, those left by each step, and those with a match in the joined table."""


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
    if source.quota is not None:
        rows = _drawn(source, folder, batch_rows, rows)
    rows = counted(rows, "drawn")
    if source.join is not None:
        rows = _joined(source, source.join, folder, batch_rows, rows, counts)
    yield from itertools.islice(counted(rows, "joined"), source.limit)


def _require_first(rows: Iterable[RawRow], paths: Sequence[str], where: str) -> Iterator[RawRow]:
    """Yield the rows; refuse them if the first all lack a path."""
    rows = iter(rows)
    first = list(itertools.islice(rows, FIRST_ROWS))
    for path in paths:
        require_path([raw.row for raw in first if raw.row is not None], path, where)
    yield from first
    yield from rows


def _condition(source: Source) -> tuple[str, pl.Expr, list[str]]:
    """Return a source's `where` in words, as an expression, and its columns.

    Raises:
        SourceError: it is no expression on single rows.
    """
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


def _described(series: pl.Series) -> str:
    if isinstance(series.dtype, pl.Struct):
        return ", ".join(f"{series.name}.{field.name} {field.dtype}" for field in series.dtype.fields)
    return f"{series.name} {series.dtype}"


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
    described = ""
    try:
        frame = pl.DataFrame([pl.Series(name, [row.get(name) for row in rows], strict=False) for name in columns])
        described = f"; its columns are: {', '.join(map(_described, frame))}"
        kept = frame.select(kept=expression)["kept"]
    except (PolarsError, TypeError, ValueError) as error:
        raise SourceError(f"{where} cannot be asked of its rows ({first_line(error)}){described}.") from error
    if kept.dtype not in (pl.Boolean, pl.Null):
        raise SourceError(f"{where} is {kept.dtype}, not true or false; compare it with something.")
    return kept


def _drawn(source: Source, folder: Path, batch_rows: int, rows: Iterable[RawRow]) -> Iterator[RawRow]:
    """Yield the rows that the quota draws; a larger quota draws a superset."""
    bound: float = SPACE
    if isinstance(quota := source.quota, int):
        columns = sorted(_condition(source)[2]) if source.where is not None else []
        readable = (raw for raw in table_rows(source, folder, batch_rows, columns) if raw.row is not None)
        numbers = (_number(source.name, raw.position) for raw in _of_where(source, readable, batch_rows))
        bound = max(heapq.nsmallest(quota, numbers), default=-1) + 1
    elif quota is not None:
        bound = quota * SPACE
    return (raw for raw in rows if raw.row is None or _number(source.name, raw.position) < bound)


def _number(source: str, position: int) -> int:
    text = f"0 {source} {position}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


Key = tuple[str, ...]


def _read_joined(source: Source, join: Join, folder: Path, batch_rows: int) -> dict[Key, list[dict[str, Any]]]:
    """Read a source's second table into memory, by key.

    Raises:
        SourceError: it is missing, lacks a column or all keys, or has an unreadable row.
    """
    table = source.joined
    assert table is not None
    where = f"source {source.name}: join with {join.path}"
    paths = names(join.key if join.key is not None else join.on)
    by_key: dict[Key, list[dict[str, Any]]] = {}
    for raw in _require_first(table_rows(table, folder, batch_rows), [*paths, *join.columns], where):
        if raw.row is None:
            raise SourceError(f"{where}: {raw.place}: {raw.reason.rstrip('.')}; mend it, for its key is not known.")
        if (key := _key(raw.row, paths)) is None:
            continue
        matches = by_key.setdefault(key, [])
        if join.most is None or len(matches) < join.most:
            matches.append({path.rpartition(".")[2]: value_at(raw.row, path) for path in join.columns} or dict(raw.row))
    if not by_key:
        raise SourceError(f"{where}: it has no rows with a key.")
    return by_key


def _joined(
    source: Source, join: Join, folder: Path, batch_rows: int, rows: Iterable[RawRow], counts: Counter[str]
) -> Iterator[RawRow]:
    table, paths = _read_joined(source, join, folder, batch_rows), names(join.on)
    for raw in _require_first(rows, paths, f"source {source.name}: `join.on`"):
        if raw.row is not None:
            key = _key(raw.row, paths)
            matches = table.get(key, []) if key is not None else []
            counts["matched"] += bool(matches)
            raw.row = {**raw.row, join.into: matches}
        yield raw


def _key(row: Row, paths: Sequence[str]) -> Key | None:
    values = [value_at(row, path) for path in paths]
    return None if any(value is None for value in values) else tuple(map(str, values))
