"""Values of one row that must be in order, or different, brought there where they are not.

Invariants: values are turned round or moved by one, no others are drawn.
"""

from __future__ import annotations

import random

from curation.programs.test_generation.drawn_words import without_equals
from curation.programs.test_generation.forms import InputForm


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
