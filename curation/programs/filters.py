"""Drops problems that do not ask for a program with input and output (docs/explanation/format-filter.md)."""

from __future__ import annotations

import re

import polars as pl

from curation.records import DROPPED, DropReason, SourceError
from curation.verify.programs.tables import build_problem

VERSION = "code_filters@3"

STAGE = "programs"

MIN_LETTERS = 40
"""Min letters of a statement."""

_PICTURE = re.compile(r"<img\b|!\[[^\]]*\]\(|\\includegraphics|\[image\]|<image>", re.IGNORECASE)
"""Marks of a picture, not words about one."""
_SPACES = re.compile(r"[ \t]+\n")
_BLANK = re.compile(r"\n{3,}")
_BREAKS = re.compile(r"<br\s*/?>|</p>\s*", re.IGNORECASE)
_TAGS = re.compile(r"</?(?:p|span|div|font|center|strong|em|b|i|u)(?:\s[^<>]*)?>", re.IGNORECASE)
_CREDITS = re.compile(r"^\s*(?:Problem (?:author|credit)s?|Source|Author)\s*:.*$", re.IGNORECASE | re.MULTILINE)
_FENCE = re.compile(r"(^```.*?^```[^\n]*$)", re.DOTALL | re.MULTILINE)


def clean_statement(text: str) -> str:
    """Remove tags, credits and idle blank space outside fenced blocks."""
    blocks = _FENCE.split(text.replace("\r\n", "\n"))
    for index in range(0, len(blocks), 2):
        block = _TAGS.sub("", _BREAKS.sub("\n", blocks[index]))
        block = _SPACES.sub("\n", _CREDITS.sub("", block))
        blocks[index] = _BLANK.sub("\n\n", block)
    return "".join(blocks).strip()


def drop_reason(statement: str | None, about: dict[str, object]) -> tuple[DropReason, str] | None:
    """Return the reason to drop a problem with the evidence, or None.

    Args:
        about: `JUDGING` columns, ``no_function``, ``not_usable``, and counts of usable ``solutions`` and ``tests``.
    """
    text = statement or ""
    letters = sum(letter.isalpha() for letter in text)
    if letters < MIN_LETTERS:
        return DropReason.MISSING_STATEMENT, f"{letters} letters"
    if about["interactive"]:
        return DropReason.INTERACTIVE, "the source marks it as interactive"
    if about["files"]:
        return DropReason.NEEDS_FILES, "the source names files"
    if about["no_function"]:
        return DropReason.ASKS_FUNCTION, str(about["no_function"])
    match = _PICTURE.search(text)
    if about["figures"] or match:
        return DropReason.MISSING_FIGURE, match[0] if match else "the source marks it as showing pictures"
    if about["not_usable"]:
        return DropReason.SEVERAL_OUTPUTS, str(about["not_usable"])
    if not about["solutions"]:
        return DropReason.NO_SOLUTION, "no solution in Python or C++ that is not known to be wrong"
    if not about["tests"]:
        return DropReason.TOO_FEW_TESTS, "no test"
    return None


def _no_function(name: str, tests: list[tuple[str, str | None]], judging: dict[str, object]) -> str | None:
    function = judging["function"]
    if function is None or judging["interactive"] or judging["files"]:
        return None
    try:
        build_problem(name, tests, judging)
    except SourceError:
        return f"the function {function}: its tests are no calls, with arguments and results as JSON"
    return None


def filter_programs(
    problems: pl.DataFrame, tests: pl.DataFrame, solutions: pl.DataFrame, judging: pl.DataFrame
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return kept rows (`PROBLEM`) and dropped ones (`DROPPED`), in order.

    Args:
        judging: `JUDGING`, optionally with ``not_usable``.
    """
    usable = solutions.filter(pl.col("right").fill_null(True))
    counts = {
        name: dict(table.group_by("problem").len().iter_rows())
        for name, table in (("solutions", usable), ("tests", tests))
    }
    rules = {row["problem"]: row for row in judging.iter_rows(named=True)}
    pairs = {
        str(name): list(zip(inputs, outputs, strict=True))
        for name, inputs, outputs in tests.group_by("problem").agg("input", "output").iter_rows()
    }
    drops = []
    for name, statement in problems.select("id", "statement").iter_rows():
        about = {"not_usable": None, **rules[name]} | {key: count.get(name, 0) for key, count in counts.items()}
        about["no_function"] = _no_function(name, pairs.get(name, []), rules[name])
        drops.append(drop_reason(statement, about))
    cleaned = [None if text is None else clean_statement(text) for text in problems["statement"]]
    frame = problems.with_columns(
        pl.lit(STAGE).alias("stage"),
        pl.Series("reason", [drop[0].value if drop else None for drop in drops], pl.String),
        pl.Series("evidence", [drop[1] if drop else None for drop in drops], pl.String),
        pl.Series("cleaned", cleaned, pl.String),
    )
    dropped = frame.filter(pl.col("reason").is_not_null()).select(DROPPED.names())
    changed = pl.col("cleaned") != pl.col("statement")
    kept = frame.filter(pl.col("reason").is_null()).with_columns(
        pl.when(changed).then("statement").otherwise("raw_statement").alias("raw_statement"),
        pl.col("cleaned").alias("statement"),
    )
    return kept.select(problems.columns), dropped
