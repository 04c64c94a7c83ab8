"""Which rules look at which rows: every gate at once, literals of many rules looked for in few passes over a text.

Most rules look only where one of a few dozen literals stands, and few rows hold any of them. A pass over all texts
costs the same for one literal as for a hundred (polars builds an automaton that reads each byte once; beyond a hundred
it builds a slower one). So the literals of several rules are looked for together, and which rule's they are only in the
rows that hold one.

Invariant: a column of `gates` is what the rule's own literals and its own gate say of each row, and False for null.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np
import polars as pl

from curation.filters.statements.expressions import STATEMENT, StatementRule, contains_any

_MOST_NEEDLES = 100
"""Literals up to which the automaton is the quick one."""


def gates(rows: pl.DataFrame, rules: Sequence[StatementRule]) -> pl.DataFrame:
    """Return for each row and rule, a column by the rule's name, whether the rule looks at it."""
    bins = _bins(rules)
    wide = [rule.gate.fill_null(False).alias(rule.name) for rule in rules if not rule.needles]
    held = [
        contains_any(STATEMENT, _together(several)).fill_null(False).alias(f"{at}") for at, several in enumerate(bins)
    ]
    passed = rows.lazy().select(*wide, *held).collect()  # lazily: what several gates share is worked out once
    columns = {name: passed[name] for name in passed.columns[: len(wide)]}
    for at, several in enumerate(bins):
        places = passed[f"{at}"].arg_true()
        narrow = [
            (contains_any(STATEMENT, rule.needles) & rule.gate).fill_null(False).alias(rule.name) for rule in several
        ]
        for column in rows[places].lazy().select(narrow).collect():
            values = np.zeros(rows.height, bool)
            values[places.to_numpy()[column.to_numpy()]] = True
            columns[column.name] = pl.Series(column.name, values)
    return pl.DataFrame([columns[rule.name] for rule in rules])


def _bins(rules: Sequence[StatementRule]) -> list[list[StatementRule]]:
    """Return the rules with literals, in groups whose literals together are few enough for one pass."""
    bins: list[list[StatementRule]] = []
    for rule in sorted((rule for rule in rules if rule.needles), key=lambda rule: -len(rule.needles)):
        for several in bins:
            if len(_together([*several, rule])) <= _MOST_NEEDLES:
                several.append(rule)
                break
        else:
            bins.append([rule])
    return bins


def _together(rules: Sequence[StatementRule]) -> list[str]:
    """Return the literals of several rules, less those that hold another one of them."""
    needles = list(dict.fromkeys(map(_lower, chain.from_iterable(rule.needles for rule in rules))))
    return [needle for needle in needles if not any(other != needle and other in needle for other in needles)]


def _lower(needle: str) -> str:
    return needle.lower() if needle.isascii() else needle  # the case of ASCII letters alone does not count
