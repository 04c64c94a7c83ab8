"""Where rows lie, as readers see it: a source of a recipe, or the second table of its join."""

from __future__ import annotations

from dataclasses import dataclass

from curation.config.base import Names
from curation.config.sources import Join, Source
from curation.records import SourceError


class MissingSourceError(SourceError):
    """A source that cannot be had: it is gone, access to it was not granted, or it cannot be reached."""


@dataclass(frozen=True, slots=True)
class Place:
    """A table of rows: its files, or a data set's configurations and splits.

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


def place_of(source: Source) -> Place:
    """Return where a source's own rows lie."""
    return _place(source.name, source)


def joined_place(source: Source) -> Place | None:
    """Return where the second table of a source lies; None where it has none."""
    return None if source.join is None else _place(source.name, source.join)


def _place(name: str, table: Source | Join) -> Place:
    files = None if isinstance(table, Join) else table.files
    return Place(name, table.kind, table.path, table.subset, table.split, table.revision, files)
