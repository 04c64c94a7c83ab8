"""The execution matrix: run each problem's solutions on all its tests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import polars as pl

from curation.programs import execution_matrix
from curation.programs.execution_matrix import MAX_TESTS
from curation.programs.unit import Unit
from curation.storage.stages import Shard, read_shard
from curation.verify.programs.judge import VERSION as PROGRAMS
from curation.verify.programs.toolchain import STANDARDS
from curation.verify.programs.tools import Runner
from flows.run.lookup import rows_of
from flows.run.run_folder import Run
from flows.run.stage import CODE, Kind, Stage, StageResult, StageRun
from flows.stages.base import JUDGING_TABLE, SOLUTIONS_TABLE, TESTS_TABLE
from flows.stages.sources import SOURCES

MEASURED_LIMITS = pl.Schema(
    {
        "problem": pl.String(),
        "time_limit_s": pl.Float64(),  # the source's, or the measured one
        "judged": pl.Int32(),  # runs
        "broken": pl.Int32(),  # runs of which nothing is known
        "why": pl.String(),
    }
)


def run_execution_matrix(job: StageRun) -> StageResult:
    """Keep the solutions' outputs on each test, and measured limits."""
    run, code, problems = job.run, job.recipe.code, job.problems.folder
    folder = job.open(f"{execution_matrix.VERSION} {PROGRAMS}", f"{code.time_s} {code.memory_mb}", job.problems)
    with Runner(run.recipe.workers) as runner:
        return job.shard_by_shard(folder, lambda index: _shard(run, runner, units(run, problems, index)))


def _shard(run: Run, runner: Runner, problems: Iterable[Unit]) -> Shard:
    runs, outputs, limits = [execution_matrix.MEASURED.to_frame()], [execution_matrix.OUTPUT.to_frame()], []
    beyond = 0
    for unit in problems:
        beyond += unit.beyond
        matrix = execution_matrix.run_execution_matrix(
            runner,
            unit.name,
            unit.problem(run.recipe.code),
            unit.candidates(),
            time_given=unit.judging["time_limit_s"] is not None,
            indices=unit.tests["index"].to_list(),
            known=unit.tests["output"].is_not_null().to_list(),
        )
        runs.append(matrix.runs)
        outputs.append(matrix.outputs)
        limits.append((unit.name, matrix.time_limit_s, matrix.judged, matrix.broken, matrix.why))
    table = pl.DataFrame(limits, schema=MEASURED_LIMITS, orient="row")
    notes = {name: int(table[name].sum()) for name in ("judged", "broken")}
    notes["tests_beyond"] = beyond  # more than `MAX_TESTS` of a problem: not run, not kept
    tables = {"runs": pl.concat(runs), "outputs": pl.concat(outputs), "limits": table}
    return Shard(table.height, tables, kept_rows=table.height, notes=notes)


def units(run: Run, problems: Path, index: int) -> Iterator[Unit]:
    """Yield a shard's problems, with up to `MAX_TESTS` tests."""
    folder, frame = SOURCES.folder_in(run), read_shard(problems, "kept", index)
    is_kept = pl.col("problem").is_in(frame["id"].implode())
    tables = (TESTS_TABLE, SOLUTIONS_TABLE, JUDGING_TABLE)
    tests, solutions, judging = (read_shard(folder, table, index).filter(is_kept) for table in tables)
    limits = {row["problem"]: row for row in judging.iter_rows(named=True)}
    for row in frame.iter_rows(named=True):
        own, made = (table.filter(pl.col("problem") == row["id"]).sort("index") for table in (tests, solutions))
        yield Unit(row, own.head(MAX_TESTS), max(0, own.height - MAX_TESTS), made, limits[row["id"]])


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
_MOST_LINES = 60


def execution_matrix_lines(folder: Path, matrix: Path, name: str) -> Iterator[str]:
    """Yield a problem's solutions, and each test's results and decision, for `goldilocks explain`.

    Args:
        folder: of the tests stage.
        matrix: of the execution matrix, used until the tests stage has run.
    """
    runs = rows_of(folder if (folder / "runs").is_dir() else matrix, "runs", name, "problem")
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
    used: set[str] = set()
    for test in sorted(runs["test"].unique())[:_MOST_LINES]:
        own = {row["solution"]: row for row in runs.filter(pl.col("test") == test).iter_rows(named=True)}
        decision = decisions.get(test)
        expected = decision["output"] if decision is not None else None
        letters = "".join(_letter(own.get(one), expected) for one in solutions["solution"])
        used.update(letters)
        text = ""
        if decision is not None:
            evidence = f"{decision['evidence']}, " if decision["evidence"] else ""
            votes = f"{decision['agreeing']} of {decision['votes']} votes"
            text = f"{decision['decision']}: {decision['why']}, {evidence}{votes}"
        origin = f", {origins[test]}" if origins.get(test) in ("mutation", "model") else ""
        yield f"{test:>6}  {letters}  {text}{origin}"
    if runs["test"].n_unique() > _MOST_LINES:
        yield f"… and {runs['test'].n_unique() - _MOST_LINES} more tests"
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


EXECUTION_MATRIX = Stage(
    name="execution_matrix",
    title="Execution matrix",
    folder="stages/08-execution-matrix",
    work=run_execution_matrix,
    domains=CODE,
    kind=Kind.MEASURE,
    runs_anywhere=True,
)
