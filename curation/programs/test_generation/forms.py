"""The form of a problem's inputs with all that is known of it: columns, pairs, relations; whether an input has it.

A careful form is for inputs that no validator will see. It keeps every relation that the given inputs show and the
statement may mean, every range that no limit of the statement surely widens, and it is none where the given inputs are
too few to tell its parts apart.

Invariants: pure; the given inputs that were read have the form.
"""

from __future__ import annotations

import dataclasses
import random
import re
import string
from collections.abc import Sequence
from dataclasses import dataclass

from curation.programs.test_generation.accidents import accidents
from curation.programs.test_generation.columns import OPEN, Column, Pair, columns_in, pairs_in
from curation.programs.test_generation.demands import (
    in_order,
    input_section,
    promises,
    required_letters,
    speaks_of_letters,
    speaks_of_signs,
    spoken_of,
    stated_alphabet,
)
from curation.programs.test_generation.drawn_words import BRACKETS
from curation.programs.test_generation.grammar import (
    ArrayNode,
    LinesNode,
    Node,
    SeenInputs,
    blocks_of,
    infer_grammar,
    infer_grammars,
)
from curation.programs.test_generation.limits import StatedBound, bounds_in_order, with_numbered_names
from curation.programs.test_generation.relations import Reading, Relations, infer_relations, read_input
from curation.programs.test_generation.shapes import Line, all_whole, read_lines
from curation.programs.test_generation.spreads import is_prime
from curation.programs.test_generation.stated_counts import adds_unsaid, counted_values, counts_as_stated
from curation.programs.test_generation.stated_geometry import Promise, stated_promises
from curation.programs.test_generation.stated_names import name_columns
from curation.programs.test_generation.stated_rules import NamedColumns, Trust

_SLACK = 1.0
_MOST_INPUTS = 32
_MOST_BYTES = 64 << 10
"""Inputs that are looked at, the shortest ones: at most so many, of so many letters."""
_FORMS = 6
"""Other forms that a careful input must have: those that guess hardly more than the first, at most so many."""

_SEVERAL_SLACK = 2.5
"""The same where the statement says how many values stand on a line, which tells forms apart that guess otherwise."""

_PRIME, _MANY_PRIMES = re.compile(r"\bprimes?\b(?! factor)", re.IGNORECASE), 2
"""So many different values that are all primes are no accident where a statement speaks of primes."""
_SAMPLES, _LEAST_SHARING, _SHARE = 12, 5, 0.75
"""Samples in which a shared form is looked for, their size, and the share of inputs that must have it."""


@dataclass(frozen=True, slots=True)
class InputForm:
    """What is known of a problem's inputs: their form, its columns, and what they have in common.

    ``others`` are forms that read the given inputs almost as well: a careful input has each of them. ``named`` are the
    statement's names of the columns and its rules, where they could be told: a careful input keeps those, too.

    ``required`` are sets of letters of each of which a careful input holds one. ``promises`` on points are kept by
    every input, careful or not. ``unrepeated`` are the first columns of blocks in which no given input has a row twice.

    ``careful``: new inputs keep all relations and ranges that the given ones show; else only those that are likely.
    """

    nodes: tuple[Node, ...]
    columns: dict[int, Column]
    pairs: dict[int, Pair]
    relations: Relations
    careful: bool
    others: tuple[tuple[Node, ...], ...] = ()
    named: NamedColumns | None = None
    required: tuple[frozenset[str], ...] = ()
    promises: tuple[Promise, ...] = ()
    unrepeated: frozenset[int] = frozenset()

    @property
    def is_told(self) -> bool:
        """Return whether the statement itself, not the given inputs alone, says what all columns are but one at most.

        A form that only the given inputs show is misread far more often.
        """
        named = self.named if self.careful else None
        return named is not None and named.is_told and len(named.columns) >= len(self.columns) - 1

    def allows(self, text: str) -> bool:
        """Return whether an input has the form, keeps the promises on points and, where the form is careful, its
        relations and ranges.
        """
        lines = read_lines(text)
        reading = read_input(self.nodes, lines, text) if lines else None
        if reading is None or lines is None or not self._keeps_promises(reading):
            return False
        if not self.careful:
            return True
        if any(read_input(nodes, lines) is None for nodes in self.others):
            return False
        for block in reading.seen:
            column = self.columns.get(block.column)
            if column is None:
                return False
            if column.kind in ("whole", "real") and not _lie(block.tokens, column):
                return False
            if column.prime and not all(map(is_prime, map(int, block.tokens))):
                return False
            if column.kind == "word" and not _spelt_as(column, block):
                return False
        if self.named is not None and self.named.broken(reading.seen) is not None:
            return False
        if not all(letters & set(text) for letters in self.required):
            return False
        return self.relations.broken(reading) is None

    def _keeps_promises(self, reading: Reading) -> bool:
        return all(one.holds(rows) for one in self.promises for rows in reading.rows(one.first, one.width))


