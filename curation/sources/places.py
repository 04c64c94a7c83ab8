"""Names of tables, and their content when they were read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from curation.config.base import Names
from curation.config.sources import Made, Source
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
    names = ("kind", "path", "subset", "split", "revision", "files", "made")
    return Place(source.name, *(getattr(source, name) for name in names))


def joined_place(source: Source) -> Place | None:
    """Return a source's second table, or None."""
    join = source.join
    return None if join is None else Place(source.name, join.kind, join.path, join.subset, revision=join.revision)
