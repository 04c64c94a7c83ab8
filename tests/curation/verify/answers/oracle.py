r"""Whether a changed answer is the same answer after all, decided without the verifier: by latex2sympy and sympy.

Formulas without words and relations are parsed by Math-Verify's parser; they are the same when they agree to 40 digits
at points of many sizes and both signs. (Words, relations and lists are not for it: it drops what it does not know.) A
few conventions need no mathematics and are looked at in the texts: minus zero, ∓ for ±, an infinite end written as
closed, another letter for (or the sign of) an integer that counts periods or a constant of integration. Slow: meant
for the few changes that a verifier accepts.
"""

from __future__ import annotations

import difflib
import random
import re
from typing import Any

import sympy

MAX_CHARS = 200
_POINTS = (3e-7, 0.013, 0.37, 0.71, 1.3, 2.6, 7.7, 41.9, 977.3, 1e6 + 0.3)


def is_same_answer(reference: str, changed: str) -> str | None:
    """Return why two texts are the same answer; None where they are not, or where that is not known."""
    convention = _convention(reference, changed)
    if convention is not None:
        return convention
    if max(len(reference), len(changed)) > MAX_CHARS or not (_is_formula(reference) and _is_formula(changed)):
        return None
    left, right = _parse(reference), _parse(changed)
    if left is None or right is None:
        return None
    same = left == right or (isinstance(left, sympy.Expr) and isinstance(right, sympy.Expr) and _agree(left, right))
    return "the same value" if same else None


def _is_formula(text: str) -> bool:
    """Return whether a text is one formula: no words, relations, lists or text commands."""
    inner = text.strip().removeprefix("$").removesuffix("$")
    bare = re.sub(r"\\[A-Za-z]+|\b(?:sinh?|cosh?|tanh?|exp|ln|log|sqrt)\b", " ", inner)
    relation = re.search(r"\\(?:[lg]eq?|neq?|in|equiv|approx|pm|mp|text|mathrm|boxed|noindent|mid)(?![a-z])", inner)
    return relation is None and re.search(r"[A-Za-z]{2,}|[$=<>,;:\n\[\]]|\\[^A-Za-z]", bare) is None


def _convention(reference: str, changed: str) -> str | None:
    (old, new, before, after) = _changed_part(reference, changed)
    if new == "-" and re.match(r"0(?![\d.])", after) and not old:
        return "minus zero"
    if {old, new} <= {"+", "-", "p", "m"} and re.search(r"\\[pm]$|\\$", before):
        return "the two signs of ±"
    if "pi" in reference and re.search(r"(?<![a-z])[knml](?![a-z])", reference):
        beside = re.sub(r"\s|\{|\}|\\cdot|\\,", "", after)[:4] + "|" + re.sub(r"\s|\{|\}|\\cdot|\\,", "", before)[-6:]
        if re.match(r"(?:[knml]\\?pi|\d?[knml]?\\pi)|.*pi$", beside) and (new in ("-", "+", "") or new.isalpha()):
            return "an integer that counts periods"
    opens, closes = re.match(r"\s*-?\s*(?:\\?inf|∞)", after), re.search(r"(?:inf[a-z]*|∞)\s*$", before)
    if ({old, new} == set("([") and opens) or ({old, new} == set(")]") and closes):
        return "an infinite end"
    if old in ("C", "c", "K") and new.isalpha() and re.search(r"[+-]\s*\{?$", before):
        return "a constant of integration"
    return None


def _changed_part(reference: str, changed: str) -> tuple[str, str, str, str]:
    """Return what was changed, what for, and the text before and behind."""
    matcher = difflib.SequenceMatcher(None, reference, changed, autojunk=False)
    codes = [code for code in matcher.get_opcodes() if code[0] != "equal"]
    if len(codes) != 1:
        return "?", "?", "", ""
    _, start, end, new_start, new_end = codes[0]
    return reference[start:end], changed[new_start:new_end], reference[:start], reference[end:]


def _parse(text: str) -> Any:
    from math_verify import parse

    bare = "$" not in text and "boxed" not in text and "\\(" not in text and "\\[" not in text
    read = parse(f"${text}$" if bare else text, fallback_mode="no_fallback", parsing_timeout=5)
    return read[0] if read else None


def _agree(left: sympy.Expr, right: sympy.Expr) -> bool:
    names = sorted(left.free_symbols | right.free_symbols, key=str)
    if left.free_symbols != right.free_symbols:
        return False
    agreements = 0
    for trial in range(2 * len(_POINTS) if names else 1):
        dice = random.Random(trial)
        sign = 1 if trial % 2 else -1
        point = {name: sympy.Rational(str(dice.choice(_POINTS))) * sign for name in names}
        values = [side.subs(point).evalf(60, maxn=150) for side in (left, right)]
        if not all(value.is_number and value.is_finite for value in values):
            continue
        largest = max(abs(value) for value in values)
        if abs(values[0] - values[1]) > largest * sympy.Float(10) ** -40:
            return False
        agreements += 1
    return agreements >= (4 if names else 1)
