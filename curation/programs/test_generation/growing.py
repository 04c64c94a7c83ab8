"""New inputs grown from a form: sizes and values drawn anew, from the least to the greatest that fit.

Each input has a profile (`profiles`): how large its counts are and how its values are spread. Small inputs with narrow
ranges come most often, for they tell solutions apart; the greatest ones ask for speed and for wide numbers.

Invariants: every input has the form (`grammar.read_node` reads it) and is no larger than asked; the same arguments
give the same inputs. What it does not do: know what the problem forbids beyond what `columns` sees.
"""

from __future__ import annotations

import dataclasses
import hashlib
import random
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field

from curation.programs.test_generation.borders import with_border
from curation.programs.test_generation.columns import Column, counting
from curation.programs.test_generation.drawn_words import BRACKETS, balanced_word, spelt_word, whole_alphabets
from curation.programs.test_generation.forms import InputForm
from curation.programs.test_generation.grammar import (
    FIXED,
    ArrayNode,
    Env,
    LengthReference,
    LineNode,
    LinesNode,
    Node,
    RepeatNode,
    RowNode,
    blocks_of,
)
from curation.programs.test_generation.graphs import draw_edges, draw_tree, paired
from curation.programs.test_generation.hints import Hints, hinted_count, hinted_word
from curation.programs.test_generation.profiles import MIXED, SIZES
from curation.programs.test_generation.row_order import join_nodes, put_in_order, reached_node
from curation.programs.test_generation.shapes import Line, written
from curation.programs.test_generation.spreads import ValueSpread, prime_below, prime_from, redraw_repeated
from curation.programs.test_generation.stated_geometry import mended_rows

_NO_HINTS = Hints()
_WIDE = (0.0, 0.0, 0.5, 1.0)
"""Shares of columns that inputs draw from a limit of which it is not known whether it is the column's."""
_ALIKE = ("same", "zero")
_UNLIKE = 0.85
"""Share of inputs in which rows do not repeat where no given one has a row twice."""


class _TooLargeError(Exception):
    """The input would not fit."""


def grow_shapes(
    form: InputForm, known: Set[str], shapes: Sequence[str], seed: str, most_bytes: int, hints: Hints = _NO_HINTS
) -> Iterator[str]:
    """Yield an input of each shape, by its name, that is not among ``known``; nothing where none was found.

    Args:
        hints: numbers and words that the shapes ``hinted`` turn on.
    """
    draw = random.Random(int.from_bytes(hashlib.blake2b(seed.encode(), digest_size=8).digest(), "big"))
    for shape in shapes:
        size, values = shape.split(" ")
        text = _grow_input(form, (size, values), draw, most_bytes, hints)
        held = form.careful or form.promises
        if text is not None and text not in known and (not held or form.allows(text)):
            yield text


