"""Changes of one place in a C++ program, found in its tokens (`mutants`).

No grammar of C++ is kept: a change that does not compile is seen when it is compiled.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from functools import partial

_TOKEN = re.compile(
    r"//[^\n]*|/\*.*?\*/|^[ \t]*#(?:[^\n\\]|\\.|\\\n)*|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'"
    r"|[A-Za-z_]\w*|\.?\d(?:[\w.']|[eE][+-])*|<<=|>>=|<=>|->|\+\+|--|[-+*/%&|^=!<>]=|&&|\|\||<<|>>|::|\S",
    re.DOTALL | re.MULTILINE,
)
_COMPARISONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
_LOGIC = {"&&": "||", "||": "&&"}
_ARITHMETIC = {"+": "-", "-": "+"}
_TURNED = {"min": "max", "max": "min"}
_TYPES = frozenset(
    "int long short char double float bool auto unsigned signed string void const size_t ll pii pair vector set map "
    "queue deque stack array tuple multiset unordered_map unordered_set priority_queue greater less function template "
    "numeric_limits static_cast reinterpret_cast bitset typename struct class hash complex optional".split()
)
_WHOLE = re.compile(r"\d{1,18}")

Token = tuple[int, int, str]
"""Where it begins and ends, and its text."""


def cpp_changes(code: str) -> list[tuple[str, Callable[[], str]]]:
    """Return the changes that a program has places for: their kind, and what makes the changed program."""
    tokens = [(m.start(), m.end(), m[0]) for m in _TOKEN.finditer(code) if not m[0].lstrip().startswith(("//", "/*"))]
    found: list[tuple[str, Callable[[], str]]] = []

    def offer(kind: str, begin: int, end: int, text: str) -> None:
        found.append((kind, partial(_replaced, code, ((begin, end, text),))))

    for at in range(1, len(tokens) - 1):
        begin, end, text = tokens[at]
        before, after = tokens[at - 1][2], tokens[at + 1][2]
        if text in _COMPARISONS and _between_values(before, after) and not _in_angles(tokens, at):
            offer("compare", begin, end, _COMPARISONS[text])
        elif text in _LOGIC:
            offer("logic", begin, end, _LOGIC[text])
        elif text in _ARITHMETIC and _between_values(before, after):
            offer("arithmetic", begin, end, _ARITHMETIC[text])
        elif text in _TURNED and after == "(":
            offer("extreme", begin, end, _TURNED[text])
        elif _WHOLE.fullmatch(text) and before not in "[<":
            offer("constant", begin, end, str(int(text) + 1))
            offer("constant", begin, end, str(max(0, int(text) - 1)))
        elif text in ("break", "continue") and after == ";":
            offer("statement", begin, end, "")
        elif text in ("if", "sort") and after == "(" and (close := _closing(tokens, at + 1)) is not None:
            if text == "if":
                offer("branch", tokens[at + 1][0], tokens[close][1], "(false)")
                offer("branch", tokens[at + 1][0], tokens[close][1], "(true)")
            elif tokens[close + 1 : close + 2] and tokens[close + 1][2] == ";":
                offer("call", begin, tokens[close][1], "")
    found += _narrowed(code, tokens)
    return found


def _narrowed(code: str, tokens: Sequence[Token]) -> list[tuple[str, Callable[[], str]]]:
    """Return the changes that make all numbers of 64 bits narrow, and all of double precision."""
    wide = [(begin, end, "int") for begin, end, text in tokens if text in ("int64_t", "uint64_t")]
    for (begin, _, text), (_, end, further) in itertools.pairwise(tokens):
        if text == further == "long":
            wide.append((begin, end, "int"))
    for begin, end, text in tokens:
        if text.lstrip().startswith("#") and re.search(r"define\s+int\s+(?:long long|int64_t|ll)\b", text):
            wide.append((begin, end, ""))
        elif text.lstrip().startswith("#") and "long long" in text:
            wide.append((begin, end, text.replace("long long", "int")))
    real = [(begin, end, "float") for begin, end, text in tokens if text == "double"]
    kinds = (("overflow", wide), ("precision", real))
    return [(kind, partial(_replaced, code, tuple(sorted(places)))) for kind, places in kinds if places]


def _replaced(code: str, places: Sequence[Token]) -> str:
    parts, last = [], 0
    for begin, end, text in places:
        if begin >= last:
            parts += [code[last:begin], text]
            last = end
    return "".join([*parts, code[last:]])


def _between_values(before: str, after: str) -> bool:
    """Return whether an operator stands between two values, by the tokens around it."""
    left = before in (")", "]") or (re.fullmatch(r"[\w.]+", before) is not None and before not in _TYPES | {"return"})
    return (
        left and (after in ("(", "-", "*", "!") or re.fullmatch(r"[\w.']+", after) is not None) and after not in _TYPES
    )


def _in_angles(tokens: Sequence[Token], at: int) -> bool:
    """Return whether a bracket seems to hold the arguments of a template."""
    text, begin = tokens[at][2], tokens[at][0]
    if text not in "<>":
        return False
    close = [token for token in tokens[max(0, at - 4) : at + 5] if token[2] in _TYPES]
    return bool(close) and any(abs(token[0] - begin) < 12 for token in close)


def _closing(tokens: Sequence[Token], at: int) -> int | None:
    """Return the number of the token that closes the bracket ``at``."""
    depth = 0
    for number in range(at, len(tokens)):
        depth += (tokens[number][2] == "(") - (tokens[number][2] == ")")
        if depth == 0:
            return number
    return None