def infer_form(inputs: Sequence[str], statement: str, *, careful: bool, vouched: bool = False) -> InputForm | None:
    """Return the form of some inputs, those of another form left aside; None where there is none.

    Args:
        inputs: those seen, trusted to be valid.
        statement: whose limits, in the order of the text, are those of the columns where they can be told.
        vouched: a validator will see the inputs, so that more is taken for the name of a column.
    """
    statement = with_numbered_names(statement)
    short = sorted(inputs, key=len)[:_MOST_INPUTS]
    short = [text for text in short if len(text) <= _MOST_BYTES] or short[:1]
    pairs = [(lines, text) for text in short if (lines := read_lines(text)) is not None and all(lines) and lines]
    chosen = _choose_form(pairs, statement, careful=careful, vouched=vouched)
    if chosen is None:
        return None
    taken, others = chosen
    nodes, readings, columns, named = taken.nodes, taken.readings, taken.columns, taken.named
    observed = [block for reading in readings for block in reading.seen]
    free = [node.first for node in nodes if isinstance(node, ArrayNode) and node.count is None]
    if careful and any(len(nodes) > 1 or columns[first].kind == "word" for first in free):
        return None  # a sentence, or a line whose length nothing tells
    told = named is not None and named.is_told and len(named.columns) >= len(columns) - 1
    relations = infer_relations(readings, spoken_of(statement, told=told or not careful))
    if named is not None and named.trust is Trust.INTRODUCED:
        chance = accidents(relations, readings, named.limits(), spoken_of(statement))
        relations = dataclasses.replace(relations, kept=relations.kept - chance)
    if careful:
        for name, column in columns.items():
            ways = {way for kind, own, way, _ in relations.kept if kind == "ordered" and own == name}
            order = column.order if ways else 0
            distinct = column.distinct and relations.has("different", name)
            columns[name] = dataclasses.replace(column, order=order, distinct=distinct)
        _keep_listed_words(columns, statement)
        relations = _widen_letters(columns, relations, stated_alphabet(statement))
    if named is not None:
        if vouched or not careful or named.is_limited:
            _apply_limits(columns, named)
        if not careful:
            for later, earlier, sign in named.compared():
                if sign[0] == "<" and columns[later].kind == "whole":
                    columns[later] = dataclasses.replace(columns[later], most=earlier, certain=True)
        relations = _with_rules(relations, named, nodes, ordered=not named.is_limited or in_order(statement))
    edges = pairs_in(nodes, observed)
    required = [letters for one in promises(statement) for letters in required_letters(one, inputs)]
    points = stated_promises(
        statement, nodes, columns, lambda first, width: [rows for one in readings for rows in one.rows(first, width)]
    )
    unlike = frozenset(column for _, column, _, _ in infer_relations(readings, frozenset({"rows"})).kept)
    own = named if careful else None
    return InputForm(nodes, columns, edges, relations, careful, others, own, tuple(required), points, unlike)


@dataclass(frozen=True, slots=True)
class _ReadForm:
    """A form, the given inputs as it reads them, its columns, and their names; ``refuted``: it counts otherwise than
    the statement says.
    """

    nodes: tuple[Node, ...]
    readings: list[Reading]
    columns: dict[int, Column]
    named: NamedColumns | None
    refuted: bool


