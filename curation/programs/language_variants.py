"""Asks each problem in every language in which a solution passes all tests within the limit.

Invariants: variants share their group, and have their own ids and the language in ``meta`` under `LANGUAGE`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence

import polars as pl

from curation.records import DROPPED, PROBLEM, Domain, DropReason, problem_id

VERSION = "language_variants@4"

STAGE = "language_variants"

LANGUAGE = "language"
"""Key of ``meta``; `curation.prompts.solving.FENCE` is the same word."""

LINES = {"python": "Write the program in Python 3.", "cpp": "Write the program in C++20."}
"""Lines that name the language."""

FUNCTION_LINE = "Write the function in Python 3."


TIME_FACTORS = {"python": 3.0, "cpp": 1.0}
"""Time limit per language, as a multiple of the problem's."""

SLOWDOWN = 25.0
"""Assumed slowdown of Python, if only C++ solutions are known."""


def languages_of(
    runs: pl.DataFrame, right_outputs: pl.DataFrame, limits: pl.DataFrame, languages: Sequence[str]
) -> pl.DataFrame:
    """Return (problem, language, passed, method) for each possible language.

    A solution in the other language may suffice (`SLOWDOWN`).

    Args:
        runs: voters' `execution_matrix.MEASURED` rows.
        right_outputs: (problem, test, output).
        limits: (problem, time_limit_s).
    """
    judged = runs.join(right_outputs.rename({"output": "right_output"}), on=["problem", "test"], how="inner")
    right = pl.col("valid") & (pl.col("output") == pl.col("right_output"))
    solutions = (
        judged.group_by("problem", "solution", "lang")
        .agg(right.fill_null(False).all().alias("right"), pl.col("cpu_s").max().alias("slowest"))
        .join(limits.select("problem", "time_limit_s"), on="problem")
    )
    slower = {"python": SLOWDOWN, "cpp": 1.0}
    present = set(solutions.select("problem", "lang").iter_rows())
    right_solutions = solutions.filter("right").group_by("problem", "lang").agg(pl.col("slowest").min())
    fastest = {(name, lang): float(slowest) for name, lang, slowest in right_solutions.iter_rows()}
    rows = []
    for name, limit in solutions.select("problem", "time_limit_s").unique("problem").sort("problem").iter_rows():
        for language in languages:
            allowed = float(limit) * TIME_FACTORS[language]
            other = "cpp" if language == "python" else "python"
            seconds, other_seconds = fastest.get((name, language)), fastest.get((name, other))
            if (name, language) in present:
                if seconds is not None and seconds <= allowed:
                    rows.append((name, language, True, f"a solution takes {seconds:.2f} of {allowed:g} s"))
            elif other_seconds is not None and other_seconds * slower[language] <= allowed:
                rows.append((name, language, False, f"{other} takes {other_seconds:.2f} s, {allowed:g} s allowed"))
    schema = {"problem": pl.String, "language": pl.String, "passed": pl.Boolean, "method": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row")


def make_variants(
    problems: pl.DataFrame, supported: pl.DataFrame, functions: Collection[str] = ()
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return variants (`PROBLEM`), and problems without any (`DROPPED`), in order.

    Args:
        functions: ids of function problems.
    """
    languages: dict[str, list[tuple[str, bool]]] = {}
    for name, language, passed in supported.select("problem", "language", "passed").iter_rows():
        languages.setdefault(name, []).append((language, passed))
    rows, asked = [], set[str]()
    for row in problems.iter_rows(named=True):
        is_function = row["id"] in functions
        for language, passed in languages.get(row["id"], ()):
            if is_function and language != "python":
                continue
            asked.add(row["id"])
            statement = variant_statement(row["statement"], FUNCTION_LINE if is_function else LINES[language])
            variant = {
                "id": problem_id(statement, None, Domain.CODE),
                "statement": statement,
                "raw_statement": row["raw_statement"] or row["statement"],
                "meta": variant_meta(row["meta"], language, passed=passed),
            }
            rows.append({**row, **variant})
    dropped = problems.filter(~pl.col("id").is_in(list(asked))).with_columns(
        pl.lit(STAGE).alias("stage"),
        pl.lit(DropReason.NO_SOLUTION.value).alias("reason"),
        pl.lit("no solution passes every test within the limit of a language asked for").alias("evidence"),
    )
    return pl.DataFrame(rows, schema=PROBLEM), dropped.select(DROPPED.names())


def variant_statement(statement: str, line: str) -> str:
    """Append the line that names the language."""
    return f"{statement.rstrip()}\n\n{line}"


def variant_meta(meta: str | None, language: str, *, passed: bool) -> str:
    """Return a variant's ``meta``.

    Args:
        passed: whether a solution in it passes.
    """
    return json.dumps({**json.loads(meta or "{}"), LANGUAGE: language, "solved_in_it": passed}, ensure_ascii=False)
