"""Which rows of a source are taken: of its `where`, drawn by its quota, joined with its second table, up to its limit.

In these steps, and in the source's own order. A row keeps its position in the source, however many before it are not
taken.

Invariants: the same source gives the same rows in every run and in every process; a row that cannot be read is judged
by no expression and no quota, and goes on, for whoever sets it aside.
"""

from __future__ import annotations

import hashlib
import heapq
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from curation.config import Source
from curation.config.base import names
from curation.config.sources import Quota
from curation.sources.joining import FIRST_ROWS, JoinedTable, read_joined
from curation.sources.places import place_of
from curation.sources.rows import RawRow, Row, require_path
from curation.sources.tables import raw_table_rows
from curation.sources.where import RowFilter

SPACE = 1 << 64
"""Of the numbers that rows are drawn by."""


@dataclass(frozen=True, slots=True)
class PlacedRow:
    """A row and its position in the source, from 0; ``raw`` where the bytes that it was are wanted.

    Example: ``PlacedRow(12, {"problem": "What is 1 + 1?"})``
    """

    position: int
    row: Row | None
    """None where it cannot be read."""
    raw: RawRow | None = None


@dataclass(slots=True)
class SelectionCounts:
    """How many rows of a source were seen, and how many each step left, in order; a limit may end the reading."""

    rows: int = 0
    where: int = 0
    drawn: int = 0
    joined: int = 0
    matched: int = 0
    """Rows that have at least one match in the joined table."""
    joined_bad: int = 0
    """Rows of the joined table that cannot be read, and were set aside."""


def selected_rows(
    source: Source,
    folder: Path,
    batch_rows: int,
    *,
    raw: bool = False,
    counts: SelectionCounts | None = None,
    of_joined: list[RawRow] | None = None,
) -> Iterator[PlacedRow]:
    """Yield the rows of a source that are taken.

    Args:
        folder: what relative paths are relative to.
        raw: give the bytes of each row, and the rows that cannot be read too.
        counts: is counted up while rows are read.
        of_joined: takes the rows of the joined table that cannot be read, before the first row comes; without it they
            end the reading.

    Raises:
        BadRowError: a row of the joined table cannot be read.
        SourceError: an expression, a quota or a join that the rows do not allow.
    """
    counts = counts if counts is not None else SelectionCounts()
    drawn = _drawn(source, folder, batch_rows, raw=raw)
    rows = _counted(_placed(source, folder, batch_rows, raw=raw), counts, "rows")
    rows = _counted(_of_where(source, rows, batch_rows), counts, "where")
    rows = _counted((row for row in rows if drawn is None or row.row is None or row.position in drawn), counts, "drawn")
    if source.join is not None:
        table = read_joined(source, source.join, folder, batch_rows, of_joined)
        counts.joined_bad = len(of_joined or ())
        rows = _joined(rows, table, f"source {source.name}", counts)
    yield from itertools.islice(_counted(rows, counts, "joined"), source.limit)


def _placed(
    source: Source, folder: Path, batch_rows: int, *, raw: bool, columns: Sequence[str] | None = None
) -> Iterator[PlacedRow]:
    for position, one in enumerate(raw_table_rows(place_of(source), folder, batch_rows, columns)):
        yield PlacedRow(position, one.row if raw else one.read(), one if raw else None)


def _counted(rows: Iterable[PlacedRow], counts: SelectionCounts, name: str) -> Iterator[PlacedRow]:
    for row in rows:
        setattr(counts, name, getattr(counts, name) + 1)
        yield row


def _of_where(source: Source, rows: Iterator[PlacedRow], batch_rows: int) -> Iterator[PlacedRow]:
    if source.where is None:
        yield from rows
        return
    wanted = RowFilter(source.where, f"source {source.name}")
    while batch := list(itertools.islice(rows, batch_rows)):
        read = [placed.row for placed in batch if placed.row is not None]
        kept = iter(wanted.keep(read))
        yield from (placed for placed in batch if placed.row is None or next(kept))


def _joined(rows: Iterable[PlacedRow], table: JoinedTable, where: str, counts: SelectionCounts) -> Iterator[PlacedRow]:
    rows = _with_path(rows, names(table.settings.on), f"{where}: `join.on`")
    for placed in rows:
        if placed.row is None:
            yield placed
            continue
        counts.matched += table.has(placed.row)
        if (row := table.beside(placed.row, f"{where}, row {placed.position}")) is not None:
            yield replace(placed, row=row, raw=None if placed.raw is None else replace(placed.raw, row=row))


def _with_path(rows: Iterable[PlacedRow], paths: Sequence[str], where: str) -> Iterator[PlacedRow]:
    """Yield the rows; refuse them where none of the first ones has a path."""
    rows = iter(rows)
    first = list(itertools.islice(rows, FIRST_ROWS))
    for path in paths:
        require_path([placed.row for placed in first if placed.row is not None], path, where)
    yield from first
    yield from rows


def _drawn(source: Source, folder: Path, batch_rows: int, *, raw: bool) -> frozenset[int] | _Share | None:
    """Return the positions that the quota draws; None where every row is taken."""
    quota = source.quota
    if quota is None or quota.rows is None:
        return None if quota is None else _Share(source.name, quota)
    columns = RowFilter(source.where, f"source {source.name}").columns if source.where is not None else ()
    placed = _placed(source, folder, batch_rows, raw=raw, columns=sorted(columns))
    taken = _of_where(source, (one for one in placed if one.row is not None), batch_rows)
    return draw(source.name, quota, (one.position for one in taken))


@dataclass(frozen=True, slots=True)
class _Share:
    """The positions of which a share is drawn, without any being counted."""

    source: str
    quota: Quota

    def __contains__(self, position: int) -> bool:
        share = self.quota.share
        return share is None or _number(self.source, position) < share * SPACE


def draw(source: str, quota: Quota, positions: Iterable[int]) -> frozenset[int]:
    """Return the positions that a quota draws.

    Each row has a number that follows from the source's name and its position; the smallest ones are drawn.
    So a larger quota draws the same rows and more.
    """
    share = _Share(source, quota)
    numbered = ((_number(source, position), position) for position in positions if position in share)
    chosen = sorted(numbered) if quota.rows is None else heapq.nsmallest(quota.rows, numbered)
    return frozenset(position for _, position in chosen)


def _number(source: str, position: int) -> int:
    text = f"0 {source} {position}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
