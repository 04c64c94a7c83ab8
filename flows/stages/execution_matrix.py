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
from curation.verify.programs.tools import Runner
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

        def work(index: int) -> Shard:
            return _shard(run, runner, units(run, problems, index))

        return job.shard_by_shard(folder, work)


def _shard(run: Run, runner: Runner, problems: Iterable[Unit]) -> Shard:
    runs, outputs, limits = [execution_matrix.MEASURED.to_frame()], [execution_matrix.OUTPUT.to_frame()], []
    count = beyond = 0
    for unit in problems:
        count += 1
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
    tables = {
        "runs": pl.concat(runs),
        "outputs": pl.concat(outputs),
        "limits": pl.DataFrame(limits, schema=MEASURED_LIMITS, orient="row"),
    }
    notes = {"judged": sum(row[2] for row in limits), "broken": sum(row[3] for row in limits)}
    notes["tests_beyond"] = beyond  # more than `MAX_TESTS` of a problem: not run, not kept
    return Shard(count, tables, kept_rows=count, notes=notes)


def units(run: Run, problems: Path, index: int) -> Iterator[Unit]:
    """Yield a shard's problems, with up to `MAX_TESTS` tests."""
    folder = SOURCES.folder_in(run)
    frame = read_shard(problems, "kept", index)
    names = frame["id"].to_list()
    tests = read_shard(folder, TESTS_TABLE, index).filter(pl.col("problem").is_in(names))
    solutions = read_shard(folder, SOLUTIONS_TABLE, index).filter(pl.col("problem").is_in(names))
    judging = {row["problem"]: row for row in read_shard(folder, JUDGING_TABLE, index).iter_rows(named=True)}
    for row in frame.iter_rows(named=True):
        name = row["id"]
        own = tests.filter(pl.col("problem") == name).sort("index")
        yield Unit(
            row,
            own.head(MAX_TESTS),
            max(0, own.height - MAX_TESTS),
            solutions.filter(pl.col("problem") == name).sort("index"),
            judging[name],
        )


EXECUTION_MATRIX = Stage(
    name="execution_matrix",
    title="Execution matrix",
    folder="stages/08-execution-matrix",
    work=run_execution_matrix,
    domains=CODE,
    kind=Kind.MEASURE,
    runs_anywhere=True,
)
