"""Which column each name of a statement is: the names that its description of the input introduces, in its order.

The columns of a form are in the order of the text. Where there are as many names, or as many but for columns of words,
and every rule holds in every given input, each name is taken for its column; else nothing is.

Invariants: pure.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence

from curation.programs.test_generation.columns import Column
from curation.programs.test_generation.demands import input_section
from curation.programs.test_generation.grammar import SeenInputs
from curation.programs.test_generation.introduced_names import introduced_names
from curation.programs.test_generation.stated_rules import (
    DOTS,
    MATH,
    NAME,
    SIGN,
    NamedColumns,
    Rule,
    Trust,
    all_names,
    base_name,
    plain_formula,
    readable,
    stated_rules,
    without_unequal,
)

_NOUN = re.compile(
    r"\b(?:integers?|numbers?|strings?|words?|reals?|values?|names?|lengths?|sequence|characters?)\s*[(,:]?\s*$",
    re.IGNORECASE,
)
_LINK = re.compile(r"\s*(?:,|and|, and|&)?\s*")


def name_columns(
    statement: str, columns: Mapping[int, Column], readings: Sequence[Sequence[SeenInputs]], *, listed: bool = False
) -> NamedColumns | None:
    """Return which column each name of the statement is; None where that cannot be told.

    ``listed``: names need no noun before them (`listed_names`), which is oftener wrong: for whom a validator corrects.
    """
    rules = stated_rules(statement)
    tried = [(stated_names(statement), Trust.TOLD)]
    tried += [(names, Trust.INTRODUCED) for names in introduced_names(statement)]
    tried += [(names, Trust.MENTIONED) for names in mentioned_names(statement)]
    for names, trust in [*tried, *([(listed_names(statement), Trust.TOLD)] if listed else [])]:
        named = _with_names(names, rules, columns)
        if named is None or any(named.broken(seen) is not None for seen in readings):
            continue
        if trust is Trust.TOLD or _lie_within(named, columns, readings):
            return dataclasses.replace(named, trust=trust)
    return None


def _lie_within(named: NamedColumns, columns: Mapping[int, Column], readings: Sequence[Sequence[SeenInputs]]) -> bool:
    """Return whether the formulas give ends to all columns but one, which hold what was seen."""
    limits = named.limits()
    fitting = 0
    for place in named.columns.values():
        low, high = limits.get(place, (None, None))
        tokens = [token for seen in readings for block in seen if block.column == place for token in block.tokens]
        sizes = list(map(len if columns[place].kind == "word" else float, tokens))
        if sizes and ((low is not None and min(sizes) < low) or (high is not None and max(sizes) > high)):
            return False
        fitting += low is not None and high is not None
    return fitting >= max(1, len(named.columns) - 1)


def _with_names(names: Sequence[str], rules: Sequence[Rule], columns: Mapping[int, Column]) -> NamedColumns | None:
    """Return the columns with these names, in their order, and the rules on them; None where there are not as many."""
    order = sorted(columns)
    numbers = [column for column in order if columns[column].kind != "word"]
    places = order if len(names) == len(order) else numbers if len(names) == len(numbers) else []
    if not names or not places:
        return None
    of_name = dict(zip(names, places, strict=True))
    known = tuple(rule for rule in rules if rule.names and rule.names <= set(of_name) and readable(rule))
    return NamedColumns(of_name, known) if known else None


def listed_names(statement: str) -> list[str]:
    """Return all names that stand alone, or in a list of names, in what a statement says of its input."""
    names: list[str] = []
    for match in MATH.finditer(input_section(statement)):
        pieces = [piece.strip() for piece in plain_formula(match[1] or match[2]).split(",")]
        if all(map(NAME.fullmatch, pieces)):
            names += [name for name in map(base_name, pieces) if name not in [*names, *"ijk"]]
    return names


def mentioned_names(statement: str) -> list[list[str]]:
    """Return the names of what a statement says of its input in the order in which they are mentioned: all, and those
    alone of which formulas say something or that dots list.

    Example: of ``the limit $1 \\le L \\le 9$ and the number $N$ of cards in the set $S$`` they are L, N, S and L alone.
    """
    names: list[str] = []
    spoken: set[str] = set()
    for match in MATH.finditer(input_section(statement)):
        text = plain_formula(match[1] or match[2])
        if "\\sum" in text:
            continue
        found = [base_name(name) for name in NAME.findall(DOTS.sub(" ", text)) if name[0] != "\\"]
        plain = [name.partition("_")[0] if DOTS.search(text) else name for name in found]
        told = DOTS.search(text) is not None or SIGN.search(text) is not None
        new = [name for name in dict.fromkeys(plain[:1] if DOTS.search(text) else plain) if name not in "ij"]
        names += [name for name in new if name not in names]
        spoken |= set(new) if told else set()
    fewer = [name for name in names if name in spoken]
    return [names, fewer] if fewer != names else [names]


def stated_names(statement: str) -> list[str]:
    """Return the names of what is read, in their order.

    Example: of ``two integers $n$ and $m$, then $n$ integers $a_1, …, a_n$`` they are n, m and a.
    """
    part = input_section(statement)
    names: list[str] = []
    end = -1
    for match in MATH.finditer(part):
        follows = end >= 0 and _LINK.fullmatch(part[end : match.start()]) is not None and match.start() > end
        end = -1
        if not follows and _NOUN.search(part[max(0, match.start() - 40) : match.start()]) is None:
            continue
        text = without_unequal(plain_formula(match[1] or match[2]))
        if DOTS.search(text):
            first = (NAME.findall(DOTS.sub(" ", text).split(",")[0]) or [""])[0]
            plain = first.partition("_")[0]
            found = [first if plain in names else plain] if first else []
        elif SIGN.search(text):
            middle = [piece for piece in SIGN.split(text)[::2] if NAME.search(piece)]
            ahead = [piece.strip() for piece in SIGN.split(text)[0].split(",")[:-1] if piece.strip()]
            listed = ahead if ahead and all_names(ahead) else NAME.findall(middle[0]) if middle else []
            found = [base_name(name) for name in listed]
        else:
            pieces = [piece.strip() for piece in text.split(",")]
            found = [base_name(piece) for piece in pieces] if all(map(NAME.fullmatch, pieces)) else []
        if found:
            end = match.end()
        names += [name for name in found if name not in names]
    return names