def _grow_input(
    form: InputForm, profile: tuple[str, str], draw: random.Random, most_bytes: int, hints: Hints
) -> str | None:
    """Return one input. Counts are halved until it fits; None where that does not help."""
    repeats = {node.count.column for node in form.nodes if isinstance(node, RepeatNode)} - {FIXED}
    if profile[0] in ("many", "one") and not repeats:
        return None
    most = min([max(16, most_bytes // 8), *(promise.most for promise in form.promises)])
    for _ in range(24):
        spread = ValueSpread(profile[1], draw, hints)
        growth = _Growth(form, counting(form.nodes), profile, draw, most, most_bytes // 6, hints, spread, repeats)
        try:
            for node in form.nodes:
                growth.node(node)
        except _TooLargeError:
            if most <= 1:
                return None
            most //= 2
            continue
        except ValueError:  # nothing can be drawn, such as more different values than there are
            return None
        text = written(growth.lines)
        if len(text) <= most_bytes:
            return text
        most //= 2
    return None


@dataclass(slots=True)
class _Growth:
    """One input while it is written."""

    form: InputForm
    counts: set[int]
    profile: tuple[str, str]
    draw: random.Random
    most: int  # the greatest count
    room: int  # tokens that may still be written
    hints: Hints
    spread: ValueSpread
    repeats: set[int]  # columns that count cases
    lines: list[Line] = field(default_factory=list)
    env: Env = field(default_factory=dict)
    wide: dict[int, float] = field(default_factory=dict)
    repeated: dict[int, bool] = field(default_factory=dict)
    words: dict[int, list[str]] = field(default_factory=dict)
    edges: dict[int, list[list[str]]] = field(default_factory=dict)

    def node(self, node: Node) -> None:
        """Write a node's lines."""
        if isinstance(node, RepeatNode):
            for _ in range(self._count(node.count)):
                for inner in node.nodes:
                    self.node(inner)
        elif isinstance(node, LineNode | RowNode):
            line = [self._single(node.first + j) for j in range(node.width)]
            if isinstance(node, RowNode):
                line += self._many(node.first + node.width, self._count(node.count))
            self.lines += self._mended(node.first, [line])
        elif isinstance(node, ArrayNode):
            count = self._count(node.count) if node.count is not None else self._size(1, 2 * self.most)
            self.lines.append(self._many(node.first, count))
        else:
            self._block(node)

    def _count(self, ref: LengthReference) -> int:
        count = ref.value(self.env)
        if count < 0:
            raise ValueError(f"a count of {count}")
        self.room -= count
        if self.room < 0:
            raise _TooLargeError
        return count

    def _block(self, node: LinesNode) -> None:
        count = self._count(node.count) if node.count is not None else self._size(1, 2 * self.most)
        if isinstance(node.width, LengthReference):
            width = node.width.value(self.env)
            self.room -= count * max(0, width)
            if width < 1 or self.room < 0:
                raise _TooLargeError
            self.lines += [self._many(node.first, width) for _ in range(count)]
            return
        pair = self.form.pairs.get(node.first)
        tree = pair is not None and pair.tree
        columns = list(draw_tree(count, self.draw)) if tree else list(self._graph(node, count))
        joined = bool(columns)
        columns += [self._many(node.first + j, count, node.width == 1) for j in range(len(columns), node.width)]
        if node.first in self.form.unrepeated and not joined and self.draw.random() < _UNLIKE:
            redraw_repeated(columns, lambda place, times: self._many(node.first + place, times, alone=False))
        if pair is not None and not joined:
            columns[0], columns[1] = paired(pair, columns[0], columns[1], *self._range(node.first + 1))
        if self.form.careful:
            put_in_order(self.form, node.first, columns, self.draw)
            join_nodes(self.form.relations, node.first, columns, self.env, self.draw)
            self.edges[node.first] = columns[:2]
            for _, sign in self.form.relations.words_of("border", node.first):
                columns[0] = with_border(columns[0], sign)
        self.lines += self._mended(node.first, [list(row) for row in zip(*columns, strict=True)])

    def _mended(self, first: int, rows: list[Line]) -> list[Line]:
        """Return rows that keep the promises on the points that they are."""
        return mended_rows(self.form.promises, first, rows, self.form.columns, self.draw)

    def _graph(self, node: LinesNode, count: int) -> tuple[list[str], ...]:
        """Return the ends of the edges of a graph that is connected, or has no edge twice; nothing where neither is
        asked for.
        """
        relations = self.form.relations
        simple = relations.has("edges", node.first)
        nodes = next((self.env[c] for c in self.counts_of_nodes(node.first) if c in self.env), None)
        if not self.form.careful or node.width == 1 or (nodes is None and not simple):
            return ()
        if self.form.columns[node.first].kind == "word":
            names = self._listed(node.first)
            if names is None or names != self._listed(node.first + 1):
                return ()
            pairs = draw_edges(count, 0, len(names) - 1, self.draw, connected=False, simple=True, sort=False)
            return [names[a] for a, _ in pairs], [names[b] for _, b in pairs]
        low, high = self._range(node.first) if nodes is None else (1, nodes)
        ordered = any(word[0] in "<>" for word, other in relations.beside(node.first + 1) if other == node.first)
        edges = draw_edges(count, low, high, self.draw, connected=nodes is not None, simple=simple, sort=ordered)
        return [str(a) for a, _ in edges], [str(b) for _, b in edges]

    def counts_of_nodes(self, first: int) -> list[int]:
        """Return the columns that say how many nodes the edges of a block join, where they always join all."""
        return [other for name, column, other, _ in self.form.relations.kept if name == "connected" and column == first]

    def _limits_of_count(self, name: int, low: int, high: int) -> tuple[int, int]:
        """Return the range of a number, cut to the numbers of edges that a connected or simple graph may have."""
        for block in blocks_of(self.form.nodes) if self.form.careful and name in self.counts else ():
            if block.count is None or block.count.column != name:
                continue
            for nodes in (self.env[c] for c in self.counts_of_nodes(block.first) if c in self.env):
                low = max(low, nodes - 1 - block.count.plus)
                if self.form.relations.has("edges", block.first):
                    high = min(high, nodes * (nodes - 1) // 2 - block.count.plus)
        if low > high:
            raise ValueError(f"no count from {low} to {high}")
        return low, high

    def _single(self, name: int) -> str:
        column = self.form.columns[name]
        if column.kind == "whole":
            low, high = self._limits_of_count(name, *self._range(name, 0.75))
            value = self._size(low, high, name=name) if name in self.counts else self.spread.one(name, low, high)
            value = self._primes(name, [value], low, high)[0]
            if self.form.careful:
                value = reached_node(self.form.relations, name, value, self.env, self.edges, self.draw)
            self.env[name] = value
            return str(value)
        return self._many(name, 1)[0]

    def _size(self, low: int, high: int, most: int | None = None, *, name: int | None = None) -> int:
        """Return a count of at least ``low``, by the profile; ``most`` replaces the greatest count.

        Args:
            name: the column that it stands in; shapes of many small cases tell those that count cases from others.
        """
        most = self.most if most is None else most
        size = self.profile[0]
        if size == "mixed":
            size = self.draw.choice(MIXED)
        elif size == "many":
            size = "most" if name in self.repeats else self.draw.choice(("least", "tiny", "tiny"))
        elif size == "one":
            size = "least" if name in self.repeats else "most"
        if size == "hinted":
            return hinted_count(self.hints, low, max(low, min(high, most)), self.draw)
        if size == "most":
            return max(low, min(high, most) - self.draw.choice((0, 0, 0, 1)))
        top = min(high, most, low + SIZES[size])
        return self.draw.randint(low, max(low, top))

    def _range(self, name: int, chance: float = 1.0) -> tuple[int, int]:
        """Return a column's range, bounded by the number that it never exceeds.

        Where no value seen reached that number, the bound is applied with probability ``chance``.
        """
        column = self.form.columns[name]
        low, high = column.low, column.high
        if column.wide is not None and self._is_wide(name):
            low, high = column.wide
        for word, other in self.form.relations.between(name) if self.form.careful else ():
            if other in self.env:
                value = self.env[other]
                low = max(low, value + (word == ">")) if word in (">", ">=", "=") else low
                high = min(high, value - (word == "<")) if word in ("<", "<=", "=") else high
        if column.most is not None and column.most in self.env and (column.certain or self.draw.random() < chance):
            high = min(high, self.env[column.most])
        if low > high:
            raise ValueError(f"no value from {low} to {high}")
        return low, high

    def _is_wide(self, name: int) -> bool:
        """Return whether this input draws a column from the limit that may be its own; the same for all its values.

        Often all columns are, or none; none where values are zeros, which ask for no limit.
        """
        if name not in self.wide:
            share = self.wide.setdefault(FIXED, 0.0 if self.profile[1] == "zero" else self.draw.choice(_WIDE))
            self.wide[name] = self.draw.random() < share
        return self.wide[name] > 0

    def _many(self, name: int, count: int, alone: bool = True) -> list[str]:
        """Return the tokens of an array or of lines.

        Beside other columns, whether they are in order and all different may be left to chance.
        """
        column = self.form.columns[name]
        if not alone:
            chance = self.draw.random() < 0.5
            order, distinct = (0, False) if chance else (column.order, column.distinct)
            column = dataclasses.replace(column, base=None, order=order, distinct=distinct)
        if column.kind == "whole":
            return [str(value) for value in self._numbers(name, column, count)]
        if column.kind == "real":
            shift = 10**column.decimals
            low, high = column.wide if column.wide is not None and self._is_wide(name) else (column.low, column.high)
            low, high = max(low * shift, int(column.positive)), high * shift
            return [f"{self.spread.one(name, low, high) / shift:.{column.decimals}f}" for _ in range(count)]
        words = self._words(name, column, count)
        self.words.setdefault(name, []).extend(words)
        return words

    def _listed(self, name: int) -> list[str] | None:
        """Return the words of the column of which this one holds some; None where that holds of none."""
        others = self.form.relations.words_of("among", name) if self.form.careful else []
        listed = [set(self.words.get(other, ())) for other, _ in others]
        if not listed:
            return None
        if not (shared := sorted(set.intersection(*listed))):
            raise ValueError("no word was listed")
        return shared

    def _numbers(self, name: int, column: Column, count: int) -> list[int]:
        low, high = self._range(name)
        draw = self.draw
        if column.base is not None:
            values = list(range(column.base, column.base + count))
            if draw.random() < 0.8:
                draw.shuffle(values)
            return values[::-1] if draw.random() < 0.1 else values
        if column.distinct and not self._may_repeat(name):
            if high - low + 1 < count:
                raise ValueError("more different values than there are")
            span = high if self.profile[1] != "narrow" else min(high, low + 2 * count)
            values = draw.sample(range(low, span + 1), count)
        else:
            values = self.spread.many(name, low, high, count)
            values = self._primes(name, self._off_place(name, values, low, high), low, high)
        if column.order or draw.random() < 0.15:
            values.sort(reverse=column.order < 0 or (not column.order and draw.random() < 0.5))
        return values

    def _may_repeat(self, name: int) -> bool:
        """Return whether this input repeats values of a column that the given inputs never repeat.

        Half of those do that a validator will see, and all that are to hold one value.
        """
        if self.form.careful:
            return False
        return self.profile[1] in _ALIKE or self.repeated.setdefault(name, self.draw.random() < 0.5)

    def _primes(self, name: int, values: list[int], low: int, high: int) -> list[int]:
        """Return the values, primes near them where all that were seen are; half of the inputs that a validator will
        see hold others, too.
        """
        if not self.form.columns[name].prime or not (self.form.careful or self.draw.random() < 0.5):
            return values
        near = [prime_below(max(2, value)) for value in values]
        return [prime if prime >= low else prime_from(low, high) for prime in near]

    def _off_place(self, name: int, values: list[int], low: int, high: int) -> list[int]:
        """Return the values, those changed that are their own place where none may be."""
        for base in (0, 1):
            if self.form.careful and low < high and self.form.relations.has("own_place", name, base):
                values = [
                    value if value != place else value + 1 if value < high else value - 1
                    for place, value in enumerate(values, base)
                ]
        return values

    def _words(self, name: int, column: Column, count: int) -> list[str]:
        draw = self.draw
        if not column.words:
            raise ValueError("no word was seen")
        if (listed := self._listed(name)) is not None:
            return [draw.choice(listed) for _ in range(count)]
        if not column.letters or (column.length is None and draw.random() < 0.4 and not column.distinct):
            return self.spread.words(column.words, count)
        few = draw.random() < 0.3
        known = column.letters if self.form.careful or draw.random() < 0.5 else whole_alphabets(column.letters)
        letters = "".join(draw.sample(known, min(2, len(known)))) if few else known
        spelt = len({letter.islower() for letter in column.letters if letter.isalnum()}) > 1 and draw.random() < 0.8
        matching = set(known) <= set(BRACKETS) and self.form.relations.speaks_of("balanced")
        words = []
        for _ in range(count):
            size = self._length(name, column)
            self.room -= max(1, size // 6)
            if self.room < 0:
                raise _TooLargeError
            word = spelt_word(column, size, known, draw) if spelt else self.spread.word(letters, size)
            word = balanced_word(known, size, draw) if matching else word
            hints = (
                [hint for hint in self.hints.words if set(hint) <= set(known)] if self.profile[1] == "hinted" else []
            )
            words.append(hinted_word(word, draw.choice(hints), column.sizes, known, draw) if hints else word)
        if column.distinct and len(set(words)) < count:
            raise ValueError("words that are not all different")
        return words

    def _length(self, name: int, column: Column) -> int:
        if column.length is not None:
            return self.env.get(column.length, 1)
        low, high = column.sizes
        for other, sign in self.form.relations.words_of("size", name) if self.form.careful else ():
            number = self.env.get(other, low)
            low, high = (max(low, number), high) if sign == ">=" else (low, min(high, number))
        if low > high:
            raise ValueError(f"no length from {low} to {high}")
        return low if low == high else self._size(low, high, 5 * self.most)
