"""What rules are made of: columns, and polars expressions: literals, the first match, the end of a text, its words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from curation.records import DropReason

STATEMENT = pl.col("statement")
ANSWER = pl.col("answer")
ANY_ROW = pl.lit(True)
"""The gate of a rule whose literals say enough."""


@dataclass(frozen=True, slots=True)
class StatementRule:
    """A format rule: ``evidence`` is evaluated where ``gate`` holds, and is null where the rule does not fire."""

    name: str
    reason: DropReason
    gate: pl.Expr
    evidence: pl.Expr
    needles: Sequence[str] = ()
    """Literals of which the statement must hold one, besides ``gate``; none where any statement will do."""


def contains_any(column: pl.Expr, needles: Sequence[str]) -> pl.Expr:
    """Return whether a text holds any of the literals, whatever the case of their ASCII letters."""
    return column.str.contains_any(list(needles), ascii_case_insensitive=True)


def matched_text(column: pl.Expr, pattern: str, harmless: str | None = None) -> pl.Expr:
    """Return the first match of ``pattern`` once ``harmless`` has been blanked out; null where there is none."""
    text = column if harmless is None else column.str.replace_all(harmless, " ¦ ")
    return text.str.extract(f"({pattern})").str.strip_chars()


def either_text(condition: pl.Expr, text: pl.Expr) -> pl.Expr:
    """Return ``text`` where ``condition`` holds, else null."""
    return pl.when(condition).then(text)


def tail(column: pl.Expr, length: int = 60) -> pl.Expr:
    """Return the end of a text, for evidence about how it ends."""
    return column.str.tail(length)


def tokens(column: pl.Expr) -> pl.Expr:
    """Return a text's numbers and words between single spaces, with one before and behind, for comparing texts whatever
    their typography.
    """
    words_only = (
        column.str.to_lowercase().str.replace_all(r"[^0-9\p{L}.]+", " ").str.replace_all(r"\.([^0-9]|$)", " ${1}")
    )
    spaced = words_only.str.replace_all(r"([0-9]+(?:\.[0-9]+)*)", " ${1} ").str.replace_all(r"\s+", " ")
    return pl.concat_str(pl.lit(" "), spaced.str.strip_chars(), pl.lit(" "))
