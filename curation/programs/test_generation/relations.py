"""What holds of every input given, and must hold of new ones: k ≤ n, all different, in order, connected, lower case.

A relation is a small statement on columns of a form (`grammar`). Each is tried on each given input; those that some
input shows and none breaks are kept. Where few inputs are at hand some hold by accident: a new input that is held to
them is the poorer for it, but never wrong for it. Those that no validator vouches for need that.

    compare    every value of a column is <, ≤, >, ≥ or ≠ a number read before it, or is that number
    beside     the same of two columns of one row
    different  values of a column never repeat within an array or a block of lines
    ordered    they rise (1, strictly 2) or fall (-1, -2)
    nonzero    an array never begins (0), or never ends (1), with a 0
    own_place  no value is its own place, counted from 0 or 1
    length     every word of a column is as long as a number read before it says
    size       no word of a column is longer (<=), or shorter (>=), than a number read before it says
    among      every word of a column stands in another one before it
    border     all cells on the border of a map hold the same sign
    ends       an array begins or ends with the same token in every input
    parity     they are odd (1) or even (0); where the statement speaks of it
    sum        its values add up to a number read before, or to no more than it
    rows       no two rows of a block are alike; `edges`: not even with the ends turned round
    connected  the first two columns of a block are edges that join all of 1 … n
    reaches    a number and the one behind it are nodes, the second reached from the first (`reaching`)
    spelling   which classes of letters follow one another in a word, as in `Aa`; reals: how many decimals
    letters    the letters seen
    once       letters that every input holds once
    balanced   brackets match

Invariants: pure; a given input keeps all relations that were inferred from it.
"""

from __future__ import annotations

import itertools
import math
import operator
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from curation.programs.test_generation.borders import border_of
from curation.programs.test_generation.grammar import (
    Env,
    LinesNode,
    Node,
    RepeatNode,
    SeenInputs,
    read_node,
)
from curation.programs.test_generation.reaching import FEW_BLOCKS, reached
from curation.programs.test_generation.shapes import Line, all_whole, is_whole

_OPERATORS: Mapping[str, Callable[[int, int], bool]] = {
    "=": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
    "!=": operator.ne,
}
_ALWAYS = {"ends": 3, "once": 2, "border": 1}
"""Relations that every input must show, and so many inputs at least."""
_IMPLIED = {"=": {"<=", ">="}, "<": {"<=", "!="}, ">": {">=", "!="}}
_REPEATS = 3
"""Pairs of like rows that would be expected by chance, of which not one is an accident once in twenty times."""
_CLASSES = (("A", re.compile("[A-Z]+")), ("a", re.compile("[a-z]+")), ("0", re.compile("[0-9]+")))
_BRACKETS = {")": "(", "]": "[", "}": "{"}

Key = tuple[str, int, int, str]
"""A relation: its name, the column, the other column (or a number), and a word."""


@dataclass(frozen=True, slots=True)
class Block:
    """Rows of several columns that stand together, and the numbers read before."""

    first: int
    rows: list[Line]
    env: Env


@dataclass(frozen=True, slots=True)
class Reading:
    """One input as its form reads it."""

    seen: list[SeenInputs]
    blocks: list[Block]
    text: str

    def rows(self, first: int, width: int) -> list[list[Line]]:
        """Return the rows of ``width`` columns from ``first`` on, for each place where they stand together."""
        groups = [self.seen[at : at + width] for at, one in enumerate(self.seen) if one.column == first]
        return [[list(row) for row in zip(*(one.tokens for one in group), strict=True)] for group in groups]


