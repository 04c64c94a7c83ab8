"""Reads matrices, their sums and products, and vectors as sums of i, j and k."""

from __future__ import annotations

import re

from curation.verify.answers.expr import Expr, add, const, mul, neg, num, rename, replaced, sym, symbols
from curation.verify.answers.forms import Matrix
from curation.verify.answers.grammar import parse_expression
from curation.verify.answers.samevalue import compare_expressions
from curation.verify.answers.tokens import AnswerParseError, Token, split_tokens

Rows = tuple[tuple[Expr, ...], ...]
_DIRECTION = re.compile(r"(?:(?:vec|hat|widehat|overrightarrow|bar|overline|underline)\()?([ijk]|imath|jmath)\)?")
_AXES = {"i": 0, "imath": 0, "j": 1, "jmath": 1, "k": 2}


def read_matrix(tokens: list[Token]) -> Matrix:
    """Return one matrix, or sums and products of matrices and numbers."""
    parts, ops = split_tokens([*tokens], frozenset(("+", "-")))
    total: Rows | None = None
    for op, part in zip(["+", *(token.text for token in ops)], parts, strict=True):
        if not part and total is None:
            continue
        rows = _read_product(part)
        if op == "-":
            rows = tuple(tuple(neg(cell) for cell in row) for row in rows)
        if total is None:
            total = rows
        elif [len(row) for row in total] != [len(row) for row in rows]:
            raise AnswerParseError("matrices of two sizes")
        else:
            total = tuple(
                tuple(add(left, right) for left, right in zip(row, other_row, strict=True))
                for row, other_row in zip(total, rows, strict=True)
            )
    if total is None:
        raise AnswerParseError("no matrix")
    return Matrix(total, frozenset(token.at for token in tokens))


def _read_product(tokens: list[Token]) -> Rows:
    rows: Rows | None = None
    scalar: list[Token] = []
    position = 0
    while position < len(tokens):
        token = tokens[position]
        if token.kind != "env":
            scalar.append(token)
            position += 1
            continue
        end = next((at for at in range(position, len(tokens)) if tokens[at].kind == "endenv"), None)
        if end is None or token.text == "vmatrix" or ("matrix" not in token.text and token.text != "array"):
            raise AnswerParseError(f"environment {token.text}")
        body = tokens[position + 1 : end]
        matrix = _cells(body, token.text)
        rows = matrix if rows is None else _multiply(rows, matrix)
        position = end + 1
    scalar = _trim_brackets([token for token in scalar if token.text != "space"])
    if rows is None:
        raise AnswerParseError("no matrix")
    if scalar:
        factor = parse_expression(scalar)
        rows = tuple(tuple(mul(factor, cell) for cell in row) for row in rows)
    return rows


def _trim_brackets(tokens: list[Token]) -> list[Token]:
    if all(token.text in ("(", ")", "[", "]", "{", "}", "*") for token in tokens):
        return []
    while tokens and tokens[-1].text in ("*", "[", "(", "{"):
        tokens = tokens[:-1]
    for opener, closer in (("(", ")"), ("[", "]"), ("{", "}")):
        while tokens and tokens[-1].text == closer and _count(tokens, closer) > _count(tokens, opener):
            tokens = tokens[:-1]
        while tokens and tokens[0].text == opener and _count(tokens, opener) > _count(tokens, closer):
            tokens = tokens[1:]
    return tokens


def _count(tokens: list[Token], sign: str) -> int:
    return sum(token.text == sign for token in tokens)


def _cells(body: list[Token], environment: str) -> Rows:
    if environment == "array" and body and body[0].text == "{":
        close = next((at for at, token in enumerate(body) if token.text == "}"), 0)
        body = body[close + 1 :]
    lines, _ = split_tokens(body, frozenset(("newline",)))
    rows = tuple(
        tuple(parse_expression(cell) for cell in split_tokens(line, frozenset(("&",)))[0]) for line in lines if line
    )
    if not rows or len({len(row) for row in rows}) != 1:
        raise AnswerParseError("a ragged matrix")
    return rows


def _multiply(left: Rows, right: Rows) -> Rows:
    if len(left[0]) != len(right):
        raise AnswerParseError("matrices that do not multiply")
    return tuple(
        tuple(add(*(mul(row[at], right[at][column]) for at in range(len(right)))) for column in range(len(right[0])))
        for row in left
    )


def components(expr: Expr, size: int = 0) -> tuple[Expr, ...] | None:
    """Return a sum's multiples of i, j and k, zero-padded to ``size``: 2i - 3j is (2, -3). None without a j."""
    axes = {name: _AXES[match.group(1)] for name in symbols(expr) if (match := _DIRECTION.fullmatch(name))}
    if 1 not in axes.values() or len(set(axes.values())) != len(axes):
        return None
    if 0 not in axes.values():  # i was read as the imaginary unit
        expr = replaced(expr, lambda node: sym("i") if node == const("i") else None)
    names = {axis: name for name, axis in axes.items()} | ({0: "i"} if 0 not in axes.values() else {})
    zero = {name: num(0) for name in names.values()}
    coordinates = []
    for axis in range(max(3 if 2 in names else 2, size)):
        coordinates.append(rename(expr, zero | {names[axis]: num(1)}) if axis in names else num(0))
    rebuilt = add(*(mul(coordinate, sym(names[axis])) for axis, coordinate in enumerate(coordinates) if axis in names))
    return tuple(coordinates) if compare_expressions(expr, rebuilt).is_equal else None