def _choose_form(
    inputs: Sequence[tuple[list[Line], str]],
    statement: str,
    *,
    careful: bool,
    vouched: bool,
) -> tuple[_ReadForm, tuple[tuple[Node, ...], ...]] | None:
    """Return the form to take, and others that read the inputs almost as well; None where there is none.

    One that the statement refutes is not taken carefully. Where it says how many values stand on a line, forms that
    guess more are looked at, too.
    """
    bounds = bounds_in_order(input_section(statement)) or bounds_in_order(statement)
    shortest = sorted((lines for lines, _ in inputs), key=len)[:12]

    def read(slack: float) -> list[_ReadForm]:
        return [
            _read_as(nodes, inputs, statement, bounds, careful=careful, vouched=vouched)
            for nodes in infer_grammars(shortest, slack)
        ]

    forms = read(_SLACK if careful else 0.0)
    fitting = [one for one in forms if not one.refuted]
    if forms and not fitting and counted_values(statement):
        fitting = [one for one in read(_SEVERAL_SLACK) if not one.refuted and one.named is not None]
    if not fitting and (careful or not forms):
        return None
    if not fitting:
        return dataclasses.replace(forms[0], named=None), ()
    taken = next((one for one in fitting if one.named is not None), fitting[0]) if careful else fitting[0]
    named = taken.named is not None and len(taken.named.columns) == len(taken.columns)
    if careful and len(taken.nodes) > len(taken.readings) + 1 and not named:
        return None  # so many parts were not told apart by so few inputs
    return taken, tuple(one.nodes for one in fitting if one is not taken)[: _FORMS - 1]


def _read_as(
    nodes: tuple[Node, ...],
    inputs: Sequence[tuple[list[Line], str]],
    statement: str,
    bounds: Sequence[StatedBound],
    *,
    careful: bool,
    vouched: bool,
) -> _ReadForm:
    readings = [reading for lines, text in inputs if (reading := read_input(nodes, lines, text)) is not None]
    observed = [block for reading in readings for block in reading.seen]
    columns = columns_in(nodes, observed, bounds, careful=careful, signs=speaks_of_signs(statement))
    if _PRIME.search(statement) is not None:
        _keep_primes(columns, observed)
    named = name_columns(statement, columns, [reading.seen for reading in readings], listed=vouched)
    refuted = adds_unsaid(nodes, statement) or (named is not None and not counts_as_stated(nodes, named, statement))
    return _ReadForm(nodes, readings, columns, named, refuted)


def inputs_of_another_form(inputs: Sequence[str]) -> frozenset[int]:
    """Return the places of inputs that do not have the form which at least three quarters of them share.

    Such a form is looked for in small samples of them, so that a few others do not hide it; one whose every count is
    told comes first. Where there is none, nothing is said of any.
    """
    lines = {i: read_lines(text) for i, text in enumerate(inputs) if len(text) <= _MOST_BYTES}
    readable = {i: read for i, read in lines.items() if read and all(read)}
    if len(readable) < _LEAST_SHARING:
        return frozenset()
    draw = random.Random(len(inputs))
    best: tuple[bool, int] = (False, 0)
    sharing: set[int] = set()
    for _ in range(_SAMPLES):
        sample = draw.sample(sorted(readable), min(_LEAST_SHARING, len(readable)))
        nodes = infer_grammar(sorted((readable[i] for i in sample), key=len))
        if nodes is None:
            continue
        reads = {i for i, read in readable.items() if read_input(nodes, read) is not None}
        told = not any(isinstance(node, ArrayNode | LinesNode) and node.count is None for node in nodes)
        if (told, len(reads)) > best and len(reads) >= max(_LEAST_SHARING, _SHARE * len(lines)):
            best, sharing = (told, len(reads)), reads
    return frozenset(set(lines) - sharing) if sharing else frozenset()


def inputs_breaking_the_statement(inputs: Sequence[str], statement: str) -> frozenset[int]:
    """Return the places of inputs that break a rule of the statement which at least three quarters of them keep.

    Rules are formulas on named numbers (`stated_rules`); which number a name means is told by their order alone. So a
    rule that more inputs break is taken to be misread, and nothing is said of any.
    """
    lines = {i: read for i, text in enumerate(inputs) if len(text) <= _MOST_BYTES and (read := read_lines(text))}
    if len(lines) < _LEAST_SHARING:
        return frozenset()
    forms = infer_grammars(sorted((read for read in lines.values() if all(read)), key=len)[:12], 0.0)
    if not forms:
        return frozenset()
    readings = {i: reading.seen for i, read in lines.items() if (reading := read_input(forms[0], read)) is not None}
    columns = columns_in(forms[0], [block for seen in readings.values() for block in seen], [], careful=True)
    named = name_columns(statement, columns, [])
    if named is None:
        return frozenset()
    broken: set[int] = set()
    for rule in named.rules:
        alone = dataclasses.replace(named, rules=(rule,))
        breaking = {i for i, seen in readings.items() if alone.broken(seen) is not None}
        if len(readings) - len(breaking) >= max(_LEAST_SHARING, _SHARE * len(readings)):
            broken |= breaking
    return frozenset(broken)


