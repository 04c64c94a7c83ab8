"""Rows from a user's function (`kind = "python"`), with the user's rights.

Invariants: calls must yield equal rows in order; only the file's digest identifies the source.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from curation.plugins import Plugin, PluginRef, find_plugin
from curation.records import SourceError
from curation.sources.rows import RawRow


@runtime_checkable
class RowSource(Protocol):
    """A function that yields rows, whose columns the source's column map names.

    Example, in `rows.py` next to the recipe::

        from pathlib import Path

        def rows():
            for line in (Path(__file__).parent / "sums.txt").open():
                question, _, total = line.partition("=")
                yield {"question": f"What is {question.strip()}?", "total": total.strip()}
    """

    def __call__(self) -> Iterator[Mapping[str, Any]]:
        """Yield the rows in order."""
        ...


def find_rows(name: str, folder: Path, source: str) -> PluginRef:
    """Return a source's function.

    Raises:
        ConfigError: it cannot be loaded, or is no function.
    """
    return find_plugin(name, folder, f"source {source}", RowSource, "a function that yields rows")


def own_rows(name: str, folder: Path, source: str) -> Iterator[RawRow]:
    """Yield the function's rows, counted from 1.

    Raises:
        ConfigError: it cannot be loaded, or is no function.
        SourceError: it fails.
    """
    plugin = find_rows(name, folder, source).load()
    rows = _each(plugin, source)
    for number, row in enumerate(rows, 1):
        is_row = isinstance(row, Mapping) and all(isinstance(column, str) for column in row)
        reason = "" if is_row else f"{str(row)[:80]!r} is no dictionary with names of columns"
        yield RawRow(plugin.path, number, None if is_row else repr(row).encode(), dict(row) if is_row else None, reason)


def _each(plugin: Plugin, source: str) -> Iterator[Any]:
    done = 0
    try:
        for row in plugin.value():
            done += 1
            yield row
    except Exception as error:
        raise SourceError(f"source {source}: {plugin.failure(error)} (making row {done + 1}).") from error
