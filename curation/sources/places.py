"""What names a table of rows, and what it held when it was read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from curation.config.base import Names
from curation.config.sources import Join, Made, Source
from curation.records import SourceError


class MissingSourceError(SourceError):
    """A source that cannot be had: it is gone, access to it was not granted, or it cannot be reached."""


@dataclass(frozen=True, slots=True)
class Place:
    """A table: its files, or a data set's configurations and splits.

    Example: ``Place("numina-1.5", "dataset", "AI-MO/NuminaMath-1.5")``
    """

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
    """What a table held when it was read: a hash of its content and, of a hub set, its commit; of a joined one, too."""

    digest: str
    commit: str | None = None
    joined_commit: str | None = None


@dataclass(frozen=True, slots=True)
class TableFile:
    """A file on this machine, and the public URL that it was fetched from; empty if it is no copy."""

    path: Path
    url: str = ""


def place_of(source: Source) -> Place:
    """Return the table of a source's own rows."""
    return _place(source.name, source)


def joined_place(source: Source) -> Place | None:
    """Return the second table of a source; None if it has none."""
    return None if source.join is None else _place(source.name, source.join)


def _place(name: str, table: Source | Join) -> Place:
    files, made = (None, None) if isinstance(table, Join) else (table.files, table.made)
    return Place(name, table.kind, table.path, table.subset, table.split, table.revision, files, made)
