"""Builds rules from polars expressions and Rust regular expressions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from curation.records import DropReason

STATEMENT = pl.col("statement")
ANSWER = pl.col("answer")
ANY_ROW = pl.lit(True)


@dataclass(frozen=True, slots=True)
class StatementRule:
    """A format rule that fires if ``gate`` holds and ``evidence`` is not null."""

    name: str
    reason: DropReason
    evidence: pl.Expr
    gate: pl.Expr = ANY_ROW
    needles: Sequence[str] = ()
    """If given, the statement must contain one of these, ignoring ASCII case."""


def matched_text(column: pl.Expr, pattern: str, harmless: str | None = None) -> pl.Expr:
    """Return the first match of ``pattern`` outside ``harmless``, or null."""
    text = column if harmless is None else column.str.replace_all(harmless, " ¦ ")
    return text.str.extract(f"({pattern})").str.strip_chars()


def either_text(condition: pl.Expr, text: pl.Expr) -> pl.Expr:
    """Return ``text`` if ``condition`` holds, else null."""
    return pl.when(condition).then(text)


def tokens(column: pl.Expr) -> pl.Expr:
    """Return numbers and words between single spaces."""
    words_only = (
        column.str.to_lowercase().str.replace_all(r"[^0-9\p{L}.]+", " ").str.replace_all(r"\.([^0-9]|$)", " ${1}")
    )
    spaced = words_only.str.replace_all(r"([0-9]+(?:\.[0-9]+)*)", " ${1} ").str.replace_all(r"\s+", " ")
    return pl.concat_str(pl.lit(" "), spaced.str.strip_chars(), pl.lit(" "))


LETTERS = "A-Za-zÀ-ɏЀ-ӿ"
"""Letters of six of the seven languages, for a class."""


def either(*patterns: str) -> str:
    """Join expressions into a case-insensitive, `cheap` one."""
    return "(?i)(?:" + "|".join(cheap(pattern) for pattern in patterns) + ")"


_WITH_BOUNDARY = re.compile("[\u0400-\u04ff]")
_TOKEN = re.compile(r"\(\?-u:\\b\)|\[\\s\\S\]|\\(?:[xp]\{\w+\}|.)|\[\^?(?:\\p\{\w+\}|\\.|[^\]\\])+\]|.", re.DOTALL)
_SHORT = {"\\w": f"0-9_{LETTERS}", "\\d": "0-9"}


def cheap(pattern: str) -> str:
    r"""Replace classes by some that compile fast.

    ``\w`` and ``\d`` cover seven languages without hanzi; ``\b`` becomes ASCII and must not be next to an accented
    letter.
    """
    boundary = "" if _WITH_BOUNDARY.search(pattern) else r"(?-u:\b)"

    def plain(match: re.Match[str]) -> str:
        token = match.group()
        if token in ("\\b", r"(?-u:\b)"):
            return boundary
        if token == r"[\s\S]":
            return "(?s-i:.)"
        if token in _SHORT:
            return f"[{_SHORT[token]}]"
        if token in (r"\W", r"\D"):
            return f"(?-i:[^{_SHORT[token.lower()]}])"
        if token in (r"\S", "."):
            return f"(?-i:{token})"
        if token.startswith("[") and len(token) > 1:
            inside = re.sub(r"\\[wd]", lambda short: _SHORT[short.group()], token)
            caseless = token.startswith("[^") and not re.search("[A-Za-z]", re.sub(r"\\p\{\w+\}|\\.", "", token))
            return f"(?-i:{inside})" if caseless else inside
        return token

    return _TOKEN.sub(plain, pattern)
