"""Makes mutants of right programs, each with a typical mistake (DeMillo, Lipton and Sayward 1978).

Invariants: pure; determined by program, count and seed; all mutants differ.
"""

from __future__ import annotations

import ast
import hashlib
import itertools
import random
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

Change = tuple[str, Callable[[], str]]
"""A kind, and a function that makes the program."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A changed program; ``kind`` is ``compare``, ``constant``, ``branch`` …"""

    code: str
    kind: str


def mutants_of(code: str, lang: str, count: int, seed: str) -> list[Mutant]:
    """Return up to ``count`` mutants; none for unreadable programs."""
    draw = random.Random(int.from_bytes(hashlib.blake2b(seed.encode(), digest_size=8).digest(), "big"))
    by_kind: dict[str, list[Callable[[], str]]] = {}
    for kind, change in (python_changes if lang == "python" else cpp_changes)(code):
        by_kind.setdefault(kind, []).append(change)
    for changes in by_kind.values():
        draw.shuffle(changes)
    kinds = sorted(by_kind)
    draw.shuffle(kinds)
    seen = {code}
    mutants: list[Mutant] = []
    while len(mutants) < count and any(by_kind.values()):
        for kind in kinds:
            if by_kind[kind] and len(mutants) < count:
                changed = by_kind[kind].pop()()
                if changed not in seen:
                    seen.add(changed)
                    mutants.append(Mutant(changed, kind))
    return mutants


_PYTHON_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
}
_WIDTH = 1 << 31


def python_changes(code: str) -> list[Change]:
    """Return the program's possible changes (`Change`)."""
    tree = _parsed(code)
    if tree is None:
        return []
    return [
        (kind, partial(_changed, code, index, number))
        for index, node in enumerate(ast.walk(tree))
        for number, (kind, _) in enumerate(_node_changes(node))
    ]


def _parsed(code: str) -> ast.Module | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(code)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def _changed(code: str, index: int, number: int) -> str:
    """Return the changed program, or the original if unwritable."""
    tree = ast.parse(code)
    node = next(node for at, node in enumerate(ast.walk(tree)) if at == index)
    list(_node_changes(node))[number][1]()
    try:
        return ast.unparse(ast.fix_missing_locations(tree)) + "\n"
    except (RecursionError, ValueError):
        return code


