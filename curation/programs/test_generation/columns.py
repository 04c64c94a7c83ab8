"""What the columns of a form hold: their kind, their range, and what all inputs seen have in common.

A property is believed where every input shows it and enough of them could have shown otherwise: numbers that never
exceed another one, values that are all different, in order, a permutation, edges of a tree, words of one length.

Invariants: pure. A range is what was seen, or the statement's limit that stands at the column's place in the order of
the text, where it holds all that was seen (`ranges`).
"""

from __future__ import annotations

import dataclasses
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from curation.programs.test_generation.grammar import (
    FIXED,
    LengthReference,
    LineNode,
    LinesNode,
    Node,
    RepeatNode,
    SeenInputs,
)
from curation.programs.test_generation.limits import StatedBound
from curation.programs.test_generation.shapes import is_whole

OPEN = 10**18
"""The greatest value of a column that only another one limits."""
_CONSTANT = 3
"""Values that are all the same: of fewer it is not said that there is no other."""
_REAL = re.compile(r"-?\d+\.(\d+)")


@dataclass(frozen=True, slots=True)
class Column:
    """One column. ``kind``: whole, real, or word (also where kinds mix).

    ``most`` names a column that no value exceeds, ``certain`` says that some value reached it; ``base`` is the least
    value of a permutation, None where it is none; ``order`` is 1, -1 or 0; ``length`` names a word's length.
    ``wide`` is a limit of the statement that may be this column's, where none is known to be: some of the inputs that a
    validator will see are drawn from it.
    ``positive``: no value is 0 or less, though ``low`` of a real column may be 0.
    ``prime``: every value seen is one, and the statement speaks of primes.
    ``letters`` is empty where words mix with numbers: then only ``words`` are known to do.
    """

    kind: str
    low: int = 0
    high: int = 0
    most: int | None = None
    certain: bool = False
    distinct: bool = False
    order: int = 0
    base: int | None = None
    words: tuple[str, ...] = ()
    letters: str = ""
    sizes: tuple[int, int] = (1, 1)
    length: int | None = None
    decimals: int = 0
    wide: tuple[int, int] | None = None
    positive: bool = False
    prime: bool = False


@dataclass(frozen=True, slots=True)
class Pair:
    """What two columns of the same lines have in common: they are edges of a tree, never equal, or in order."""

    tree: bool
    unequal: bool
    ordered: bool


def counting(nodes: Sequence[Node]) -> set[int]:
    """Return the columns that count something."""
    columns: set[int] = set()
    for node in nodes:
        counts = [] if isinstance(node, LineNode) else [node.count]
        if isinstance(node, LinesNode) and isinstance(node.width, LengthReference):
            counts.append(node.width)
        columns |= {count.column for count in counts if count is not None and count.column != FIXED}
        if isinstance(node, RepeatNode):
            columns |= counting(node.nodes)
    return columns


def columns_in(
    nodes: Sequence[Node],
    observed: Sequence[SeenInputs],
    bounds: Sequence[StatedBound],
    *,
    careful: bool = False,
    signs: bool = False,
) -> dict[int, Column]:
    """Return each column of a form, from the tokens seen in it; ``bounds`` in the order of the text.

    ``careful``: a column that no limit stands for keeps the range that was seen. ``signs``: the statement speaks of
    positive numbers, so that columns of which no negative ones were seen have none.
    """
    groups: dict[int, list[SeenInputs]] = defaultdict(list)
    for block in observed:
        groups[block.column].append(block)
    columns = {column: _column(group) for column, group in sorted(groups.items())}
    limits, aligned = ranges(columns, bounds, counting(nodes), careful=careful)
    ends = {
        first: groups[first] + groups[first + 1] for first, pair in pairs_in(nodes, observed).items() if pair.unequal
    }
    ends |= {first + 1: group for first, group in ends.items()}  # ends of edges lie under the same number
    for column, limit in limits.items():
        low, high = limit
        if not careful and column not in aligned:
            columns[column] = dataclasses.replace(columns[column], wide=_wide(low, high, bounds, groups[column]))
        if columns[column].kind == "word":
            if column in aligned:
                columns[column] = dataclasses.replace(columns[column], sizes=(max(1, low), high))
            continue
        if columns[column].kind == "real":
            columns[column] = dataclasses.replace(columns[column], low=low, high=high)
            continue
        most, certain = _limiting_column(ends.get(column, groups[column]))
        if certain and column not in aligned:
            high = OPEN
        columns[column] = dataclasses.replace(columns[column], low=low, high=high, most=most, certain=certain)
    for name, own in columns.items() if signs else ():
        if own.kind == "real" or name not in aligned:
            columns[name] = _signed(own, groups[name])
    return columns


