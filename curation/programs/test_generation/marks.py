"""Which blocks of a program in Python an input makes it enter: what tells inputs apart that have like answers.

A trusted program distinguishes the cases of its problem by its branches. So its source is given a mark at the start of
each block, and a run tells on standard error which were passed. Inputs of a seldom entered block are worth keeping.

Invariants: pure; the marked program reads and prints what the program does. What it does not do: run anything; mark
conditions within expressions.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

_PRELUDE = """
import atexit as _marks_atexit, sys as _marks_sys
_marks = set()
_marks_atexit.register(lambda: _marks_sys.stderr.write("\\nmarks " + " ".join(map(str, sorted(_marks))) + "\\n"))
"""
_TOLD = re.compile(r"\nmarks ([\d ]*)\n\Z")
_BLOCKS = ("body", "orelse", "finalbody")
_MARKED = (ast.If, ast.For, ast.While, ast.FunctionDef, ast.ExceptHandler, ast.Try)


def with_marks(code: str) -> str | None:
    """Return a program in Python that tells which of its blocks it entered; None where it cannot be read."""
    try:
        tree = ast.parse(code)
        number = 0
        for node in [node for node in ast.walk(tree) if isinstance(node, _MARKED)]:
            for name in _BLOCKS:
                block: list[ast.stmt] = getattr(node, name, [])
                if block:
                    block.insert(0, ast.parse(f"_marks.add({number})").body[0])
                    number += 1
        first = sum(1 for _ in _opening(tree.body))
        tree.body[first:first] = ast.parse(_PRELUDE).body
        return ast.unparse(ast.fix_missing_locations(tree)) if number else None
    except (SyntaxError, ValueError, RecursionError):
        return None


def _opening(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Return the statements that must stand first: a docstring, and imports from ``__future__``."""
    opening: list[ast.stmt] = []
    for node in body:
        docstring = not opening and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not docstring and not (isinstance(node, ast.ImportFrom) and node.module == "__future__"):
            break
        opening.append(node)
    return opening


def marks_told(stderr: str) -> str:
    """Return the blocks that a run entered, as one word; empty where it told none.

    Example: ``marks_told("\\nmarks 0 3\\n")`` is ``"0 3"``
    """
    told = _TOLD.search(stderr)
    return told[1] if told is not None else ""
