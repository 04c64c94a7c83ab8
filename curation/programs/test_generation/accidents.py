"""Relations that small samples show by accident, where the statement introduces every number with its limits.

Two or three values are in order, or off their own places, oftener than not; a statement that writes ``0 <= a`` does not
mean that no list begins with a zero.

Invariants: pure; what a statement speaks of in words is never taken for an accident.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from curation.programs.test_generation.relations import Key, Reading, Relations

_CHANCE = 0.05
"""What holds by chance oftener than that in so many lists of such lengths may be an accident."""


def accidents(
    relations: Relations,
    readings: Sequence[Reading],
    limits: Mapping[int, tuple[int | None, int | None]],
    spoken: frozenset[str],
) -> frozenset[Key]:
    """Return the kept relations that may be accidents.

    Args:
        limits: the least and the greatest number of columns that the statement writes, by column.
        spoken: names of relations of which it speaks.
    """
    lengths: dict[int, list[int]] = {}
    for reading in readings:
        for block in reading.seen:
            if len(block.tokens) > 1:
                lengths.setdefault(block.column, []).append(len(block.tokens))

    looped = {
        block.first for reading in readings for block in reading.blocks if any(row[0] == row[1] for row in block.rows)
    }

    def chance(key: Key) -> float:
        own = lengths.get(key[1], [])
        if key[0] == "ordered":
            return math.prod(1 / math.factorial(min(length, 20)) for length in own)
        if key[0] == "own_place":
            return math.prod((1 - 1 / length) ** length for length in own)
        if key[0] == "edges":
            return float(key[1] in looped)  # ends of ranges, not of edges
        if key[0] == "nonzero":
            least = limits.get(key[1], (None, None))[0]
            return float(least is not None and least <= 0)
        return float(key[0] == "compare" and key[3] == "!=" and {key[1], key[2]} <= limits.keys())

    return frozenset(
        key for key in relations.kept if (key[0] == "edges" or key[0] not in spoken) and chance(key) > _CHANCE
    )
