"""Items that commas, semicolons, "and" and "or" join: a list of answers, groups of them, or conditions."""

from __future__ import annotations

from curation.verify.answers.forms import Form, Relation, Sequence, Union, Value, describe
from curation.verify.answers.grammar import is_modulus
from curation.verify.answers.tokens import Token


def join_items(forms: list[Form], joints: list[str]) -> Form:
    """Return the form of several items, each with what stands before it.

    A label before the first holds for all: k = 1, 2. Conditions hold all together, or one of them where "or" is said.
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
        others = (Relation((first.items[0], form), ("!=",), first.source) for form in forms[1:])
        return Union((first, *others), is_conjunction=True)
    conditions = all(is_condition(form) for form in forms)
    if conditions and not all(isinstance(form, Sequence) for form in forms):
        return Union(tuple(forms), is_conjunction="or" not in joints)
    all_solutions = all(is_condition(form) or isinstance(form, Value) or _is_equation(form) for form in forms)
    if "or" in joints and all_solutions and any(is_condition(form) for form in forms):
        return Union(tuple(forms))
    if "or" in joints and all(isinstance(form, Value) for form in forms):
        return Sequence(tuple(forms), "{}")
    return Sequence(tuple(forms))


def _in_groups(forms: list[Form], joints: list[str]) -> Form | None:
    """Return groups that semicolons separate and commas divide; None where they are not of one size above 1."""
    groups: list[list[Form]] = [[]]
    for form, joint in zip(forms, joints, strict=True):
        if joint == ";":
            groups.append([])
        groups[-1].append(form)
    if len({len(group) for group in groups}) != 1 or len(groups[0]) < 2:
        return None
    return Sequence(tuple(Sequence(tuple(group), "()") for group in groups))


def _group_by_repetition(forms: list[Form]) -> tuple[Form, ...]:
    """Group equations by the repetition of their names: x = 1, y = 2, x = 3, y = 4 is two answers of two parts each."""
    names = [describe(form.items[0]) for form in forms if isinstance(form, Relation)]
    width = names.index(names[0], 1) if names[0] in names[1:] else 0
    if width > 1 and len(forms) % width == 0 and names == names[:width] * (len(forms) // width):
        return tuple(Sequence(tuple(forms[at : at + width]), "()") for at in range(0, len(forms), width))
    return tuple(forms)


def with_modulus_each(parts: list[list[Token]]) -> list[list[Token]]:
    """Return the items of ``n = 0, 1 (mod 4)`` with the modulus behind each."""
    starts = [next((at for at, token in enumerate(part) if is_modulus(token)), None) for part in parts]
    last = starts[-1]
    if last is None or any(start is not None for start in starts[:-1]):
        return parts
    suffix = parts[-1][last - (parts[-1][last - 1].text == "(") :]
    return [*(part + suffix for part in parts[:-1]), parts[-1]]


def _is_equation(form: Form) -> bool:
    return isinstance(form, Relation) and set(form.ops) == {"="}


def is_condition(form: Form) -> bool:
    """Return whether a form says where something lies: an inequality, an interval, a union."""
    if isinstance(form, Relation):
        return form.ops[0] not in ("=", ":", "~=") and (form.ops[0] != "in" or is_condition(form.items[-1]))
    return isinstance(form, Union)