@dataclass(frozen=True, slots=True)
class Relations:
    """The relations of a problem's inputs. ``words`` are the tokens, spellings and letters that were seen."""

    kept: frozenset[Key]
    spellings: Mapping[int, frozenset[str]]
    letters: Mapping[int, frozenset[str]]

    def broken(self, reading: Reading) -> Key | None:
        """Return a relation that an input breaks, None where it keeps all."""
        for name, words in _words(reading):
            if self.words_of("among", name):
                continue
            if not words[0] <= self.spellings.get(name, frozenset()):
                return "spelling", name, 0, ""
            if not words[1] <= self.letters.get(name, frozenset()):
                return "letters", name, 0, ""
        held, shown = evaluate(reading)
        lost = (shown - held) & self.kept
        columns = {key[:3] for key in shown if key[0] in ("ends", "border")}
        lost |= {key for key in self.kept - held if key[0] == "once" or key[:3] in columns}
        return min(lost, default=None)

    def between(self, column: int) -> list[tuple[str, int]]:
        """Return how a column's values compare with numbers read before: (operator, column)."""
        return [(word, other) for name, own, other, word in sorted(self.kept) if name == "compare" and own == column]

    def beside(self, column: int) -> list[tuple[str, int]]:
        """Return how a column's values compare with those of other columns of its row, before it."""
        return [(word, other) for name, own, other, word in sorted(self.kept) if name == "beside" and own == column]

    def speaks_of(self, name: str) -> bool:
        """Return whether a relation of that name holds of some column."""
        return any(key[0] == name for key in self.kept)

    def words_of(self, name: str, column: int) -> list[tuple[int, str]]:
        """Return the other columns and the words of a column's relations of that name."""
        return [(other, word) for own_name, own, other, word in sorted(self.kept) if (own_name, own) == (name, column)]

    def has(self, name: str, column: int, other: int = 0, word: str = "") -> bool:
        """Return whether a relation holds."""
        return (name, column, other, word) in self.kept


def read_input(nodes: Sequence[Node], lines: Sequence[Line], text: str = "") -> Reading | None:
    """Return an input as its form reads it, None where it has another form."""
    seen: list[SeenInputs] = []
    position: int | None = 0
    env: Env = {}
    for node in nodes:
        position = read_node(node, lines, position or 0, env, seen)
        if position is None:
            return None
    return Reading(seen, list(_blocks(nodes, seen)), text) if position == len(lines) else None


def infer_relations(readings: Sequence[Reading], spoken: frozenset[str] | None = None) -> Relations:
    """Return what all inputs have in common, as far as its name is in ``spoken``; all of it where that is None."""
    kept: set[Key] = set()
    lost: set[Key] = set()
    times: Counter[Key] = Counter()
    spellings: dict[int, set[str]] = {}
    letters: dict[int, set[str]] = {}
    for reading in readings:
        held, shown = evaluate(reading)
        kept |= held
        lost |= shown - held
        times.update(key for key in held if key[0] in _ALWAYS)
        for column, (own_spellings, own_letters) in _words(reading):
            spellings.setdefault(column, set()).update(own_spellings)
            letters.setdefault(column, set()).update(own_letters)
    lists = {one.column for reading in readings for one in reading.seen if len(one.tokens) > 1}
    lost |= {key for key in kept if key[0] == "nonzero" and key[1] not in lists}
    lost |= {key for key, count in times.items() if count < max(len(readings), _ALWAYS[key[0]])}
    if spoken is not None:
        lost |= {key for key in kept if key[0] not in spoken} - _surprising(readings)
    return Relations(
        frozenset(_strongest(kept - lost)),
        {column: frozenset(words) for column, words in spellings.items()},
        {column: frozenset(words) for column, words in letters.items()},
    )


def _surprising(readings: Sequence[Reading]) -> set[Key]:
    """Return the relations `rows` and `different` that hold though values drawn by chance would repeat: of so many rows
    `_REPEATS` pairs at least would be alike.
    """
    pairs: dict[Key, float] = {}
    for reading in readings:
        groups = [(("rows", one.first, 0, ""), [set(column) for column in zip(*one.rows, strict=True)], len(one.rows))
                  for one in reading.blocks if one.rows]  # fmt: skip
        groups += [(("different", one.column, 0, ""), [set(one.tokens)], len(one.tokens))
                   for one in reading.seen if one.tokens and all_whole(one.tokens)]  # fmt: skip
        for key, values, count in groups:
            room = math.prod(map(_room, values))
            pairs[key] = pairs.get(key, 0.0) + count * (count - 1) / 2 / room
    return {key for key, expected in pairs.items() if expected >= _REPEATS}


def _room(values: set[str]) -> int:
    """Return how many values there seem to be: all whole numbers between the ends, or the words that were seen."""
    if not all_whole(list(values)):
        return len(values)
    numbers = list(map(int, values))
    return max(numbers) - min(numbers) + 1


