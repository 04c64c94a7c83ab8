"""Decide which tests to trust, generate missing ones, and decide on problems."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import polars as pl

from curation.programs import deciding, execution_matrix, tests_agreement
from curation.programs.generation import ENOUGH_TESTS
from curation.programs.selecting import VERSION as SELECTING_VERSION
from curation.programs.unit import Unit
from curation.programs.validation import VERSION as VALIDATION_VERSION
from curation.storage.stages import Shard, read_shard
from curation.verify.programs.judge import VERSION as PROGRAMS
from curation.verify.programs.tools import Runner
from flows.run.run_folder import Run
from flows.run.stage import CODE, Stage, StageResult, StageRun
from flows.stages.execution_matrix import EXECUTION_MATRIX, execution_matrix_lines, units
from flows.stages.test_programs import TEST_PROGRAMS


def make_tests(job: StageRun) -> StageResult:
    """Keep trusted tests, generate missing ones, and keep problems with enough of them."""
    run, code, problems = job.run, job.recipe.code, job.problems.folder
    matrix, programs = job.results[EXECUTION_MATRIX], job.results.get(TEST_PROGRAMS)
    used = tests_agreement.MIN_AGREEMENT, code.min_tests, code.make_tests, ENOUGH_TESTS, run.recipe.seed
    versions = (tests_agreement.VERSION, VALIDATION_VERSION, SELECTING_VERSION, execution_matrix.VERSION)
    read = [job.problems, matrix, *([programs] if programs is not None else [])]
    folder = job.open(f"{' '.join(versions)} {PROGRAMS}", str(used), *read)
    with Runner(run.recipe.workers) as runner:

        def work(index: int) -> Shard:
            frame = read_shard(problems, "kept", index)
            runs, outputs = (read_shard(matrix.folder, table, index) for table in ("runs", "outputs"))
            limits = {row["problem"]: row for row in read_shard(matrix.folder, "limits", index).iter_rows(named=True)}
            responses: dict[str, list[str]] = {}
            if programs is not None:
                answered = read_shard(programs.folder, "proposals", index).filter("accepted")
                responses = dict(answered.group_by("id", maintain_order=True).agg("text").iter_rows())

            def decide(unit: Unit) -> deciding.DecidedProblem:
                own, limit = runs.filter(pl.col("problem") == unit.name), limits[unit.name]["time_limit_s"]
                written = responses.get(unit.name, ())
                return deciding.decide_tests(code, run.recipe.seed, unit, runner, own, outputs, limit, written)

            decided = list(_in_threads(decide, units(run, problems, index), runner.workers))
            whys = {name: str(row["why"]) for name, row in limits.items()}
            tables, notes = deciding.decide_problems(frame, decided, whys, code, job.stage.name)
            return Shard(frame.height, tables, notes=notes)

        return job.shard_by_shard(folder, work)


def _in_threads(
    decide: Callable[[Unit], deciding.DecidedProblem], problems: Iterable[Unit], workers: int
) -> Iterator[deciding.DecidedProblem]:
    """Decide on problems in threads, in order, with at most twice ``workers`` in memory."""
    threads = ThreadPoolExecutor(workers, "problems")
    try:
        begun: deque[Future[deciding.DecidedProblem]] = deque()
        for problem in problems:
            begun.append(threads.submit(decide, problem))
            if len(begun) == 2 * workers:
                yield begun.popleft().result()
        while begun:
            yield begun.popleft().result()
    finally:
        threads.shutdown(wait=False, cancel_futures=True)  # an interrupted run waits for none of them


def _explain(run: Run, folder: Path, problem: str) -> Iterable[str]:
    return execution_matrix_lines(folder, EXECUTION_MATRIX.folder_in(run), problem)


TESTS = Stage(
    name="tests",
    title="Tests by agreement",
    folder="stages/10-tests",
    work=make_tests,
    domains=CODE,
    explain=_explain,
)
