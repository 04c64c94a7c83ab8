r"""References with one token changed: near misses that a verifier must refuse, drawn from a seed.

A mutation changes a digit, a sign, a relation, a bracket, a function, a variable, an operator or a unit. Almost every
one changes the answer; what is the same answer after all (0.50 for 0.5, ∓ for ±, another letter for a constant of
integration) is told by `tests.curation.verify.answers.oracle`, which shares no code with the verifier.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

Edit = tuple[int, int, str]
"""Characters from, to, and what takes their place."""

MAX_REFERENCE_CHARS = 300
_COMMAND = re.compile(r"\\[A-Za-z]+|\\.")
_TOKEN = re.compile(r"\\[A-Za-z]+|\\.|\d+|[A-Za-z]+|\s+|.", re.DOTALL)
_LAYOUT = re.compile(
    r"\\(?:[hv]space|begin|end|text|mathrm|mbox|operatorname|mathbb|mathbf)\s*\{[^{}]*\}|\\\\\[[^\]]*\]"
)
_RELATIONS = {
    r"\leq": r"\geq", r"\le": r"\ge", r"\geq": r"\leq", r"\ge": r"\le", "<": ">", ">": "<", "=": "<",
    r"\ne": "=", r"\neq": "=", r"\in": r"\notin", r"\cup": r"\cap", r"\lt": r"\gt", r"\gt": r"\lt", "≤": "≥", "≥": "≤",
}  # fmt: skip
_STRICTNESS = {"<": r"\le", ">": r"\ge", r"\leq": "<", r"\le": "<", r"\geq": ">", r"\ge": ">", "≤": "<", "≥": ">"}
_FUNCTIONS = {
    r"\sin": r"\cos", r"\cos": r"\sin", r"\tan": r"\cot", r"\cot": r"\tan", r"\ln": r"\sin", r"\log": r"\cos",
    r"\max": r"\min", r"\min": r"\max", r"\gcd": r"\operatorname{lcm}", r"\lfloor": r"\lceil", r"\lceil": r"\lfloor",
    r"\sqrt": r"\sin", r"\arcsin": r"\arccos", r"\arctan": r"\arcsin", r"\arccos": r"\arctan", r"\sum": r"\prod",
    r"\prod": r"\sum", r"\binom": r"\frac", r"\pi": "e", r"\exp": r"\sin", r"\sinh": r"\cosh", r"\cosh": r"\sinh",
    r"\infty": "7", r"\tanh": r"\tan", r"\sec": r"\csc", "π": "3", "√": "2",
}  # fmt: skip
_CLOSING = {r"\lfloor": (r"\rfloor", r"\rceil"), r"\lceil": (r"\rceil", r"\rfloor")}
_UNITS = {
    "cm": "km", "km": "cm", "m": "mm", "kg": "g", "hours": "minutes", "minutes": "hours", "days": "weeks",
    "dollars": "cents", "cents": "dollars", "inches": "feet", "feet": "inches", "meters": "feet", "miles": "feet",
    "seconds": "hours", "years": "days", "weeks": "days", "grams": "kilograms", "liters": "milliliters", "hour": "day",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Mutation:
    """A reference, the same with one token changed, and the kind of the change."""

    kind: str
    reference: str
    changed: str


def mutations(reference: str, seed: int) -> list[Mutation]:
    """Return one mutation of every kind that the reference admits, drawn by ``seed``."""
    found = []
    for kind, edits in _KINDS.items():
        dice = random.Random(f"{seed}/{kind}/{reference}")
        options = list(edits(reference, dice))
        if options:
            changed = _apply(reference, dice.choice(options))
            if changed != reference:
                found.append(Mutation(kind, reference, changed))
    return found


def is_short_answer(text: str) -> bool:
    """Return whether a text is a final answer and no whole response: every token of it counts."""
    whole_box = text.strip().startswith("\\boxed{") and text.count("boxed") == 1
    lone = ("boxed" not in text or whole_box) and "think>" not in text and "=>" not in text
    return 0 < len(text.strip()) <= MAX_REFERENCE_CHARS and lone and "nswer" not in text


def _apply(text: str, edits: list[Edit]) -> str:
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _tokens(text: str) -> list[tuple[int, str]]:
    """Return the tokens with their places, without what only sets the type: \\hspace, \\begin{…}, \\text{…}."""
    hidden = [match.span() for match in _LAYOUT.finditer(text)]
    return [
        (match.start(), match.group())
        for match in _TOKEN.finditer(text)
        if not any(start <= match.start() < end for start, end in hidden)
    ]


def _digits(text: str) -> Iterator[int]:
    for at, token in _tokens(text):
        if token.isdigit():
            yield from range(at, at + len(token))


def _digit_changed(text: str, dice: random.Random) -> Iterator[list[Edit]]:
    for at in _digits(text):
        yield [(at, at + 1, dice.choice([digit for digit in "0123456789" if digit != text[at]]))]


def _digit_added(text: str, dice: random.Random) -> Iterator[list[Edit]]:
    for at, token in _tokens(text):
        if token.isdigit() and text[at - 1 : at] != ".":
            yield [(at + len(token), at + len(token), str(dice.randint(1, 9)))]


def _digit_dropped(text: str, _: random.Random) -> Iterator[list[Edit]]:
    for at, token in _tokens(text):
        if len(token) > 1 and token.isdigit() and token[0] != "0" and text[at - 1 : at] not in (".", ","):
            yield [(at, at + 1, "")]


def _sign(text: str, _: random.Random) -> Iterator[list[Edit]]:
    for at, token in _tokens(text):
        beside_words = text[max(0, at - 2) : at].isalpha() or text[at + 1 : at + 3].isalpha()
        if token in ("+", "-", "−") and not beside_words and text[at + 1 : at + 2] not in ("}", "") and at:
            yield [(at, at + 1, "-" if token == "+" else "+")]


def _minus_in_front(text: str, _: random.Random) -> Iterator[list[Edit]]:
    """Put a minus before an operand, or take the one that leads away."""
    previous = ""
    for at, token in _tokens(text):
        begins = previous in ("", "(", "[", ",", "=", "$", "{", "<", ">") and text[at - 1 : at] != "\\"
        operand = token.isdigit() or (len(token) == 1 and token.isalpha()) or token in (r"\frac", r"\sqrt", r"\pi")
        if begins and operand and not _in_subscript(text, at):
            yield [(at, at, "-")]
        if begins and token == "-" and text[at + 1 : at + 2].isalnum():
            yield [(at, at + 1, "")]
        previous = token if token.strip() else previous


def _in_subscript(text: str, at: int) -> bool:
    return re.search(r"_\s*\{?$|(?:begin|end|array)\}?\{$", text[:at]) is not None


def _swapped(table: dict[str, str]) -> Callable[[str, random.Random], Iterator[list[Edit]]]:
    def edits(text: str, _: random.Random) -> Iterator[list[Edit]]:
        for at, token in _tokens(text):
            if token not in table:
                continue
            new = table[token] + (" " if text[at + len(token) : at + len(token) + 1].isalpha() else "")
            edit = [(at, at + len(token), new)]
            if token in _CLOSING:
                old, closing = _CLOSING[token]
                end = text.find(old, at)
                if end < 0 or text.find(token, at + 1, end) >= 0:
                    continue
                edit.append((end, end + len(old), closing))
            yield edit

    return edits


def _bracket(text: str, _: random.Random) -> Iterator[list[Edit]]:
    """Open or close one end of an interval or a tuple."""
    stack: list[tuple[int, str, bool]] = []
    for at, token in _tokens(text):
        if token in ("(", "["):
            stack.append((at, token, False))
        elif token == "," and stack:
            stack[-1] = (*stack[-1][:2], True)
        elif token in (")", "]") and stack:
            start, opener, has_comma = stack.pop()
            if has_comma and not text[:start].rstrip().endswith(tuple("abcdefghijklmnopqrstuvwxyzPQRSTABCDEF")):
                yield [(start, start + 1, "[" if opener == "(" else "(")]
                yield [(at, at + 1, "]" if token == ")" else ")")]


def _variable(text: str, dice: random.Random) -> Iterator[list[Edit]]:
    for at, token in _tokens(text):
        follows = text[at - 1 : at]
        if len(token) == 1 and token.isalpha() and token not in "deiC" and follows not in ("\\", "'"):
            letters = "abmnpqrstuvwxyz" if token.islower() else "ABDEFGHMNPQRST"
            yield [(at, at + 1, dice.choice([letter for letter in letters if letter.lower() != token.lower()]))]


def _unit(text: str, _: random.Random) -> Iterator[list[Edit]]:
    for match in re.finditer(r"(?<=[\s{~\d])[a-z]{1,10}(?![A-Za-z])", text):
        before = re.search(r"\d\W*(?:\\[a-z]+\W*)?$", text[: match.start()])
        if match.group() in _UNITS and before:
            yield [(*match.span(), _UNITS[match.group()])]


def _operator(text: str, _: random.Random) -> Iterator[list[Edit]]:
    for at, token in _tokens(text):
        if token in (r"\cdot", r"\times"):
            yield [(at, at + len(token), "+")]
        elif token == "/" and text[at + 1 : at + 2].isalnum() and text[at - 1 : at].isalnum():
            yield [(at, at + 1, "*")]
        elif token == "^" and not text[at + 1 :].lstrip("{ ").startswith(("\\circ", "'", "\\prime", "\\text")):
            yield [(at, at + 1, r"\cdot ")]


def _item_dropped(text: str, _: random.Random) -> Iterator[list[Edit]]:
    """Drop the last item of a flat list of three numbers or letters, or more."""
    for match in re.finditer(r"(?:[-\w.]+, ){2,}[-\w.]+(, [-\w.]+)(?=\s*(?:$|[$)\]}\\]))", text):
        yield [(match.start(1), match.end(1), "")]


_KINDS: dict[str, Callable[[str, random.Random], Iterator[list[Edit]]]] = {
    "digit": _digit_changed,
    "digit added": _digit_added,
    "digit dropped": _digit_dropped,
    "sign": _sign,
    "minus": _minus_in_front,
    "relation": _swapped(_RELATIONS),
    "strictness": _swapped(_STRICTNESS),
    "bracket": _bracket,
    "function": _swapped(_FUNCTIONS),
    "variable": _variable,
    "operator": _operator,
    "unit": _unit,
    "item dropped": _item_dropped,
}