def _node_changes(node: ast.AST) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield the changes that a node allows, each made in place."""
    if isinstance(node, ast.Compare):
        for at, operator in enumerate(node.ops):
            if type(operator) in _PYTHON_COMPARISONS:
                yield "compare", partial(node.ops.__setitem__, at, _PYTHON_COMPARISONS[type(operator)]())
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        yield "constant", partial(setattr, node, "value", node.value + 1)
        yield "constant", partial(setattr, node, "value", node.value - 1)
    elif isinstance(node, ast.BoolOp):
        yield "logic", partial(setattr, node, "op", ast.And() if isinstance(node.op, ast.Or) else ast.Or())
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        yield "arithmetic", partial(setattr, node, "op", ast.Sub() if isinstance(node.op, ast.Add) else ast.Add())
    elif isinstance(node, ast.Name) and node.id in _TURNED:
        yield "extreme", partial(setattr, node, "id", _TURNED[node.id])
    elif isinstance(node, ast.If | ast.IfExp):
        yield "branch", partial(setattr, node, "test", ast.Constant(False))
        yield "branch", partial(setattr, node, "test", ast.Constant(True))
    elif isinstance(node, ast.Call):
        yield from _call_changes(node)
    for name in ("body", "orelse"):
        block: list[ast.stmt] = body if isinstance(body := getattr(node, name, None), list) else []
        for at, statement in enumerate(block):
            if isinstance(statement, ast.Expr | ast.AugAssign | ast.Break | ast.Continue):
                yield "statement", partial(block.__setitem__, at, ast.Pass())
            if isinstance(statement, ast.AugAssign):
                yield "overflow", partial(setattr, statement, "value", _wrapped(statement.value))


def _call_changes(node: ast.Call) -> Iterator[tuple[str, Callable[[], None]]]:
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    if name == "range" and node.args:
        end = min(1, len(node.args) - 1)
        yield "range", partial(node.args.__setitem__, end, ast.BinOp(node.args[end], ast.Sub(), ast.Constant(1)))
        if end:
            yield "range", partial(node.args.__setitem__, 0, ast.BinOp(node.args[0], ast.Add(), ast.Constant(1)))
    if name in ("sorted", "set", "abs") and len(node.args) == 1:
        yield "call", partial(setattr, node, "func", ast.Name("list" if name != "abs" else "int", ast.Load()))


def _wrapped(value: ast.expr) -> ast.expr:
    """Return an expression that wraps at 32 bits."""
    shifted = ast.BinOp(value, ast.Add(), ast.Constant(_WIDTH))
    return ast.BinOp(
        ast.BinOp(shifted, ast.Mod(), ast.Constant(2 * _WIDTH)), ast.Sub(), ast.Constant(_WIDTH)
    )  # fmt: skip


_TOKEN = re.compile(
    r"//[^\n]*|/\*.*?\*/|^[ \t]*#(?:[^\n\\]|\\.|\\\n)*|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'"
    r"|[A-Za-z_]\w*|\.?\d(?:[\w.']|[eE][+-])*|<<=|>>=|<=>|->|\+\+|--|[-+*/%&|^=!<>]=|&&|\|\||<<|>>|::|\S",
    re.DOTALL | re.MULTILINE,
)
_CPP_COMPARISONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
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
"""Its begin, end and text."""


def cpp_changes(code: str) -> list[Change]:
    """Return the program's possible changes (`Change`)."""
    tokens = [(m.start(), m.end(), m[0]) for m in _TOKEN.finditer(code) if not m[0].lstrip().startswith(("//", "/*"))]
    changes: list[Change] = []

    def offer(kind: str, begin: int, end: int, text: str) -> None:
        changes.append((kind, partial(_replaced, code, ((begin, end, text),))))

    for at in range(1, len(tokens) - 1):
        begin, end, text = tokens[at]
        before, after = tokens[at - 1][2], tokens[at + 1][2]
        if text in _CPP_COMPARISONS and _between_values(before, after) and not _in_angles(tokens, at):
            offer("compare", begin, end, _CPP_COMPARISONS[text])
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
    changes += _narrowed(code, tokens)
    return changes


def _narrowed(code: str, tokens: Sequence[Token]) -> list[Change]:
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
    return [
        (kind, partial(_replaced, code, tuple(sorted(replacements)))) for kind, replacements in kinds if replacements
    ]


def _replaced(code: str, replacements: Sequence[Token]) -> str:
    chunks, last = [], 0
    for begin, end, text in replacements:
        if begin >= last:
            chunks += [code[last:begin], text]
            last = end
    return "".join([*chunks, code[last:]])


def _between_values(before: str, after: str) -> bool:
    left = before in (")", "]") or (re.fullmatch(r"[\w.]+", before) is not None and before not in _TYPES | {"return"})
    return (
        left and (after in ("(", "-", "*", "!") or re.fullmatch(r"[\w.']+", after) is not None) and after not in _TYPES
    )


def _in_angles(tokens: Sequence[Token], at: int) -> bool:
    text, begin = tokens[at][2], tokens[at][0]
    if text not in "<>":
        return False
    close = [token for token in tokens[max(0, at - 4) : at + 5] if token[2] in _TYPES]
    return bool(close) and any(abs(token[0] - begin) < 12 for token in close)


def _closing(tokens: Sequence[Token], at: int) -> int | None:
    depth = 0
    for number in range(at, len(tokens)):
        depth += (tokens[number][2] == "(") - (tokens[number][2] == ")")
        if depth == 0:
            return number
    return None
