"""Forms: what an answer was read as.

Each form's ``source`` is its tokens' positions in the text, so that a `Reading` drops nothing silently.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from curation.verify.answers.expr import Expr, letters_in, show

Positions = frozenset[int]
"""Positions of tokens in a text."""

NOWHERE: Positions = frozenset()


@dataclass(frozen=True, slots=True)
class Value:
    """One expression with a normalised unit; "%" and "deg" are units too."""

    expr: Expr
    unit: str = ""
    source: Positions = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Words:
    """Text, with its spaces and case normalised; ``raw`` keeps the case."""

    text: str
    raw: str
    source: Positions = field(default=NOWHERE, compare=False)


CASE_BRACKETS = "()"
"""Brackets of a pair of a value and its condition."""


@dataclass(frozen=True, slots=True)
class Sequence:
    """Several forms; ``brackets`` is "" for a bare list, "{}" for a set, "::" for a ratio, else a pair."""

    items: tuple[Form, ...]
    brackets: str = ""
    source: Positions = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Union:
    """Forms of which at least one holds, or all if ``is_conjunction``."""

    parts: tuple[Form, ...]
    is_conjunction: bool = False
    source: Positions = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Matrix:
    """Rows of expressions, all of one length."""

    rows: tuple[tuple[Expr, ...], ...]
    source: Positions = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Relation:
    """The chain ``items[0] ops[0] items[1] …``; the operators are = != ~= < <= > >= in notin to :."""

    items: tuple[Form, ...]
    ops: tuple[str, ...]
    source: Positions = field(default=NOWHERE, compare=False)


Form = Value | Words | Sequence | Union | Matrix | Relation


@dataclass(frozen=True, slots=True)
class Reading:
    """The form of a text, what the text declares of names, and what the form leaves out.

    Example: "2^k, k ∈ Z" is 2^k with ``declared`` k: "Z"; "2^k for k > 1" is 2^k with ``unread`` "fork>1".
    """

    form: Form
    declared: tuple[tuple[str, str], ...] = ()
    unread: str = ""


def without_unit(form: Form) -> Expr | None:
    """Return a value's expression if its unit may be omitted."""
    return form.expr if isinstance(form, Value) and form.unit in ("", "deg", "ratio") else None


def subforms(form: Form) -> tuple[Form, ...]:
    """Return the forms in a form."""
    if isinstance(form, Union):
        return form.parts
    return form.items if isinstance(form, Sequence | Relation) else ()


def sources(form: Form) -> Positions:
    """Return the positions of a form's tokens."""
    return form.source.union(*(sources(part) for part in subforms(form)))


def also_from(form: Form, positions: Positions) -> Form:
    """Return a form with further source tokens."""
    return replace(form, source=form.source | positions)


def names_in(form: Form) -> frozenset[str]:
    """Return a form's variables, and the letters in names such as f(x)."""
    if isinstance(form, Value):
        return letters_in(form.expr)
    if isinstance(form, Matrix):
        return frozenset().union(*(letters_in(cell) for row in form.rows for cell in row))
    return frozenset().union(*(names_in(part) for part in subforms(form)))


def describe(form: Form) -> str:
    """Return a short text for people."""
    if isinstance(form, Value):
        return show(form.expr) + (f" [{form.unit}]" if form.unit else "")
    if isinstance(form, Words):
        return f"“{form.text}”"
    if isinstance(form, Sequence):
        start, end = (form.brackets[0], form.brackets[-1]) if form.brackets else ("", "")
        return start + ", ".join(describe(item) for item in form.items) + end
    if isinstance(form, Union):
        return (" and " if form.is_conjunction else " or ").join(describe(part) for part in form.parts)
    if isinstance(form, Matrix):
        return "[" + "; ".join(", ".join(show(cell) for cell in row) for row in form.rows) + "]"
    texts = [describe(form.items[0])]
    for op, item in zip(form.ops, form.items[1:], strict=True):
        texts += [op, describe(item)]
    return " ".join(texts)
