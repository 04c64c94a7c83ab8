"""Values that must be in order, different or joined by edges, brought there where they are not.

Invariants: values of a row are turned round or moved by one, no others are drawn.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

from curation.programs.test_generation.drawn_words import without_equals
from curation.programs.test_generation.forms import InputForm
from curation.programs.test_generation.grammar import Env
from curation.programs.test_generation.reaching import reachable, with_path
from curation.programs.test_generation.relations import Relations


def put_in_order(form: InputForm, first: int, columns: list[list[str]], draw: random.Random) -> None:
    """Turn or shift values of the rows of a block, whose columns begin with ``first``."""
    for place in range(1, len(columns)):
        for word, other in form.relations.beside(first + place):
            column = columns[other - first]
            if form.columns[first + place].kind == "word":
                columns[place] = without_equals(column, columns[place], draw)
                continue
            for i, (a, b) in enumerate(zip(columns[place], column, strict=True)):
                x, y = int(a), int(b)
                if word[0] in "<>" and (x > y) == (word[0] == "<") and x != y:
                    columns[place][i], column[i] = b, a
                elif x == y and word in ("<", ">", "!="):
                    columns[place][i] = str(x - 1 if word == "<" else x + 1)
                elif word == "=":
                    columns[place][i] = b


def join_nodes(relations: Relations, first: int, columns: list[list[str]], env: Env, draw: random.Random) -> None:
    """Put a path into a block of edges where it must join two nodes that were written before it."""
    for start in sorted({key[1] for key in relations.kept if key[0] == "reaches" and key[2] == first}):
        if start + 1 in env:
            with_path(columns, env[start], env[start + 1], draw)


def reached_node(
    relations: Relations, name: int, value: int, env: Env, edges: Mapping[int, list[list[str]]], draw: random.Random
) -> int:
    """Return a node, another one where it must be reached from the number before it along ``edges``, by block."""
    for first, way in relations.words_of("reaches", name - 1):
        if first in edges:
            known = reachable(zip(*(map(int, ends) for ends in edges[first]), strict=True), env[name - 1], way)
            value = value if value in known else draw.choice(list(known))
    return value
