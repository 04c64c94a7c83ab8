"""Reads labels (names before "=" or ":") and joined items."""

from __future__ import annotations

import re

from curation.verify.answers.expr import Expr, has, letters_in, num, rename, sym, symbols
from curation.verify.answers.forms import Form, Relation, Sequence, Union, Value, Words, describe
from curation.verify.answers.grammar import is_modulus
from curation.verify.answers.tokens import Token

_CALL = re.compile(r"([A-Za-z]\w*'?)\(([A-Za-z0-9])\)")
_COMPUTED = re.compile(r"\s*(?:[-+]|\d+\s*[A-Za-z]\w*\s*\(|.*[*/^])")
"""A left side, read as words, that is no name: -f(x, y), 2f(x, y)."""

NO_NAME = re.compile(r"[=<>^+*/|\\{}\[\]]")
"""Signs of a left side that is no name."""

_COORDINATES = frozenset("xyzt")
"""Letters of curves: x + y = 5 does not name 5, but m + n = 5 does."""


def left_name(form: Form) -> str | None:
    """Return the name in "name = value", "name: value" or "name ∈ set"."""
    if not isinstance(form, Relation) or form.ops[0] not in ("=", ":", "in"):
        return None
    left, right = form.items[0], form.items[-1]
    if form.ops[0] == "in" and (isinstance(right, Value) or (isinstance(left, Value) and not symbols(left.expr))):
        return None
    if isinstance(left, Value) and isinstance(right, Value):
        if symbols(right.expr) and not symbols(left.expr):
            return None
        if left.expr.op in ("add", "pow") and right.expr == num(0):
            return None
    return describe(left) if is_label(left) else None


def is_label(form: Form) -> bool:
    """Return whether a left side only names the right side: x, f(x), AB, m + n, det A."""
    if isinstance(form, Words):
        return not _COMPUTED.match(form.raw) and not form.text.isdigit() and not NO_NAME.search(form.raw)
    if isinstance(form, Sequence):
        return all(isinstance(item, Value) and is_label(item) for item in form.items)
    if not isinstance(form, Value):
        return False
    expr = form.expr
    if form.unit == "ratio":
        return bool(symbols(expr))
    if not symbols(expr):
        return not has(expr, "const", "inf")
    if expr.op == "sym" or (expr.op == "fn" and expr.name == "abs" and bool(symbols(expr))):
        return True
    if expr.op == "mul" and _is_call(expr):
        return True
    is_quantity = expr.op == "fn" or len(symbols(expr)) > 1
    return is_quantity and not letters_in(expr) <= _COORDINATES


def _is_call(expr: Expr) -> bool:
    """Return whether a product is a call: f(x), W(n), P(A)."""
    first, *rest = expr.args
    if first.op == "pow" and first.args[1] == num(-1) and first.args[0].op == "sym" and first.args[0].name in "fgh":
        first = first.args[0]
    return (
        first.op == "sym"
        and first.name[:1] in "fghFGHPQRSTVWpquvyx"
        and len(rest) == 1
        and rest[0].op in ("sym", "num")
    )


def labels_clash(reference: Relation, answer: Relation) -> bool:
    """Return whether two labels name two things: x = 5 against y = 5.

    A name in words fits any letter, y is f(x), and case does not count.
    """
    left, right = reference.items[0], answer.items[0]
    if isinstance(left, Words) or isinstance(right, Words):
        texts = [side.text if isinstance(side, Words) else describe(side).lower() for side in (left, right)]
        return texts[0] != texts[1] and (type(left) is type(right) or max(map(len, texts)) < 3)
    calls = _call(left), _call(right)
    if (calls[0] is None) != (calls[1] is None):
        return describe(right if calls[0] else left) not in ("y", "Y")
    return describe(left).lower() != describe(right).lower()


def _call(form: Form) -> tuple[str, str] | None:
    """Split a label such as f(x)."""
    if not isinstance(form, Value):
        return None
    match = _CALL.fullmatch(form.expr.name) if form.expr.op == "sym" else None
    return (match.group(1), match.group(2)) if match is not None else None


