"""The form of a problem's inputs with all that is known of it: columns, pairs, relations; whether an input has it.

A careful form is for inputs that no validator will see. It keeps every relation that the given inputs show and the
statement may mean, every range that no limit of the statement surely widens, and it is none where the given inputs are
too few to tell its parts apart.

Invariants: pure; the given inputs that were read have the form.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from curation.programs.test_generation.columns import Column, Pair, columns_in, pairs_in
from curation.programs.test_generation.demands import input_section, spoken_of
from curation.programs.test_generation.grammar import ArrayNode, Node, infer_grammars
from curation.programs.test_generation.limits import bounds_in_order
from curation.programs.test_generation.relations import Relations, infer_relations, read_input
from curation.programs.test_generation.shapes import is_whole, read_lines

_SLACK = 1.0
_MOST_INPUTS = 32
_MOST_BYTES = 64 << 10
"""Inputs that are looked at, the shortest ones: at most so many, of so many letters."""
_FORMS = 6
"""Other forms that a careful input must have: those that guess hardly more than the first, at most so many."""


@dataclass(frozen=True, slots=True)
class InputForm:
    """What is known of a problem's inputs: their form, its columns, and what they have in common.

    ``others`` are forms that read the given inputs almost as well: a careful input has each of them.

    ``careful``: new inputs keep all relations and ranges that the given ones show; else only those that are likely.
    """

    nodes: tuple[Node, ...]
    columns: dict[int, Column]
    pairs: dict[int, Pair]
    relations: Relations
    careful: bool
    others: tuple[tuple[Node, ...], ...] = ()

    def allows(self, text: str) -> bool:
        """Return whether an input has the form and, where the form is careful, keeps its relations and ranges."""
        lines = read_lines(text)
        reading = read_input(self.nodes, lines, text) if lines else None
        if reading is None or lines is None or not self.careful:
            return reading is not None
        if any(read_input(nodes, lines) is None for nodes in self.others):
            return False
        for block in reading.seen:
            column = self.columns.get(block.column)
            if column is None:
                return False
            if column.kind in ("whole", "real") and not all(_lies(token, column) for token in block.tokens):
                return False
        return self.relations.broken(reading) is None


def infer_form(inputs: Sequence[str], statement: str, *, careful: bool) -> InputForm | None:
    """Return the form of some inputs, those of another form left aside; None where there is none.

    Args:
        inputs: those seen, trusted to be valid.
        statement: whose limits, in the order of the text, are those of the columns where they can be told.
    """
    bounds = bounds_in_order(input_section(statement)) or bounds_in_order(statement)
    short = sorted(inputs, key=len)[:_MOST_INPUTS]
    short = [text for text in short if len(text) <= _MOST_BYTES] or short[:1]
    pairs = [(lines, text) for text in short if (lines := read_lines(text)) is not None and all(lines) and lines]
    forms = infer_grammars(sorted((lines for lines, _ in pairs), key=len)[:12], _SLACK if careful else 0.0)
    if not forms:
        return None
    nodes = forms[0]
    readings = [reading for lines, text in pairs if (reading := read_input(nodes, lines, text)) is not None]
    observed = [block for reading in readings for block in reading.seen]
    columns = columns_in(nodes, observed, bounds, careful=careful)
    if careful and len(forms[0]) > len(readings) + 1:
        return None  # so many parts were not told apart by so few inputs
    free = [node.first for node in nodes if isinstance(node, ArrayNode) and node.count is None]
    if careful and any(len(nodes) > 1 or columns[first].kind == "word" for first in free):
        return None  # a sentence, or a line whose length nothing tells
    relations = infer_relations(readings, spoken_of(statement))
    if careful:
        for name, column in columns.items():
            ways = {way for kind, own, way, _ in relations.kept if kind == "ordered" and own == name}
            order = column.order if ways else 0
            distinct = column.distinct and relations.has("different", name)
            columns[name] = dataclasses.replace(column, order=order, distinct=distinct)
    return InputForm(nodes, columns, pairs_in(nodes, observed), relations, careful, tuple(forms[1:_FORMS]))


def _lies(token: str, column: Column) -> bool:
    """Return whether a number is of its column's kind and in its range."""
    if column.kind == "whole":
        return is_whole(token) and column.low <= int(token) <= column.high
    whole, _, decimals = token.lstrip("-").partition(".")
    return whole.isdigit() and (decimals or "0").isdigit() and column.low <= float(token) <= column.high
