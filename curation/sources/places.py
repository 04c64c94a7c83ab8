"""Names of tables, and their content when they were read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from curation.config.base import Names
from curation.config.sources import Join, Made, Source
from curation.records import SourceError


class MissingSourceError(SourceError):
    """A source that is gone, forbidden or unreachable."""


@dataclass(frozen=True, slots=True)
class Place:
    """A table: files, or a data set's configurations and splits."""

    source: str
    """The source that reads it: errors name it."""
    kind: str
    path: str
    subset: Names | None = None
    split: Names = "train"
    revision: str | None = None
    files: Names | None = None
    made: Made | None = None


@dataclass(frozen=True, slots=True)
class TableState:
    """A table's content when it was read, with its joined table's."""

    digest: str
    commit: str | None = None
    joined_commit: str | None = None


@dataclass(frozen=True, slots=True)
class TableFile:
    """A local file, and the public URL of which it is a copy, if any."""

    path: Path
    url: str = ""


def place_of(source: Source) -> Place:
    """Return the table of a source's own rows."""
    return _place(source.name, source)


def joined_place(source: Source) -> Place | None:
    """Return a source's second table, or None."""
    return None if source.join is None else _place(source.name, source.join)


def _place(name: str, table: Source | Join) -> Place:
    files, made = (None, None) if isinstance(table, Join) else (table.files, table.made)
    return Place(name, table.kind, table.path, table.subset, table.split, table.revision, files, made)
