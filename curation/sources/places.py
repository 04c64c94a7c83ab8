"""Files of tables, and the content that was read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from curation.config.sources import Source
from curation.records import SourceError


class MissingSourceError(SourceError):
    """A source that is gone, forbidden or unreachable."""


@dataclass(frozen=True, slots=True)
class TableState:
    """A table's content when read, with its joined table's."""

    digest: str
    commit: str | None = None
    joined_commit: str | None = None


@dataclass(frozen=True, slots=True)
class TableFile:
    """A local file, and the URL it was copied from."""

    path: Path
    url: str = ""


def joined_table(source: Source) -> Source | None:
    """Return a source's second table as a source, or None."""
    join = source.join
    if join is None:
        return None
    return Source(name=source.name, kind=join.kind, path=join.path, subset=join.subset, revision=join.revision)
