"""Hides code of figures and tables from the rules.

Invariants: code is put back byte for byte; code that only loads a picture, is very short or never ends stays.
"""

from __future__ import annotations

import json
import re

import polars as pl

FIGURE = "\ue000"
"""A private use character in place of code."""

NEEDLES = ("[asy]", "\\begin{asy}", "picture}", "\\begin{circuitikz}", "\\begin{tikzcd}", "\\begin{tabular", "<svg")
MIN_CODE = 20
"""Characters; shorter code draws nothing."""

_ENVIRONMENTS = "asy|tikzpicture|pspicture|picture|circuitikz|tikzcd|tabular[x*]?"
_CODE = re.compile(
    r"\[asy\](?P<asy>[\s\S]*?)\[/asy\]|<svg\b(?P<svg>[\s\S]*?)</svg>"
    rf"|\\begin\{{(?P<name>{_ENVIRONMENTS})\}}(?P<inside>(?:(?!\\begin\{{(?P=name)\}})[\s\S])*?)\\end\{{(?P=name)\}}"
)
_LOADS = re.compile(r"\\includegraphics|\bgraphic\s*\(|<image\b")
_KINDS = {"asy": "asymptote", "svg": "svg", "pspicture": "pstricks", "picture": "latex"}


def take_out(work: pl.DataFrame) -> tuple[pl.DataFrame, dict[int, list[str]]]:
    """Replace code by `FIGURE`; return rows, and code by ``_at``."""
    candidates = work.select("_at", "statement").filter(
        pl.col("statement").str.contains_any(list(NEEDLES))
        & pl.col("statement").str.contains(FIGURE, literal=True).not_()
    )
    taken: dict[int, list[str]] = {}
    bare: dict[int, str] = {}
    for at, statement in candidates.iter_rows():
        codes: list[str] = []
        text = _CODE.sub(lambda match, codes=codes: _hidden(match, codes), statement)  # type: ignore[misc]
        if codes:
            taken[at], bare[at] = codes, text
    if not taken:
        return work, taken
    changes = pl.DataFrame({"_at": list(bare), "statement": list(bare.values())}, schema_overrides={"_at": pl.UInt32})
    return work.update(changes, on="_at"), taken


def _hidden(match: re.Match[str], codes: list[str]) -> str:
    inside = match["asy"] or match["svg"] or match["inside"] or ""
    if len(inside.strip()) < MIN_CODE or _LOADS.search(inside):
        return match.group()
    codes.append(match.group())
    return FIGURE


def put_back(statements: pl.Series, taken: dict[int, list[str]]) -> pl.Series:
    """Restore code, in the order of `take_out`'s frame."""
    if not taken:
        return statements
    texts = statements.to_list()
    for at, codes in taken.items():
        rest = iter(codes)
        texts[at] = re.sub(FIGURE, lambda match, rest=rest: next(rest, match.group()), texts[at])  # type: ignore[misc]
    return pl.Series(statements.name, texts, pl.String)


def marked(meta: str | None, codes: list[str]) -> str:
    """Add ``figure_code``, the kinds of code, to ``meta``.

    >>> marked('{"level": 3}', ["[asy]draw((0,0)--(1,1));[/asy]"])
    '{"level": 3, "figure_code": ["asymptote"]}'
    """
    table = json.loads(meta) if meta else None
    if not isinstance(table, dict):
        table = {} if table is None else {"meta": table}
    return json.dumps({**table, "figure_code": list(dict.fromkeys(map(_kind, codes)))}, ensure_ascii=False)


def _kind(code: str) -> str:
    match = _CODE.match(code)
    name = (match["name"] if match else None) or ("svg" if code.startswith("<svg") else "asy")
    return _KINDS.get(name, "tabular" if name.startswith("tabular") else "tikz")
