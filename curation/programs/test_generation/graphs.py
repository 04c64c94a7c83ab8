"""Edges of graphs: connected ones, simple ones, of shapes on which wrong and slow programs fail.

A connected graph is a tree (a path, a star, a broom, a random one) with further edges.
"""

from __future__ import annotations

import random

from curation.programs.test_generation.columns import Pair

_MOST_TRIES = 40


def draw_edges(
    count: int, low: int, high: int, draw: random.Random, *, connected: bool, simple: bool, sort: bool
) -> list[tuple[int, int]]:
    """Return so many edges between nodes ``low`` to ``high``, none from a node to itself.

    Args:
        connected: they join all nodes.
        simple: no two join the same nodes.
        sort: the smaller end comes first.

    Raises:
        ValueError: there is no such graph, or none was found.
    """
    nodes = high - low + 1
    if (nodes < 2 and count) or (connected and count < nodes - 1) or (simple and count > nodes * (nodes - 1) // 2):
        raise ValueError(f"no graph of {nodes} nodes and {count} edges")
    edges = _tree(low, high, draw) if connected else []
    known = {frozenset(edge) for edge in edges}
    near = draw.random() < 0.3
    tries = _MOST_TRIES * count + _MOST_TRIES
    while len(edges) < count:
        tries -= 1
        if tries < 0:
            raise ValueError("no further edge was found")
        a = draw.randint(low, high)
        b = min(high, a + draw.randint(1, 3)) if near else draw.randint(low, high)
        if a != b and not (simple and frozenset((a, b)) in known):
            edges.append((a, b))
            known.add(frozenset((a, b)))
    draw.shuffle(edges)
    if sort:
        return [(min(edge), max(edge)) for edge in edges]
    return [edge if draw.random() < 0.5 else edge[::-1] for edge in edges]


def draw_tree(edges: int, draw: random.Random) -> tuple[list[str], list[str]]:
    """Return the ends of a path, a star or a random tree on 1 … edges + 1, under shuffled names."""
    names = list(range(1, edges + 2))
    if draw.random() < 0.7:
        draw.shuffle(names)
    reach = draw.choice((1, 2, edges + 1))
    star = draw.random() < 0.2
    rows = [(names[0 if star else draw.randint(max(0, i - reach), i - 1)], names[i]) for i in range(1, edges + 1)]
    draw.shuffle(rows)
    return [str(a) for a, _ in rows], [str(b) for _, b in rows]


def _tree(low: int, high: int, draw: random.Random) -> list[tuple[int, int]]:
    """Return a path, a star, a broom or a random tree, under shuffled names."""
    names = list(range(low, high + 1))
    if draw.random() < 0.7:
        draw.shuffle(names)
    reach = draw.choice((1, 1, 3, len(names)))
    shape = draw.choice(("near", "near", "star", "broom"))
    edges = []
    for i in range(1, len(names)):
        parent = draw.randint(max(0, i - reach), i - 1)
        if shape == "star":
            parent = 0
        elif shape == "broom" and i > len(names) // 2:
            parent = len(names) // 2
        edges.append((names[parent], names[i]))
    return edges


def paired(pair: Pair, first: list[str], second: list[str], low: int, high: int) -> tuple[list[str], list[str]]:
    """Return the numbers of two columns, those of a row unlike and in order where those seen are.

    Args:
        low, high: the range of the second ones.

    Raises:
        ValueError: there is no other number.
    """
    for i, (a, b) in enumerate(zip(first, second, strict=True)):
        if pair.unequal and a == b:
            if low >= high:
                raise ValueError("two different values of one")
            second[i] = str(int(a) + 1 if int(a) < high else low)
    if pair.ordered:
        rows = [sorted((int(a), int(b))) for a, b in zip(first, second, strict=True)]
        return [str(a) for a, _ in rows], [str(b) for _, b in rows]
    return first, second