def _strongest(keys: set[Key]) -> set[Key]:
    implied = {
        (name, column, other, weaker)
        for name, column, other, word in keys
        if name in ("compare", "beside")
        for weaker in _IMPLIED.get(word, ())
    }
    return keys - implied


def evaluate(reading: Reading) -> tuple[set[Key], set[Key]]:
    """Return the relations that hold in an input, and all that it could have shown otherwise."""
    held: set[Key] = set()
    shown: set[Key] = set()
    lost: set[Key] = set()
    blocks = _of_blocks(reading.blocks, reading.seen)
    for key, holds in (*_of_columns(reading.seen), *blocks, *_of_text(reading.text)):
        shown.add(key)
        (held if holds else lost).add(key)
    return held - lost, shown


def _of_columns(seen: Sequence[SeenInputs]) -> Iterator[tuple[Key, bool]]:
    words: dict[int, frozenset[str]] = {}
    for block in seen:
        column = block.column
        if not block.tokens:
            continue
        if len(block.tokens) > 1:
            yield ("different", column, 0, ""), len(set(block.tokens)) == len(block.tokens)
            yield ("ends", column, 0, block.tokens[0]), True
            yield ("ends", column, 1, block.tokens[-1]), True
        if not all_whole(block.tokens):
            yield from _of_words(block, words)
            words[column] = words.get(column, frozenset()) | frozenset(block.tokens)
            continue
        values = list(map(int, block.tokens))
        low, high = min(values), max(values)
        for odd in (0, 1):
            yield ("parity", column, odd, ""), all(value % 2 == odd for value in values)
        for other, number in block.env.items():
            if other != column:
                yield from _compared(("compare", column, other), [(low, number), (high, number)], values, number)
                yield ("sum", column, other, "="), sum(values) == number
                yield ("sum", column, other, "<="), sum(values) <= number
        yield ("nonzero", column, 0, ""), values[0] != 0
        yield ("nonzero", column, 1, ""), values[-1] != 0
        if len(values) > 1:
            yield from _of_numbers(column, values)


def _of_words(block: SeenInputs, before: Mapping[int, frozenset[str]]) -> Iterator[tuple[Key, bool]]:
    """Yield the relations of words. ``before``: the words of columns read before."""
    column, sizes = block.column, {len(token) for token in block.tokens}
    for other, number in block.env.items():
        yield ("length", column, other, ""), sizes == {number}
        yield ("size", column, other, "<="), max(sizes) <= number
        yield ("size", column, other, ">="), min(sizes) >= number
    for other, known in before.items():
        if other != column and max(sizes) > 1:
            yield ("among", column, other, ""), known.issuperset(block.tokens)
    border = border_of(block.tokens)
    for sign in border:
        yield ("border", column, 0, sign), len(border) == 1


def _compared(
    head: tuple[str, int, int], ends: Sequence[tuple[int, int]], values: Sequence[int], number: int
) -> Iterator[tuple[Key, bool]]:
    for word, compare in _OPERATORS.items():
        holds = number not in values if word == "!=" else all(compare(a, b) for a, b in ends)
        yield (*head, word), holds


def _of_numbers(column: int, values: Sequence[int]) -> Iterator[tuple[Key, bool]]:
    behind = values[1:]
    yield ("ordered", column, 1, ""), all(map(operator.le, values, behind))
    yield ("ordered", column, 2, ""), all(map(operator.lt, values, behind))
    yield ("ordered", column, -1, ""), all(map(operator.ge, values, behind))
    yield ("ordered", column, -2, ""), all(map(operator.gt, values, behind))
    for base in (0, 1):
        if any(base <= value < len(values) + base for value in values):
            yield ("own_place", column, base, ""), all(map(operator.ne, values, itertools.count(base)))


