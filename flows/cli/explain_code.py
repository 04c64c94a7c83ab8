"""What `goldilocks explain` shows of a code problem besides its way through the filters: its matrix and its twins.

The matrix has a line per test and a column per solution: ``=`` the output that the test wants, ``.`` another one, and
the letters of what went wrong; below it stands what those that occur mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl
from rich.console import Console

from flows.run.run_folder import Run

_LETTERS = {"TLE": "T", "MLE": "M", "RTE": "R", "CE": "C", "OLE": "O", "spared": "-"}
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
_SHOWN = 60
"""Tests that are printed; the folder holds all."""


def print_matrix(console: Console, run: Run, name: str) -> None:
    """The solutions, the tests with what each solution gave, and what was decided."""
    folder = run.where("tests")
    finished = (folder / "runs").is_dir()
    runs = _rows(folder / "runs" if finished else run.where("matrix") / "runs", name)
    if runs.is_empty():
        return
    decisions = {row["test"]: row for row in _rows(folder / "decisions", name).iter_rows(named=True)}
    origins = dict(_rows(folder / "tests", name).select("index", "origin").iter_rows()) if finished else {}
    solutions = runs.group_by("solution").agg(pl.col("lang").first(), pl.col("right").first()).sort("solution")
    words = {True: "right", False: "wrong", None: "unknown"}
    for number, (index, lang, right) in enumerate(solutions.iter_rows()):
        _say(console, f"  solution {number % 10}: {index} of the source, {lang}, labelled {words[right]}")
    _say(console, f"  {'test':>6}  {''.join(str(i % 10) for i in range(solutions.height))}")
    order = solutions["solution"].to_list()
    used: set[str] = set()
    for test in sorted(runs["test"].unique())[:_SHOWN]:
        decision = decisions.get(test)
        wanted = decision["output"] if decision is not None else None
        own = {row["solution"]: row for row in runs.filter(pl.col("test") == test).iter_rows(named=True)}
        line = "".join(_letter(own.get(solution), wanted) for solution in order)
        used.update(line)
        said = "" if decision is None else f"{decision['decision']}: {decision['why']}, "
        votes = "" if decision is None else f"{decision['agreeing']} of {decision['votes']} votes"
        origin = f", {origins[test]}" if origins.get(test) in ("mutation", "model") else ""
        _say(console, f"  {test:>6}  {line}  {said}{votes}{origin}")
    if runs["test"].n_unique() > _SHOWN:
        _say(console, f"  … and {runs['test'].n_unique() - _SHOWN} more tests")
    _say(console, "  " + ", ".join(f"{letter} {meaning}" for letter, meaning in _MEANINGS.items() if letter in used))
    for row in _rows(folder / "problems", name).iter_rows(named=True):
        caught = f"{row['wrong_caught']} of {row['wrong_solutions']} known wrong solutions caught"
        _say(console, f"  {row['evidence']}; {row['voting']} of {row['solutions']} solutions vote; {caught}")


def twins_of(run: Run, name: str) -> Iterator[str]:
    """The ids under which attempts at a problem are made, and the languages."""
    for file in sorted((run.where("twins") / "kept").glob("*.parquet")):
        yield from pl.scan_parquet(file, glob=False).filter(pl.col("group") == name).select("id").collect()["id"]


def original_of(run: Run, beginning: str) -> str | None:
    """The problem whose twin's id begins so; None where there is no such twin, or more than one problem has one."""
    found: set[str] = set()
    for file in sorted((run.where("twins") / "kept").glob("*.parquet")):
        rows = pl.scan_parquet(file, glob=False).filter(pl.col("id").str.starts_with(beginning)).select("group")
        found.update(rows.collect()["group"])
    return found.pop() if len(found) == 1 else None


def _letter(row: dict[str, object] | None, wanted: str | None) -> str:
    if row is None:
        return "?"
    if not row["valid"]:
        return _LETTERS.get(str(row["ended"]), "X")
    return "=" if (row["output"] == wanted if wanted is not None else row["expected"]) else "."


def _rows(folder: Path, name: str) -> pl.DataFrame:
    files = sorted(folder.glob("*.parquet"))
    parts = [pl.scan_parquet(file, glob=False).filter(pl.col("problem") == name).collect() for file in files]
    return (
        pl.concat(parts)
        if parts
        else pl.DataFrame(schema={"problem": pl.String, "index": pl.Int32, "origin": pl.String})
    )


def _say(console: Console, text: str) -> None:
    console.print(text, soft_wrap=True, markup=False)