def _keep_primes(columns: dict[int, Column], observed: Sequence[SeenInputs]) -> None:
    """Say of columns that they hold primes where all values seen are."""
    for name, column in columns.items():
        if column.kind == "whole":
            values = {int(token) for block in observed if block.column == name for token in block.tokens}
            if len(values) >= _MANY_PRIMES and all(map(is_prime, values)):
                columns[name] = dataclasses.replace(column, prime=True)


def _keep_listed_words(columns: dict[int, Column], statement: str) -> None:
    """Take the words of a column for all that there are, where the statement names each of them or does not speak of
    the letters that words may have.
    """
    part = input_section(statement)
    spelt = speaks_of_letters(part)
    for name, column in columns.items():
        if set(column.letters) <= set(BRACKETS):
            continue
        listed = all(len(word) > 1 and re.search(rf"(?<!\w){re.escape(word)}(?!\w)", part) for word in column.words)
        if column.kind == "word" and column.letters and (listed or (not spelt and column.length is None)):
            columns[name] = dataclasses.replace(column, letters="", length=None)


def _widen_letters(columns: dict[int, Column], relations: Relations, alphabet: str) -> Relations:
    """Give columns of letters all letters of their cases that the statement names."""
    letters = dict(relations.letters)
    for name, column in columns.items():
        own = set(column.letters)
        cases = [case for case in (string.ascii_lowercase, string.ascii_uppercase) if own & set(case)]
        if own and own <= set(string.ascii_letters) and all(set(case) <= set(alphabet) for case in cases):
            widened = "".join(sorted(own.union(*cases)))
            columns[name] = dataclasses.replace(column, letters=widened)
            letters[name] = frozenset(widened)
    kept = frozenset(key for key in relations.kept if key[0] != "once" or key[3] not in alphabet)
    return dataclasses.replace(relations, letters=letters, kept=kept)


def _apply_limits(columns: dict[int, Column], named: NamedColumns) -> None:
    """Set the ranges that the statement gives to named columns."""
    above = {column for column, _, sign in named.compared() if sign in ("<", "<=")}
    for name, (low, high) in named.limits().items():
        column = columns[name]
        if column.kind == "word":
            if high is not None and column.length is None and column.letters and column.sizes[0] < column.sizes[1]:
                columns[name] = dataclasses.replace(column, sizes=(max(1, low or 1), high))
            continue
        top = column.high if high is None else high
        if high is None and name in above:
            top = OPEN
        columns[name] = dataclasses.replace(
            column, low=column.low if low is None else low, high=top, most=None, certain=False, wide=None
        )


def _with_rules(relations: Relations, named: NamedColumns, nodes: Sequence[Node], *, ordered: bool) -> Relations:
    """Return the relations with what the statement's formulas say of named columns, in the place of what seems so.

    ``ordered``: words may say it, too; then all that was seen stays.
    """
    rows = {
        block.first + place: block.first
        for block in blocks_of(nodes)
        for place in range(block.width if isinstance(block.width, int) else 1)
    }
    stated = {
        ("beside" if rows.get(a, -1) == rows.get(b, -2) else "compare", a, b, sign) for a, b, sign in named.compared()
    }
    known = set(named.columns.values())
    kept = {
        key for key in relations.kept if ordered or key[0] not in ("compare", "beside") or not {key[1], key[2]} <= known
    }
    return dataclasses.replace(relations, kept=frozenset(kept | stated))


def _lie(tokens: Sequence[str], column: Column) -> bool:
    """Return whether numbers are of their column's kind and in its range."""
    if column.kind == "whole":
        if not tokens or not all_whole(tokens):
            return not tokens
        numbers = list(map(int, tokens))
        return column.low <= min(numbers) and max(numbers) <= column.high
    return all(_is_real(token) and column.low <= float(token) <= column.high for token in tokens)


def _spelt_as(column: Column, block: SeenInputs) -> bool:
    """Return whether words are those that were seen, or of their letters and their length."""
    if not column.letters:
        return set(block.tokens) <= set(column.words)
    if column.length is not None and {len(token) for token in block.tokens} - {block.env.get(column.length)}:
        return False
    return set("".join(block.tokens)) <= set(column.letters)


def _is_real(token: str) -> bool:
    whole, _, decimals = token.lstrip("-").partition(".")
    return whole.isdigit() and (decimals or "0").isdigit()
