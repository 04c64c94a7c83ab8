"""`goldilocks publish DIR --restore`: the withheld texts of a set put back from its sources."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from curation.records import ConfigError, SourceError
from flows.publish.public_set import restore
from flows.run.terminal import echo

SHOWN_ROWS = 5


def restore_set(folder: Path, home: Path, places: Sequence[str]) -> None:
    """Put the texts back, and print how many; those that are not what they were end it with an error that names them.

    Args:
        places: `NAME=PATH` each: where a source is here.
    """
    given = dict(_parted(place) for place in places)
    restored = restore(folder, home, given)
    if restored.missing:
        named = "; ".join(f"source {source}: {_first(rows)}" for source, rows in restored.missing.items())
        rows = sum(len(at) for at in restored.missing.values())
        raise SourceError(
            f"{folder}: the texts of {rows:,} rows are not what the set was made from, and stay empty ({named}); all "
            "others are back. Give the sources in the state that ATTRIBUTION.md names."
        )
    echo(f"{restored.texts:,} texts are back in {folder}, each with its digest")


def _parted(place: str) -> tuple[str, str]:
    name, sign, path = place.partition("=")
    if not (name and sign and path):
        raise ConfigError(f"--source {place}: write NAME=PATH.")
    return name, path


def _first(rows: Sequence[int]) -> str:
    more = " …" if len(rows) > SHOWN_ROWS else ""
    return f"row {', '.join(map(str, rows[:SHOWN_ROWS]))}{more}"
