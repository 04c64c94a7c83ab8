"""The border of maps: rows of letters as long as one another, whose outermost cells all hold the same sign."""

from __future__ import annotations

from collections.abc import Sequence

_LEAST = 3


def border_of(rows: Sequence[str]) -> frozenset[str]:
    """Return the signs on the border of a map; nothing where the rows are too few or of several lengths.

    Example: ``border_of(["###", "#.#", "###"])`` is ``{"#"}``
    """
    if len(rows) < _LEAST or len(rows[0]) < _LEAST or len({len(row) for row in rows}) > 1:
        return frozenset()
    return frozenset(rows[0] + rows[-1] + "".join(row[0] + row[-1] for row in rows))


def with_border(rows: Sequence[str], sign: str) -> list[str]:
    """Return a map with a sign on its whole border."""
    last = len(rows) - 1
    return [
        sign * len(row) if at in (0, last) or len(row) < _LEAST else f"{sign}{row[1:-1]}{sign}"
        for at, row in enumerate(rows)
    ]