def with_argument_of(reference: Relation, answer: Relation) -> Relation:
    """Return f(n) = 2n + 1 with the reference's argument: f(m) = 2m + 1."""
    reference_call, answer_call = _call(reference.items[0]), _call(answer.items[0])
    if (
        reference_call is None
        or answer_call is None
        or reference_call[0] != answer_call[0]
        or not (reference_call[1] + answer_call[1]).isalpha()
    ):
        return answer
    values = [item for item in answer.items[1:] if isinstance(item, Value)]
    if len(values) + 1 < len(answer.items) or reference_call[1] == answer_call[1]:
        return answer
    inside = [letters_in(value.expr) for value in values]
    if any(reference_call[1] in letters or (letters - symbols(value.expr)) & {answer_call[1]}
           for letters, value in zip(inside, values, strict=True)):  # fmt: skip
        return answer
    renamed = (Value(rename(value.expr, {answer_call[1]: sym(reference_call[1])}), value.unit) for value in values)
    return Relation((reference.items[0], *renamed), answer.ops)


def join_items(forms: list[Form], joints: list[str]) -> Form:
    """Return the form of several items; a label before the first holds for all.

    Conditions form a conjunction, or a union with "or".
    """
    if len(forms) == 1:
        return forms[0]
    if ";" in joints and "," in joints:
        groups = _in_groups(forms, joints)
        if groups is not None:
            return groups
    if all(_is_equation(form) for form in forms):
        return Sequence(_group_by_repetition(forms))
    first = forms[0]
    if (
        isinstance(first, Relation)
        and first.ops in (("=",), ("in",))
        and not any(isinstance(form, Relation) for form in forms[1:])
    ):
        labelled = (Relation((first.items[0], form), first.ops, first.source) for form in forms[1:])
        return Sequence((first, *labelled), "{}" if "or" in joints else "")
    if isinstance(first, Relation) and first.ops == ("!=",) and all(isinstance(form, Value) for form in forms[1:]):
        exclusions = (Relation((first.items[0], form), ("!=",), first.source) for form in forms[1:])
        return Union((first, *exclusions), is_conjunction=True)
    conditions = all(is_condition(form) for form in forms)
    if conditions and not all(isinstance(form, Sequence) for form in forms):
        return Union(tuple(forms), is_conjunction="or" not in joints)
    if "or" in joints and all(isinstance(form, Value) for form in forms):
        return Sequence(tuple(forms), "{}")
    return Sequence(tuple(forms))


def _in_groups(forms: list[Form], joints: list[str]) -> Form | None:
    """Return groups separated by semicolons, if of one size above 1."""
    groups: list[list[Form]] = [[]]
    for form, joint in zip(forms, joints, strict=True):
        if joint == ";":
            groups.append([])
        groups[-1].append(form)
    if len({len(group) for group in groups}) != 1 or len(groups[0]) < 2:
        return None
    return Sequence(tuple(Sequence(tuple(group), "()") for group in groups))


def _group_by_repetition(forms: list[Form]) -> tuple[Form, ...]:
    """Group equations by repeated names: x = 1, y = 2, x = 3, y = 4."""
    names = [describe(form.items[0]) for form in forms if isinstance(form, Relation)]
    width = names.index(names[0], 1) if names[0] in names[1:] else 0
    if width > 1 and len(forms) % width == 0 and names == names[:width] * (len(forms) // width):
        return tuple(Sequence(tuple(forms[at : at + width]), "()") for at in range(0, len(forms), width))
    return tuple(forms)


def with_modulus_each(parts: list[list[Token]]) -> list[list[Token]]:
    """Return the items of ``n = 0, 1 (mod 4)``, each with the modulus."""
    starts = [next((at for at, token in enumerate(part) if is_modulus(token)), None) for part in parts]
    last = starts[-1]
    if last is None or any(start is not None for start in starts[:-1]):
        return parts
    suffix = parts[-1][last - (parts[-1][last - 1].text == "(") :]
    return [*(part + suffix for part in parts[:-1]), parts[-1]]


def _is_equation(form: Form) -> bool:
    return isinstance(form, Relation) and set(form.ops) == {"="}


def is_condition(form: Form) -> bool:
    """Return whether a form is an inequality or union, or a name in one."""
    if isinstance(form, Relation):
        return form.ops[0] not in ("=", ":", "~=") and (form.ops[0] != "in" or is_condition(form.items[-1]))
    return isinstance(form, Union)
