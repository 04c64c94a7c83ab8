"""Whether one node can be reached from another along the edges of an input: ``it is possible to reach $t$ from $s$``.

Edges have a direction where all given inputs keep the promise with it, whatever the statement says.

Invariants: pure, apart from the drawing; a node reaches itself.
"""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from curation.programs.test_generation.grammar import SeenInputs
from curation.programs.test_generation.shapes import all_whole

Edges = Sequence[tuple[int, int]]

DIRECTED, BOTH_WAYS = "directed", "both ways"
_LONGEST = 6
_MOST_EDGES = 2_000
"""Of more edges nothing is said: who draws them sees to it, and looking takes time."""
FEW_BLOCKS = 4
"""Inputs of more blocks are of many cases: what numbers go with which edges is not looked for."""


def reached(seen: Sequence[SeenInputs], first: int, edges: Edges) -> Iterator[tuple[tuple[str, int, int, str], bool]]:
    """Yield for each two single numbers that follow one another whether the second is reached from the first, along
    the edges of the block ``first`` as they point, and along them both ways. The relation stands at the first number.
    """
    if len(edges) > _MOST_EDGES:
        return
    nodes = {node for edge in edges for node in edge}
    singles = [one for one in seen if len(one.tokens) == 1 and all_whole(one.tokens)]
    for one, other in itertools.pairwise(singles):
        start, end = int(one.tokens[0]), int(other.tokens[0])
        if other.column == one.column + 1 and {start, end} <= nodes:
            for way in (DIRECTED, BOTH_WAYS):
                yield ("reaches", one.column, first, way), end in reachable(edges, start, way)


def reachable(edges: Iterable[tuple[int, int]], start: int, way: str) -> dict[int, None]:
    """Return the nodes that can be reached from one, in the order in which they are."""
    after: dict[int, list[int]] = defaultdict(list)
    for a, b in edges:
        after[a].append(b)
        if way == BOTH_WAYS:
            after[b].append(a)
    found = {start: None}
    stack = [start]
    while stack:
        for node in after[stack.pop()]:
            if node not in found:
                found[node] = None
                stack.append(node)
    return found


def with_path(columns: list[list[str]], start: int, end: int, draw: random.Random) -> None:
    """Put a short path from one node to another in the place of some edges; the ends are the first two columns."""
    count = len(columns[0])
    if not count or start == end:
        return
    inner = draw.sample(columns[0] + columns[1], min(draw.randint(0, _LONGEST), count - 1))
    path = list(dict.fromkeys([str(start), *(node for node in inner if node not in (str(start), str(end))), str(end)]))
    for place, (a, b) in zip(draw.sample(range(count), len(path) - 1), itertools.pairwise(path), strict=True):
        columns[0][place], columns[1][place] = a, b
