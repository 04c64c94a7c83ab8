"""Selection of a source's rows: `where`, quota, join and limit, in this order.

Invariants: rows keep their positions; the selection is deterministic; unreadable rows pass.
"""

from __future__ import annotations

import hashlib
import heapq
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

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


class PlacedRow(NamedTuple):
    """A row and its position in the source, from 0."""

    position: int
    raw: RawRow


@dataclass(slots=True)
class SelectionCounts:
    """Numbers of rows seen, and left by each step."""

    rows: int = 0
    where: int = 0
    drawn: int = 0
    joined: int = 0
    matched: int = 0
    """Rows with a match in the joined table."""


def selected_rows(source: Source, folder: Path, batch_rows: int, counts: SelectionCounts) -> Iterator[PlacedRow]:
    """Yield a source's selected rows, readable or not.

    Args:
        counts: updated while reading.

    Raises:
        SourceError: a step does not fit the rows, or the joined table has a bad row.
    """
    quota, drawn = source.quota, None
    if isinstance(quota, int):
        drawn = draw(source.name, quota, _positions(source, folder, batch_rows))
    rows = _counted(_placed(source, folder, batch_rows), counts, "rows")
    rows = _counted(_of_where(source, rows, batch_rows), counts, "where")
    if quota is not None:
        rows = _drawn(source.name, quota, rows, drawn)
    rows = _counted(rows, counts, "drawn")
    if source.join is not None:
        rows = _joined(rows, source, source.join, read_joined(source, source.join, folder, batch_rows), counts)
    yield from itertools.islice(_counted(rows, counts, "joined"), source.limit)


def require_first(rows: Iterable[PlacedRow], paths: Sequence[str], where: str) -> Iterator[PlacedRow]:
    """Yield the rows; refuse them if the first all lack a path."""
    rows = iter(rows)
    first = list(itertools.islice(rows, FIRST_ROWS))
    for path in paths:
        require_path([one.raw.row for one in first if one.raw.row is not None], path, where)
    yield from first
    yield from rows


def _placed(source: Source, folder: Path, batch_rows: int, columns: Sequence[str] | None = None) -> Iterator[PlacedRow]:
    return itertools.starmap(PlacedRow, enumerate(table_rows(source, folder, batch_rows, columns)))


def _counted(rows: Iterable[PlacedRow], counts: SelectionCounts, name: str) -> Iterator[PlacedRow]:
    for row in rows:
        setattr(counts, name, getattr(counts, name) + 1)
        yield row


class RowFilter:
    """A SQL condition on rows; null drops the row. CSV columns are text.

    Raises:
        SourceError: it is no expression.
    """

    def __init__(self, expression: str, where: str) -> None:
        self.text = expression
        self.where = f'{where}: `where = "{expression}"`'
        try:
            self._expression = pl.sql_expr(expression)
            self.columns = tuple(dict.fromkeys(self._expression.meta.root_names()))
        except PolarsError as error:
            raise SourceError(f"{self.where} is no SQL expression ({first_line(error)[:200]}).") from error
        if not self.columns:
            raise SourceError(f"{self.where} names no column.")
        if not _asks_each_row(self._expression):
            raise SourceError(f"{self.where} needs all rows together, but rows are read a batch at a time.")
        self._seen: set[str] = set()

    def keep(self, rows: Sequence[Row]) -> list[bool]:
        """Return whether the condition holds for each row.

        Raises:
            SourceError: a column is missing, or a result is no truth value.
        """
        for name in self.columns if rows else ():
            if name not in self._seen:
                hint = (
                    f" (text is written in 'single quotes': \"{name}\" is a column)" if f'"{name}"' in self.text else ""
                )
                require_path(rows, name, f"{self.where}{hint}")
                self._seen.add(name)
        columns = ""
        try:
            frame = pl.DataFrame(
                [pl.Series(name, [row.get(name) for row in rows], strict=False) for name in self.columns]
            )
            columns = f"; its columns are: {', '.join(map(_described, frame))}"
            verdicts = frame.select(self._expression.alias("kept"))["kept"]
        except (PolarsError, TypeError, ValueError) as error:
            raise SourceError(f"{self.where} cannot be asked of its rows ({first_line(error)}){columns}.") from error
        if verdicts.dtype not in (pl.Boolean, pl.Null):
            raise SourceError(f"{self.where} is {verdicts.dtype}, not true or false; compare it with something.")
        return [bool(verdict) for verdict in verdicts]


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


def _of_where(source: Source, rows: Iterator[PlacedRow], batch_rows: int) -> Iterator[PlacedRow]:
    if source.where is None:
        yield from rows
        return
    wanted = RowFilter(source.where, f"source {source.name}")
    while batch := list(itertools.islice(rows, batch_rows)):
        kept = iter(wanted.keep([one.raw.row for one in batch if one.raw.row is not None]))
        yield from (one for one in batch if one.raw.row is None or next(kept))


def _positions(source: Source, folder: Path, batch_rows: int) -> Iterator[int]:
    columns = RowFilter(source.where, f"source {source.name}").columns if source.where is not None else ()
    placed = _placed(source, folder, batch_rows, sorted(columns))
    taken = _of_where(source, (one for one in placed if one.raw.row is not None), batch_rows)
    return (one.position for one in taken)


def _drawn(
    source: str, share: float, rows: Iterable[PlacedRow], positions: frozenset[int] | None
) -> Iterator[PlacedRow]:
    for one in rows:
        at = one.position
        if one.raw.row is None or (at in positions if positions is not None else _number(source, at) < share * SPACE):
            yield one


def draw(source: str, rows: int, positions: Iterable[int]) -> frozenset[int]:
    """Return the positions that a quota draws; a larger quota draws a superset."""
    numbered = ((_number(source, position), position) for position in positions)
    return frozenset(position for _, position in heapq.nsmallest(rows, numbered))


def _number(source: str, position: int) -> int:
    text = f"0 {source} {position}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


Key = tuple[str, ...]


def read_joined(source: Source, join: Join, folder: Path, batch_rows: int) -> dict[Key, list[dict[str, Any]]]:
    """Read a source's second table into memory, by key.

    Raises:
        SourceError: it is missing, lacks a column or all keys, or has an unreadable row.
    """
    table = source.joined
    assert table is not None
    where = f"source {source.name}: join with {join.path}"
    paths = names(join.key if join.key is not None else join.on)
    by_key: dict[Key, list[dict[str, Any]]] = {}
    placed = itertools.starmap(PlacedRow, enumerate(table_rows(table, folder, batch_rows)))
    for _, raw in require_first(placed, [*paths, *join.columns], where):
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
    rows: Iterable[PlacedRow], source: Source, join: Join, table: Mapping[Key, Any], counts: SelectionCounts
) -> Iterator[PlacedRow]:
    paths = names(join.on)
    for position, raw in require_first(rows, paths, f"source {source.name}: `join.on`"):
        if raw.row is None:
            yield PlacedRow(position, raw)
            continue
        key = _key(raw.row, paths)
        matches = table.get(key, []) if key is not None else []
        counts.matched += bool(matches)
        yield PlacedRow(position, replace(raw, row={**raw.row, join.into: matches}))


def _key(row: Row, paths: Sequence[str]) -> Key | None:
    values = [value_at(row, path) for path in paths]
    return None if any(value is None for value in values) else tuple(map(str, values))
