"""Makes mutants of right programs, each with a typical mistake (DeMillo, Lipton and Sayward 1978).

Invariants: pure; determined by program, count and seed; all mutants differ.
"""

from __future__ import annotations

import ast
import hashlib
import io
import itertools
import random
import re
import tokenize
import warnings
from collections.abc import Iterator, Sequence

Token = tuple[int, int, str]
"""Where it begins and ends, and its text."""

Change = tuple[str, tuple[Token, ...]]
"""A kind (``compare``, ``constant``, ``branch`` …), and what is replaced by which texts."""

_COMPARISONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
_LOGIC = {"&&": "||", "||": "&&", "and": "or", "or": "and"}
_ARITHMETIC = {"+": "-", "-": "+"}
_TURNED = {"min": "max", "max": "min"}
_CALLS = {"sorted": "list", "set": "list", "abs": "int"}
_WHOLE = re.compile(r"\d{1,18}")
_WIDTH = 1 << 31
_CPP_TOKEN = re.compile(
    r"//[^\n]*|/\*.*?\*/|^[ \t]*#(?:[^\n\\]|\\.|\\\n)*|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'"
    r"|[A-Za-z_]\w*|\.?\d(?:[\w.']|[eE][+-])*|<<=|>>=|<=>|->|\+\+|--|[-+*/%&|^=!<>]=|&&|\|\||<<|>>|::|\S",
    re.DOTALL | re.MULTILINE,
)
_CPP_TYPES = frozenset(
    "int long short char double float bool auto unsigned signed string void const size_t ll pii pair vector set map "
    "queue deque stack array tuple multiset unordered_map unordered_set priority_queue greater less function template "
    "numeric_limits static_cast reinterpret_cast bitset typename struct class hash complex optional".split()
)


def mutants_of(code: str, lang: str, count: int, seed: str) -> dict[str, str]:
    """Return up to ``count`` mutants with the kinds of their changes; none for unreadable programs."""
    draw = random.Random(int.from_bytes(hashlib.blake2b(seed.encode(), digest_size=8).digest(), "big"))
    by_kind: dict[str, list[tuple[Token, ...]]] = {}
    for kind, places in _python_changes(code) if lang == "python" else _cpp_changes(code):
        by_kind.setdefault(kind, []).append(places)
    for changes in by_kind.values():
        draw.shuffle(changes)
    kinds = sorted(by_kind)
    draw.shuffle(kinds)
    mutants: dict[str, str] = {}
    while len(mutants) < count and any(by_kind.values()):
        for kind in kinds:
            if by_kind[kind] and len(mutants) < count:
                changed = _replaced(code, by_kind[kind].pop())
                if changed != code and (lang != "python" or _is_python(changed)):
                    mutants.setdefault(changed, kind)
    return mutants


def _replaced(code: str, places: Sequence[Token]) -> str:
    parts, last = [], 0
    for begin, end, text in places:
        if begin >= last:
            parts += [code[last:begin], text]
            last = end
    return "".join([*parts, code[last:]])


def _simple_changes(tokens: Sequence[Token], at: int) -> Iterator[Change]:
    """Yield the changes to a token that both languages have."""
    begin, end, text = tokens[at]
    is_operator = _is_value_before(tokens[at - 1][2]) and _is_value_after(tokens[at + 1][2])
    table = {**_COMPARISONS, **_ARITHMETIC} if is_operator else {}
    if text in table:
        yield "compare" if text in _COMPARISONS else "arithmetic", ((begin, end, table[text]),)
    elif text in _LOGIC:
        yield "logic", ((begin, end, _LOGIC[text]),)
    elif text in _TURNED and tokens[at + 1][2] == "(":
        yield "extreme", ((begin, end, _TURNED[text]),)
    elif _WHOLE.fullmatch(text):
        yield "constant", ((begin, end, str(int(text) + 1)),)
        yield "constant", ((begin, end, str(max(0, int(text) - 1))),)


def _is_value_before(text: str) -> bool:
    return text in (")", "]") or (re.fullmatch(r"[\w.]+", text) is not None and text not in _CPP_TYPES | {"return"})


def _is_value_after(text: str) -> bool:
    return text in ("(", "-", "*", "!") or re.fullmatch(r"[\w.']+", text) is not None