def _signed(column: Column, group: Sequence[SeenInputs]) -> Column:
    """Return a column without the signs that none of its values has."""
    if column.kind == "word":
        return column
    smallest = min(float(token) for block in group for token in block.tokens)
    if smallest < 0:
        return column
    positive = smallest > 0
    least = int(positive and column.kind == "whole")
    wide = column.wide if column.wide is None else (max(least, column.wide[0]), column.wide[1])
    return dataclasses.replace(column, low=max(least, column.low), wide=wide, positive=positive)


def _column(group: Sequence[SeenInputs]) -> Column:
    tokens = [token for block in group for token in block.tokens]
    if tokens and all(map(is_whole, tokens)) and not _are_digits(group):
        return _whole_column([[int(token) for token in block.tokens] for block in group])
    reals = [_REAL.fullmatch(token) for token in tokens if not is_whole(token)]
    if reals and all(reals):
        values = [float(token) for token in tokens]
        most = max(len(match[1]) for match in reals if match is not None)
        return Column("real", int(min(values) // 1), int(-(-max(values) // 1)), decimals=most)
    lengths = [len(token) for token in tokens] or [1]
    mixed = any(map(is_whole, tokens)) and not all(token.isdigit() for token in tokens)
    return Column(
        "word",
        words=tuple(sorted(set(tokens))),
        letters="" if mixed else "".join(sorted(set("".join(tokens)))),
        sizes=(min(lengths), max(lengths)),
        length=_length_column(group),
        distinct=len(tokens) >= 4 and len(set(tokens)) == len(tokens),
    )


def _are_digits(group: Sequence[SeenInputs]) -> bool:
    """Return whether numbers are rows of digits: as many as a number read before says, of several sizes."""
    sizes = {len(token) for block in group for token in block.tokens}
    return len(sizes) > 1 and _length_column(group) is not None


def _whole_column(lists: Sequence[Sequence[int]]) -> Column:
    every = [value for values in lists for value in values]
    lists = [values for values in lists if len(values) > 1]
    telling = sum(map(len, lists)) >= 4
    long = [values for values in lists if len(values) > 2]
    order = 0
    if sum(map(len, long)) >= 4:
        order = next((way for way in (1, -1) if all(sorted(v, reverse=way < 0) == list(v) for v in long)), 0)
    bases = {min(values) if _consecutive(values) else None for values in lists}
    base = bases.pop() if telling and not order and len(bases) == 1 else None
    distinct = telling and all(len(set(values)) == len(values) for values in lists)
    return Column("whole", min(every), max(every), distinct=distinct, order=order, base=base)


def _consecutive(values: Sequence[int]) -> bool:
    """Return whether the values are consecutive numbers in some order. They may lie far apart, so no range is built."""
    return max(values) - min(values) + 1 == len(values) == len(set(values))


def _length_column(group: Sequence[SeenInputs]) -> int | None:
    """Return the column whose number is the length of every word, None where there is none."""
    shared = set.intersection(*(set(block.env) for block in group)) if group else set()
    for column in sorted(shared):
        pairs = {(block.env[column], len(token)) for block in group for token in block.tokens}
        if pairs and all(length == size for length, size in pairs) and max(size for _, size in pairs) > 2:
            return column
    return None


def _limiting_column(group: Sequence[SeenInputs]) -> tuple[int | None, bool]:
    """Return the tightest column that no value of this one exceeds, and whether a value reached it."""
    shared = set.intersection(*(set(block.env) for block in group)) - {block.column for block in group}
    best: tuple[int, int] | None = None
    reached = False
    for column in shared:
        tops = [(block.env[column], max(map(int, block.tokens))) for block in group if block.tokens]
        if not tops or any(top > limit for limit, top in tops):
            continue
        if not any(2 * top >= limit for limit, top in tops):
            continue
        slack = sum(limit - top for limit, top in tops)
        if best is None or (slack, column) < best:
            best, reached = (slack, column), any(top == limit for limit, top in tops)
    return (best[1], reached) if best is not None else (None, False)


def ranges(
    columns: dict[int, Column], bounds: Sequence[StatedBound], counts: set[int], *, careful: bool = False
) -> tuple[dict[int, tuple[int, int]], set[int]]:
    """Return the range of each whole-number column, or of its words' lengths, and the columns that a limit stands for.

    Columns and limits are aligned in their order, as many as fit; a column that gets none keeps what was seen, widened
    to the narrowest limit that begins or ends where it does, and counts to twice the greatest seen; not so where
    ``careful``.
    """
    kinds = ("whole",) if careful else ("whole", "real")
    whole = [column for column, properties in columns.items() if properties.kind in kinds or _grows(properties)]
    whole_columns = [columns[column] for column in whole]
    spans = [_span(properties) for properties in whole_columns]
    matched = _aligned(spans, bounds)
    if careful:  # only where the other end of the text would give the same
        other = _aligned([(-b, -a) for a, b in spans[::-1]], [StatedBound(-b.high, -b.low) for b in bounds[::-1]])
        last = {len(spans) - 1 - place: len(bounds) - 1 - limit for place, limit in other.items()}
        matched = {p: b for p, b in matched.items() if p in last and bounds[last[p]] == bounds[b]}
    limits = {}
    for place, column in enumerate(whole):
        low, high = spans[place]
        low = columns[column].low if columns[column].kind == "real" else low
        fitting = sorted((b for b in bounds if b.holds(low, high)), key=lambda b: b.high - b.low)
        if place in matched:
            bound = bounds[matched[place]]
            least = min(bound.low, columns[column].low) if columns[column].kind == "real" else bound.low
            limits[column] = least, bound.high
        elif careful:
            limits[column] = low, high
        elif low != high and fitting and (fitting[0].low == low or fitting[0].high == high):
            limits[column] = fitting[0].low, fitting[0].high
        else:
            limits[column] = low, 2 * high if column in counts else high
    return limits, {whole[place] for place in matched}


def _wide(low: int, high: int, bounds: Sequence[StatedBound], group: Sequence[SeenInputs]) -> tuple[int, int] | None:
    """Return the narrowest limit that holds more than a range, None where no limit does, or so many values were seen
    that one alone is all that there is.
    """
    holding = [bound for bound in bounds if bound.holds(low, high) and (bound.low, bound.high) != (low, high)]
    if (low == high and sum(len(one.tokens) for one in group) >= _CONSTANT) or not holding:
        return None
    narrowest = min(holding, key=lambda bound: bound.high - bound.low)
    return narrowest.low, narrowest.high


def _span(column: Column) -> tuple[int, int]:
    """Return the range of a column's numbers or of its words' lengths. Reals above 0 may lie under the limit 1."""
    if _grows(column):
        return column.sizes
    return (min(column.low + (column.kind == "real"), column.high), column.high)


def _grows(column: Column) -> bool:
    """Return whether a column holds words of many lengths, which a limit may bound."""
    return column.kind == "word" and column.length is None and column.sizes[0] < column.sizes[1]


def _aligned(spans: Sequence[tuple[int, int]], bounds: Sequence[StatedBound]) -> dict[int, int]:
    """Return place → limit, in order on both sides, with as many pairs as can be; earlier limits first."""
    table = [[0] * (len(bounds) + 1) for _ in range(len(spans) + 1)]
    for i in range(len(spans) - 1, -1, -1):
        for j in range(len(bounds) - 1, -1, -1):
            pair = table[i + 1][j + 1] + 1 if bounds[j].holds(*spans[i]) else 0
            table[i][j] = max(pair, table[i + 1][j], table[i][j + 1])
    alignment, i, j = {}, 0, 0
    while i < len(spans) and j < len(bounds):
        if bounds[j].holds(*spans[i]) and table[i][j] == table[i + 1][j + 1] + 1:
            alignment[i] = j
            i, j = i + 1, j + 1
        elif table[i][j] == table[i][j + 1]:
            j += 1
        else:
            i += 1
    return alignment


def pairs_in(nodes: Sequence[Node], observed: Sequence[SeenInputs]) -> dict[int, Pair]:
    """Return what the first two columns of lines share, by the first column."""
    groups: dict[int, list[SeenInputs]] = defaultdict(list)
    for block in observed:
        groups[block.column].append(block)
    pairs: dict[int, Pair] = {}
    for node in nodes:
        if isinstance(node, RepeatNode):
            pairs |= pairs_in(node.nodes, observed)
        elif isinstance(node, LinesNode) and isinstance(node.width, int) and node.width >= 2:
            first, second = groups[node.first], groups[node.first + 1]
            rows = [list(zip(a.tokens, b.tokens, strict=True)) for a, b in zip(first, second, strict=True)]
            edges = [[(int(a), int(b)) for a, b in block if is_whole(a) and is_whole(b)] for block in rows]
            every = [edge for block in edges for edge in block]
            if len(every) < 3 or len(every) < sum(map(len, rows)):
                continue
            pairs[node.first] = Pair(
                node.count is not None and node.count.plus == -1 and all(map(_is_tree, edges)),
                all(a != b for a, b in every),
                all(a <= b for a, b in every),
            )
    return pairs


def _is_tree(edges: Sequence[tuple[int, int]]) -> bool:
    """Return whether these n - 1 edges join all nodes 1 … n."""
    parent = list(range(len(edges) + 2))

    def root(node: int) -> int:
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    for a, b in edges:
        if not (0 < a < len(parent) and 0 < b < len(parent)) or root(a) == root(b):
            return False
        parent[root(a)] = root(b)
    return True
