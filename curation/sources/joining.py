"""A second table beside a source's rows, by a key: as one more column of lists, or as columns of the one matching row.

The table is held in memory, by key. Keys are compared as text, so that 1566 and "1566" match; an absent one never does.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from curation.config import Source
from curation.config.base import names
from curation.config.sources import Join
from curation.records import SourceError
from curation.sources.places import Place, joined_place
from curation.sources.rows import BadRowError, RawRow, Row, require_path, too_many, value_at
from curation.sources.tables import raw_table_rows

FIRST_ROWS = 1000
"""Rows of either table in which a column must appear at least once."""

Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class JoinedTable:
    """The rows of a second table by their key, each with the columns that are taken."""

    settings: Join
    rows: Mapping[Key, list[dict[str, Any]]]
    columns: tuple[str, ...]

    def has(self, row: Row) -> bool:
        """Return whether any of its rows matches a row."""
        key = _key(row, names(self.settings.on))
        return key is not None and key in self.rows

    def beside(self, row: Row, where: str) -> Row:
        """Return a row with what matches it.

        Raises:
            SourceError: several rows match where one is wanted, or both tables have a column of one name.
        """
        key = _key(row, names(self.settings.on))
        matches = self.rows.get(key, []) if key is not None else []
        if self.settings.into is not None:
            return {**row, self.settings.into: matches}
        if len(matches) > 1:
            raise SourceError(
                f"{where}: {len(matches)} rows of {self.settings.path} have {' '.join(key or ())!r} as their key; take "
                "the first by `most = 1`, or all by `into`."
            )
        beside = matches[0] if matches else dict.fromkeys(self.columns)
        twice = sorted((set(beside) & set(row)) - set(names(self.settings.on)))
        if twice:
            raise SourceError(
                f"{where}: {self.settings.path} has a column `{twice[0]}` too; name those that you want in "
                "`join.columns`, or give `join.into`."
            )
        return {**row, **{name: value for name, value in beside.items() if name not in row}}


def read_joined(
    source: Source, join: Join, folder: Path, batch_rows: int, aside: list[RawRow] | None = None
) -> JoinedTable:
    """Read the second table of a source.

    Args:
        aside: takes its rows that cannot be read, as many as the source may have.

    Raises:
        BadRowError: one of its rows cannot be read, and nothing takes it.
        SourceError: it is not there, is empty, or lacks a column; or too many of its rows cannot be read.
    """
    place = joined_place(source)
    assert place is not None
    where = f"source {source.name}: join with {join.path}"
    paths = names(join.key if join.key is not None else join.on)
    by_key: dict[Key, list[dict[str, Any]]] = {}
    columns: dict[str, None] = {}
    rows = _rows(source, place, folder, batch_rows, where, aside)
    for row in _checked(rows, [*paths, *join.columns], where, batch_rows):
        key = _key(row, paths)
        if key is None:
            continue
        matches = by_key.setdefault(key, [])
        if join.most is None or len(matches) < join.most:
            taken = {path.rpartition(".")[2]: value_at(row, path) for path in join.columns} or dict(row)
            columns.update(dict.fromkeys(taken))
            matches.append(taken)
    if not by_key:
        raise SourceError(f"{where}: it has no rows with a key.")
    return JoinedTable(join, by_key, tuple(columns))


def _rows(
    source: Source, place: Place, folder: Path, batch_rows: int, where: str, aside: list[RawRow] | None
) -> Iterator[Row]:
    """Yield the rows of the table that can be read, and hand the others over."""
    for raw in raw_table_rows(place, folder, batch_rows):
        if raw.row is not None:
            yield raw.row
        elif aside is not None:
            aside.append(raw)
            if len(aside) > source.bad_rows:
                raise too_many(source.name, source.bad_rows, raw, raw.reason)
        else:
            try:
                raw.read()
            except BadRowError as error:
                raise BadRowError(f"{where}: {error}", error.reason) from error


def _checked(rows: Iterator[Row], paths: Sequence[str], where: str, batch_rows: int) -> Iterator[Row]:
    """Yield the rows; refuse a table of whose first rows none has a path."""
    is_first = True
    while batch := list(itertools.islice(rows, max(FIRST_ROWS, batch_rows))):
        if is_first:
            for path in paths:
                require_path(batch, path, where)
            is_first = False
        yield from batch


def _key(row: Row, paths: Sequence[str]) -> Key | None:
    values = [value_at(row, path) for path in paths]
    return None if any(value is None for value in values) else tuple(map(str, values))