def _python_changes(code: str) -> Iterator[Change]:
    """Yield the program's possible changes."""
    if not _is_python(code):
        return
    starts = [0, *itertools.accumulate(map(len, code.splitlines(keepends=True)))]
    tokens: list[Token] = [(0, 0, "\n")]
    for kind, text, (row, column), (end_row, end_column), _ in tokenize.generate_tokens(io.StringIO(code).readline):
        if kind in (tokenize.NAME, tokenize.NUMBER, tokenize.OP, tokenize.NEWLINE):
            text = "\n" if kind == tokenize.NEWLINE else text
            tokens.append((starts[row - 1] + column, starts[end_row - 1] + end_column, text))
    for at in range(1, len(tokens) - 1):
        begin, end, text = tokens[at]
        yield from _simple_changes(tokens, at)
        if tokens[at - 1][2] in ("\n", ":", ";"):
            yield from _statement_changes(code, tokens, at)
        if text in ("if", "elif"):
            close = _closing(tokens, at + 1, (":", "else"))
            condition = tokens[at + 1][0], tokens[close - 1][1]
            yield "branch", ((*condition, " False"),)
            yield "branch", ((*condition, " True"),)
        elif text == "range" and tokens[at + 1][2] == "(":
            comma = _closing(tokens, at + 2, (",",))
            last = comma if tokens[comma][2] != "," else _closing(tokens, comma + 1, (",",))
            yield "range", ((tokens[last][0], tokens[last][0], " - 1"),)
            if last != comma:
                yield "range", ((tokens[at + 2][0], tokens[at + 2][0], "1 + "),)
        elif text in _CALLS and tokens[at + 1][2] == "(":
            yield "call", ((begin, end, _CALLS[text]),)


def _statement_changes(code: str, tokens: Sequence[Token], at: int) -> Iterator[Change]:
    """Yield the changes to a statement as a whole: it is left out, or adds a number of 32 bits."""
    line = tokens[at : _closing(tokens, at, ("\n", ";"))]
    words = [text for _, _, text in line]
    begin, end = tokens[at][0], line[-1][1] if line else tokens[at][1]
    update = next((place for place, text in enumerate(words) if re.fullmatch(r"(?!==|<=|>=|!=).+=", text)), None)
    if words in (["break"], ["continue"]) or update is not None or (words[1:2] in (["("], ["."]) and "=" not in words):
        yield "statement", ((begin, end, "pass"),)
    if update is not None:
        value = line[update + 1][0]
        wrapped = f"(({code[value:end]}) + {_WIDTH}) % {2 * _WIDTH} - {_WIDTH}"
        yield "overflow", ((value, end, wrapped),)


def _is_python(code: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(code)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
    return True


def _cpp_changes(code: str) -> Iterator[Change]:
    """Yield the program's possible changes."""
    found = ((match.start(), match.end(), match[0]) for match in _CPP_TOKEN.finditer(code))
    tokens = [token for token in found if not token[2].lstrip().startswith(("//", "/*"))]
    for at in range(1, len(tokens) - 1):
        begin, _, text = tokens[at]
        before, after = tokens[at - 1][2], tokens[at + 1][2]
        is_in_type = after in _CPP_TYPES or _in_angles(tokens, at) or (_WHOLE.match(text) and before in "[<")
        if not is_in_type:
            yield from _simple_changes(tokens, at)
        if text in ("break", "continue") and after == ";":
            yield "statement", ((begin, tokens[at][1], ""),)
        elif text in ("if", "sort") and after == "(":
            close = _closing(tokens, at + 2, (")",))
            end = tokens[close][1]
            if text == "if":
                yield "branch", ((tokens[at + 1][0], end, "(false)"),)
                yield "branch", ((tokens[at + 1][0], end, "(true)"),)
            elif tokens[close + 1 : close + 2] and tokens[close + 1][2] == ";":
                yield "call", ((begin, end, ""),)
    yield from _narrowed(tokens)


def _narrowed(tokens: Sequence[Token]) -> Iterator[Change]:
    """Yield the changes to 32-bit integers and to single precision."""
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
    for kind, places in (("overflow", wide), ("precision", real)):
        if places:
            yield kind, tuple(sorted(places))


def _in_angles(tokens: Sequence[Token], at: int) -> bool:
    begin, _, text = tokens[at]
    near = tokens[max(0, at - 4) : at + 5] if text in "<>" else ()
    return any(token[2] in _CPP_TYPES and abs(token[0] - begin) < 12 for token in near)


def _closing(tokens: Sequence[Token], at: int, ends: Sequence[str]) -> int:
    """Return the next of ``ends`` outside brackets, or the bracket that closes before it."""
    depth = 0
    for number in range(at, len(tokens) - 1):
        text = tokens[number][2]
        if depth == 0 and (text in ends or text in (")", "]", "}")):
            return number
        depth += (text in ("(", "[", "{")) - (text in (")", "]", "}"))
    return len(tokens) - 1
