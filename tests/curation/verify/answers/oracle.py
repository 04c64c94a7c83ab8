r"""Whether a changed answer is the same answer after all, decided without the verifier: by latex2sympy and sympy.

Both texts are cut at the same relations, commas and words; pieces of formulas are parsed by Math-Verify's parser and
are the same when they agree to 40 digits at points of many sizes and both signs. Words must be the same. Beyond that,
with ± both signs are compared; a sum with a multiple of nπ may be shifted by whole periods; residues by their modulus;
an equation to 0 may change its sign; a root of odd order is real.

A few conventions need no mathematics and are looked at in the texts: minus zero, ∓ for ±, an infinite end written as
closed, another letter for an integer that counts periods, a constant of integration, an argument that occurs nowhere
else. Slow: meant for the few changes that a verifier accepts.
"""

from __future__ import annotations

import difflib
import math
import random
import re
from collections.abc import Callable
from typing import Any

import sympy

MAX_CHARS = 300
_POINTS = (3e-7, 0.013, 0.37, 0.71, 1.3, 2.6, 7.7, 41.9, 977.3, 1e6 + 0.3)
_EXPONENTIAL = (sympy.exp, sympy.sinh, sympy.cosh, sympy.tanh)
_RELATION = re.compile(r"\\(?:[lg]eq?|neq?|in|equiv|approx|[lg]t)(?![a-z])|[=<>≤≥≠]")
_WORDS = re.compile(r"\\(?:text|mathrm|mbox)\s*\{[^{}]*\}|(?<![A-Za-z\\])(?:and|or)(?![A-Za-z])")
_NAMES = re.compile(r"(?<![\\A-Za-z])(arcsin|arccos|arctan|sinh|cosh|tanh|sin|cos|tan|exp|ln|log|sqrt|pi)(?![A-Za-z])")
_OF_WHOLE: dict[str, Callable[..., int]] = {"gcd": math.gcd, "lcm": math.lcm, "max": max, "min": min}
_WHOLE_CALL = re.compile(r"\\(?:operatorname\{)?(gcd|lcm|max|min)\}?\s*\((-?\d+(?:\s*,\s*-?\d+)+)\)")
_MIXED = re.compile(r"(?<![\d.}\w])(\d+)\s*\\[dt]?frac\s*\{(\d+)\}\s*\{(\d+)\}")
_REPEATING = re.compile(r"(\d+)\.(\d*)\\overline\{(\d+)\}")
_CELLS = re.compile(r"\\begin\{[a-z]*matrix\}|\\end\{[a-z]*matrix\}|\\\\|&")
_MODULUS = re.compile(r"\\pmod\s*\{?(\d+)\}?|\(\s*\\?mod\s*(\d+)\s*\)")


def is_same_answer(reference: str, changed: str) -> str | None:
    """Return why two texts are the same answer; None where they are not, or where that is not known."""
    convention = _convention(reference, changed)
    if convention is not None:
        return convention
    if max(len(reference), len(changed)) > MAX_CHARS:
        return None
    moduli = [sorted(map(str, _MODULUS.findall(text))) for text in (reference, changed)]
    if moduli[0] != moduli[1]:
        return None
    modulus = int("".join(_MODULUS.findall(reference)[0])) if len(set(moduli[0])) == 1 else 0
    bare = [_bare(_MODULUS.sub(" ", text)) for text in (reference, changed)]
    return "the same value" if _same(bare[0], bare[1], modulus) else None


def _bare(text: str) -> str:
    """Return a text without what only sets its type, in LaTeX."""
    text = re.sub(r"\$|\\(?:left|right)(?![a-z])|\\[()\[\],;! ]", " ", text).strip().rstrip(".")
    text = re.sub(r"\\boxed\{(.*)\}", r"\1", text)
    text = re.sub(r"\\[dt]?frac\s*(\d)\s*(\d)", r"\\frac{\1}{\2}", text)
    text = _REPEATING.sub(_repeating, _MIXED.sub(_mixed, text))
    text = re.sub(r"\^\s*\{?\s*\\circ\s*\}?", r" \\cdot \\frac{\\pi}{180}", text)
    text = _WHOLE_CALL.sub(lambda m: str(_OF_WHOLE[m.group(1)](*map(int, m.group(2).split(",")))), text)
    return _NAMES.sub(r"\\\1", text)


def _mixed(match: re.Match[str]) -> str:
    """Return 2 2/3 as a sum, as it is read where the fraction is proper, and 2 4/3 as a product."""
    whole, top, below = map(int, match.groups())
    return rf"({whole}{'+' if top < below else '*'}\frac{{{top}}}{{{below}}})"


def _repeating(match: re.Match[str]) -> str:
    whole, part, period = match.groups()
    nines = 10 ** len(period) - 1
    return rf"\frac{{{int(whole + part) * nines + int(period)}}}{{{nines * 10 ** len(part)}}}"


def _same(reference: str, changed: str, modulus: int) -> bool:
    """Return whether two texts are the same, cut at words, relations and commas until they are single formulas."""
    reference, changed = reference.strip(), changed.strip()
    if reference.split() == changed.split():
        return True
    for pattern in (_CELLS, _WORDS, _RELATION):
        signs = [[sign.strip() for sign in pattern.findall(text)] for text in (reference, changed)]
        if not signs[0] and not signs[1]:
            continue
        pieces = [pattern.split(text) for text in (reference, changed)]
        if signs[0] != signs[1] or len(pieces[0]) != len(pieces[1]):
            return False
        return all(
            _same(left, right, modulus)
            or (_is_set_to_zero(signs[0], pieces[0], at) and _same_but_for_sign(left, right))
            for at, (left, right) in enumerate(zip(*pieces, strict=True))
        )
    lists = [_items(text) for text in (reference, changed)]
    if len(lists[0]) > 1 or len(lists[1]) > 1:
        return len(lists[0]) == len(lists[1]) and all(
            _same(left, right, modulus) for left, right in zip(*lists, strict=True)
        )
    return _same_value(reference, changed, modulus)


