"""Print a problem's solutions on its tests as a table, for `goldilocks explain`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from curation.verify.programs.toolchain import STANDARDS
from flows.run.lookup import rows_of
from flows.stages.base import TESTS_TABLE

_LETTERS = {"TLE": "T", "MLE": "M", "RTE": "R", "CE": "C", "OLE": "O", "skipped": "-"}
_MEANINGS = {
    "=": "the output that the test wants",
    ".": "another output",
    "T": "out of time",
    "M": "out of memory",
    "R": "crashed",
    "C": "not compiled",
    "O": "too much output",
    "-": "not run after that",
    "X": "failed",
    "?": "not known",
}
_MAX_TESTS = 60


def execution_matrix_lines(folder: Path, matrix: Path, name: str) -> Iterator[str]:
    """Yield the solutions, and each test's results and decision.

    Args:
        folder: of the tests stage.
        matrix: of the execution matrix, used until the tests stage has run.
    """
    is_decided = (folder / "runs").is_dir()
    runs = rows_of(folder if is_decided else matrix, "runs", name, "problem")
    if runs.is_empty():
        return
    decisions = {row["test"]: row for row in rows_of(folder, "decisions", name, "problem").iter_rows(named=True)}
    tests = rows_of(folder, TESTS_TABLE, name, "problem")
    origins = {row["index"]: row["origin"] for row in tests.iter_rows(named=True)}
    solutions = runs.group_by("solution").agg(pl.col("lang", "right", "standard").first()).sort("solution")
    words = {True: "right", False: "wrong", None: "unknown"}
    for number, (index, lang, right, standard) in enumerate(solutions.iter_rows()):
        older = f", compiled as {standard}" if standard not in (None, STANDARDS[0]) else ""
        yield f"solution {number % 10}: {index} of the source, {lang}{older}, labelled {words[right]}"
    yield f"{'test':>6}  {''.join(str(i % 10) for i in range(solutions.height))}"
    order = solutions["solution"].to_list()
    used: set[str] = set()
    for test in sorted(runs["test"].unique())[:_MAX_TESTS]:
        decision = decisions.get(test)
        expected = decision["output"] if decision is not None else None
        own = {row["solution"]: row for row in runs.filter(pl.col("test") == test).iter_rows(named=True)}
        line = "".join(_letter(own.get(solution), expected) for solution in order)
        used.update(line)
        decision_text = "" if decision is None else f"{decision['decision']}: {decision['why']}, "
        evidence = decision.get("evidence") if decision is not None else None
        decision_text += f"{evidence}, " if evidence else ""
        votes = "" if decision is None else f"{decision['agreeing']} of {decision['votes']} votes"
        origin = f", {origins[test]}" if origins.get(test) in ("mutation", "model") else ""
        yield f"{test:>6}  {line}  {decision_text}{votes}{origin}"
    if runs["test"].n_unique() > _MAX_TESTS:
        yield f"… and {runs['test'].n_unique() - _MAX_TESTS} more tests"
    yield ", ".join(f"{letter} {meaning}" for letter, meaning in _MEANINGS.items() if letter in used)
    for row in rows_of(folder, "problems", name, "problem").iter_rows(named=True):
        caught = f"{row['wrong_caught']} of {row['wrong_solutions']} known wrong solutions caught"
        yield f"{row['evidence']}; {row['voting']} of {row['solutions']} solutions vote; {caught}"


def _letter(row: dict[str, object] | None, expected: str | None) -> str:
    if row is None:
        return "?"
    if not row["valid"]:
        return _LETTERS.get(str(row["ended"]), "X")
    return "=" if (row["output"] == expected if expected is not None else row["expected"]) else "."
