"""Changes of one place in a Python program, found in its syntax tree (`mutants`)."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterator
from functools import partial

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
}
_TURNED = {"min": "max", "max": "min"}
_WIDTH = 1 << 31


def python_changes(code: str) -> list[tuple[str, Callable[[], str]]]:
    """Return the changes that a program has places for: their kind, and what makes the changed program.

    Nothing where it is not Python that this interpreter reads.
    """
    tree = _parsed(code)
    if tree is None:
        return []
    found: list[tuple[str, Callable[[], str]]] = []
    for place, node in enumerate(ast.walk(tree)):
        found += [(kind, partial(_changed, code, place, number)) for number, (kind, _) in enumerate(_ways(node))]
    return found


def _parsed(code: str) -> ast.Module | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(code)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


def _changed(code: str, place: int, number: int) -> str:
    """Return the program with one change, the program itself where it cannot be written."""
    tree = ast.parse(code)
    node = next(node for at, node in enumerate(ast.walk(tree)) if at == place)
    list(_ways(node))[number][1]()
    try:
        return ast.unparse(ast.fix_missing_locations(tree)) + "\n"
    except (RecursionError, ValueError):
        return code


def _ways(node: ast.AST) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield the changes that a node allows, each with what does it in place."""
    if isinstance(node, ast.Compare):
        for at, operator in enumerate(node.ops):
            if type(operator) in _COMPARISONS:
                yield "compare", partial(node.ops.__setitem__, at, _COMPARISONS[type(operator)]())
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
        yield from _ways_of_call(node)
    for name in ("body", "orelse"):
        block: list[ast.stmt] = body if isinstance(body := getattr(node, name, None), list) else []
        for at, statement in enumerate(block):
            if isinstance(statement, ast.Expr | ast.AugAssign | ast.Break | ast.Continue):
                yield "statement", partial(block.__setitem__, at, ast.Pass())
            if isinstance(statement, ast.AugAssign):
                yield "overflow", partial(setattr, statement, "value", _wrapped(statement.value))


def _ways_of_call(node: ast.Call) -> Iterator[tuple[str, Callable[[], None]]]:
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    if name == "range" and node.args:
        end = min(1, len(node.args) - 1)
        yield "range", partial(node.args.__setitem__, end, ast.BinOp(node.args[end], ast.Sub(), ast.Constant(1)))
        if end:
            yield "range", partial(node.args.__setitem__, 0, ast.BinOp(node.args[0], ast.Add(), ast.Constant(1)))
    if name in ("sorted", "set", "abs") and len(node.args) == 1:
        yield "call", partial(setattr, node, "func", ast.Name("list" if name != "abs" else "int", ast.Load()))


def _wrapped(value: ast.expr) -> ast.expr:
    """Return an expression whose whole numbers wrap at 32 bits, as those of other languages do."""
    shifted = ast.BinOp(value, ast.Add(), ast.Constant(_WIDTH))
    return ast.BinOp(
        ast.BinOp(shifted, ast.Mod(), ast.Constant(2 * _WIDTH)), ast.Sub(), ast.Constant(_WIDTH)
    )  # fmt: skip