def _is_set_to_zero(signs: list[str], pieces: list[str], at: int) -> bool:
    """Return whether = 0 or ≠ 0 follows the piece."""
    return (
        at < len(signs)
        and signs[at] in ("=", r"\ne", r"\neq")
        and re.match(r"\s*0(?![\d.])", pieces[at + 1]) is not None
    )


def _same_but_for_sign(reference: str, changed: str) -> bool:
    """Return whether two texts are the same but for the sign of the formula behind the last comma."""
    (start, old), (other, new) = (text.rpartition(",")[::2] for text in (reference, changed))
    return start == other and (_same_value(old, f"-({new})", 0) or _same_value(f"-({old})", new, 0))


def _items(text: str) -> list[str]:
    """Return the items between commas, of a list, a tuple or a set."""
    for start, end in (("(", ")"), ("[", "]"), ("\\{", "\\}"), ("", "")):
        if text.startswith(start) and text.endswith(end):
            inner = text[len(start) : len(text) - len(end)]
            items, level = [""], 0
            for sign in inner:
                level += (sign in "({[") - (sign in ")}]")
                items = [*items, ""] if sign == "," and not level else [*items[:-1], items[-1] + sign]
            if len(items) > 1 and not level:
                return [start, *items, end] if start else items
    return [text]


def _same_value(reference: str, changed: str, modulus: int) -> bool:
    if not (_is_formula(reference) and _is_formula(changed)):
        return False
    if "\\pm" in reference:
        sides = [[_parse(text.replace("\\pm", sign)) for sign in "+-"] for text in (reference, changed)]
        return all(any(_agree(left, right) for right in sides[1]) for left in sides[0])
    left, right = _parse(reference), _parse(changed)
    if left is None or right is None:
        return False
    if modulus and left.is_Integer and right.is_Integer:
        return int(left - right) % modulus == 0
    return left == right or _agree(left, right) or _same_family(left, right)


def _same_family(left: Any, right: Any) -> bool:
    """Return whether a + np and b + nq are the same numbers: p = ±q, a and b are whole multiples of p apart."""
    names = left.free_symbols | right.free_symbols
    if len(names) != 1 or str(next(iter(names))) not in "knml" or not (left.has(sympy.pi) and right.has(sympy.pi)):
        return False
    name = next(iter(names))
    steps = [sympy.expand(side).coeff(name) for side in (left, right)]
    starts = [side.subs(name, 0) for side in (left, right)]
    linear = all(
        sympy.expand(side - step * name - start) == 0
        for side, step, start in zip((left, right), steps, starts, strict=True)
    )
    periods = steps[0] in (steps[1], -steps[1]) and steps[0] != 0
    return bool(linear and periods and sympy.nsimplify((starts[0] - starts[1]) / steps[0]).is_Integer)


def _is_formula(text: str) -> bool:
    """Return whether a text is one formula: no words, relations, lists or text commands."""
    bare = re.sub(r"\\[A-Za-z]+", " ", re.sub(r"\\sqrt\s*\[\d+\]", " ", text))
    return not re.search(r"\\(?:text|mathrm|mid)(?![a-z])", text) and not re.search(
        r"[A-Za-z]{2,}|[$=<>,;:\n\[\]]|\\[^A-Za-z]", bare
    )


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
    if old.isdigit() and new.isdigit() and re.search(r"[+-]\s*[Cc]_\{?$", before) and f"_{new}" not in reference:
        return "a constant of integration" if f"_{{{new}}}" not in reference else None
    argument = re.search(r"^\W*[a-zA-Z]\($", before) and re.match(r"\)\s*=", after)
    if argument and not any(re.search(rf"(?<![A-Za-z]){name}(?![A-Za-z])", after) for name in (old, new)):
        return "an argument that occurs nowhere else"
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

    read = parse(f"${text}$", fallback_mode="no_fallback", parsing_timeout=5)
    value = read[0] if read and isinstance(read[0], sympy.Expr) else None
    if value is None:
        return None
    value = value.subs({name: sympy.I for name in value.free_symbols if name.name == "i"})
    return value.replace(
        lambda node: node.is_Pow and node.exp.is_Rational and node.exp.q % 2 == 1 and node.exp.q > 1,
        lambda node: sympy.sign(node.base) ** node.exp.p * abs(node.base) ** node.exp,
    )


def _agree(left: Any, right: Any) -> bool:
    names = sorted(left.free_symbols | right.free_symbols, key=str)
    grows = any(
        node.is_Pow and node.exp.free_symbols for side in (left, right) for node in sympy.preorder_traversal(side)
    )
    points = _POINTS[:4] if grows or left.has(*_EXPONENTIAL) or right.has(*_EXPONENTIAL) else _POINTS
    agreements = 0
    for trial in range(20 if names else 1):
        dice = random.Random(trial)
        sign = 1 if trial % 2 else -1
        point = {name: sympy.Rational(str(dice.choice(points))) * sign for name in names}
        values = [side.subs(point).evalf(60, maxn=150) for side in (left, right)]
        if not all(value.is_number and value.is_finite for value in values):
            continue
        largest = max(abs(value) for value in values)
        if abs(values[0] - values[1]) > largest * sympy.Float(10) ** -40:
            return False
        agreements += 1
    return agreements >= (4 if names else 1)