def _of_blocks(blocks: Sequence[Block], seen: Sequence[SeenInputs]) -> Iterator[tuple[Key, bool]]:
    for block in blocks:
        width = len(block.rows[0]) if block.rows else 0
        if width < 2:
            continue
        yield ("rows", block.first, 0, ""), len(set(map(tuple, block.rows))) == len(block.rows)
        columns = list(zip(*block.rows, strict=True))
        whole = {place: list(map(int, column)) for place, column in enumerate(columns) if all_whole(column)}
        for b in range(1, width):
            for a in range(b):
                if a in whole and b in whole:
                    for word, compare in _OPERATORS.items():
                        yield ("beside", block.first + b, block.first + a, word), all(map(compare, whole[b], whole[a]))
                elif a not in whole and b not in whole:
                    yield (
                        ("beside", block.first + b, block.first + a, "!="),
                        all(map(operator.ne, columns[b], columns[a])),
                    )
        ends = {frozenset(edge) for edge in zip(columns[0], columns[1], strict=True)}
        if (0 in whole) is (1 in whole):  # numbers or names
            yield ("edges", block.first, 0, ""), len(ends) == len(block.rows)
        if 0 in whole and 1 in whole:
            edges = list(zip(whole[0], whole[1], strict=True))
            if len(blocks) <= FEW_BLOCKS:
                yield from reached(seen, block.first, edges)
            for column, nodes in block.env.items():
                if nodes > 1 and all(min(edge) >= 1 and max(edge) <= nodes for edge in edges):
                    yield ("connected", block.first, column, ""), _connected(edges, nodes)
                elif nodes > 1:
                    yield ("connected", block.first, column, ""), False


def _connected(edges: Sequence[tuple[int, int]], nodes: int) -> bool:
    parent: dict[int, int] = {}

    def root(node: int) -> int:
        while (above := parent.get(node, node)) != node:
            parent[node] = parent.get(above, above)
            node = above
        return node

    joined = 1
    for a, b in edges:
        if root(a) != root(b):
            parent[root(a)] = root(b)
            joined += 1
    return joined == nodes


def _of_text(text: str) -> Iterator[tuple[Key, bool]]:
    counts = Counter(text)
    for letter, count in counts.items():
        if letter.isalpha() or letter in "@#*.$!?<>^":
            yield ("once", 0, 0, letter), count == 1
    if any(letter in counts for letter in "()[]{}"):
        yield ("balanced", 0, 0, ""), all(map(_balanced, text.splitlines()))


def _balanced(line: str) -> bool:
    depth: list[str] = []
    for letter in line:
        if letter in "([{":
            depth.append(letter)
        elif letter in ")]}" and (not depth or depth.pop() != _BRACKETS[letter]):
            return False
    return not depth


def _words(reading: Reading) -> Iterator[tuple[int, tuple[frozenset[str], frozenset[str]]]]:
    """Yield per column the spellings of its tokens that are no whole numbers, and their letters."""
    for block in reading.seen:
        tokens = set() if all_whole(block.tokens) else {token for token in block.tokens if not is_whole(token)}
        if tokens:
            yield block.column, (frozenset(map(spelling, tokens)), frozenset("".join(tokens)))


def spelling(token: str) -> str:
    """Return which classes of letters follow one another in a word.

    One capital and several are told apart; a word half of which are other signs, as rows of grids, is ``"*"``.

    Example: ``spelling("Anna-2")`` is ``"Aa-0"``; of a real number the decimals stay: ``spelling("12.50")`` is
    ``"0.00"``.
    """
    whole, dot, decimals = token.partition(".")
    if dot and decimals.isdigit() and whole.lstrip("-").isdigit():
        return f"0.{'0' * len(decimals)}"
    if 2 * sum(not letter.isalnum() for letter in token) >= len(token):
        return "*"
    capitals = re.sub("[A-Z]{2,}", "AA", token)
    for letter, pattern in _CLASSES[1:]:
        capitals = pattern.sub(letter, capitals)
    capitals = re.sub("[A-Z](?!A)", "A", capitals) if "AA" not in capitals else capitals
    return re.sub(r"([^A])\1+", r"\1", capitals)


def _blocks(nodes: Sequence[Node], seen: Sequence[SeenInputs]) -> Iterator[Block]:
    """Yield the blocks of lines of several columns."""
    firsts: dict[int, int] = {}
    stack = list(nodes)
    while stack:
        node = stack.pop()
        if isinstance(node, RepeatNode):
            stack += node.nodes
        elif isinstance(node, LinesNode) and isinstance(node.width, int) and node.width > 1:
            firsts[node.first] = node.width
    for place, block in enumerate(seen):
        width = firsts.get(block.column)
        if width is not None:
            columns = [other.tokens for other in seen[place : place + width]]
            yield Block(block.column, [list(row) for row in zip(*columns, strict=True)], block.env)
