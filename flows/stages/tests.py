"""Run solutions on tests, decide which tests to trust, generate missing ones, and decide on problems.

A model may be asked for programs that make and check tests. Each problem becomes a variant per usable language.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from curation.programs import deciding, execution_matrix, language_variants, tests_agreement
from curation.programs.execution_matrix import MAX_TESTS, Unit
from curation.programs.generation import ENOUGH_TESTS, EXAMPLE_ORIGINS, lacks_tests
from curation.programs.hunting import DESIGNED_INPUTS, MAX_INPUT_KB
from curation.programs.selecting import VERSION as SELECTING_VERSION
from curation.programs.validation import VERSION as VALIDATION_VERSION
from curation.questions.test_programs import programs_request
from curation.records import PromptRequest
from curation.storage.stages import Shard, read_shard
from curation.verify.programs.judge import VERSION as PROGRAMS
from curation.verify.programs.tables import validators_of
from curation.verify.programs.toolchain import STANDARDS
from curation.verify.programs.tools import Runner
from flows.run.run_folder import Run
from flows.run.stage import JUDGING_TABLE, SOLUTIONS_TABLE, TESTS_TABLE, Kind, Stage, StageResult, StageRun, rows_of
from flows.stages.question import Inputs, question_stage
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


_MAX_LINES = 60


def execution_matrix_lines(folder: Path, matrix: Path, name: str) -> Iterator[str]:
    """Yield a problem's solutions with their results, and each test's decision, for `goldilocks explain`.

    Args:
        folder: of the tests stage.
        matrix: of the execution matrix, used until the tests stage has run.
    """
    runs = rows_of(folder if (folder / "runs").is_dir() else matrix, "runs", name, "problem")
    if runs.is_empty():
        return
    decisions = rows_of(folder, "decisions", name, "problem")
    if decisions.height:
        decisions = decisions.sort("test")
        decided = decisions.select("test", decided="output")
        wanted = pl.coalesce(pl.col("output") == pl.col("decided"), "expected")  # a new test has no expected output
        runs = runs.join(decided, on="test", how="left").with_columns(expected=wanted)
    result = pl.when(~pl.col("valid")).then("ended").when("expected").then(pl.lit("as expected"))
    counted = runs.with_columns(result=result.otherwise(pl.lit("other output"))).group_by("solution")
    solutions = counted.agg(pl.col("lang", "right", "standard").first(), "result")
    labels = {True: "right", False: "wrong", None: "unknown"}
    for index, lang, right, standard, results in solutions.sort("solution").iter_rows():
        older = f", compiled as {standard}" if standard not in (None, STANDARDS[0]) else ""
        came = ", ".join(f"{count} {result}" for result, count in Counter(results).most_common())
        yield f"solution {index} of the source, {lang}{older}, labelled {labels[right]}: {came}"
    tests = rows_of(folder, TESTS_TABLE, name, "problem").iter_rows(named=True)
    made = {row["index"]: row["origin"] for row in tests if row["origin"] in ("mutation", "model")}
    for row in decisions.head(_MAX_LINES).iter_rows(named=True):
        evidence = f"{row['evidence']}, " if row["evidence"] else ""
        origin = f", {made[row['test']]}" if row["test"] in made else ""
        votes = f"{row['agreeing']} of {row['votes']} votes"
        yield f"{row['test']:>6}  {row['decision']}: {row['why']}, {evidence}{votes}{origin}"
    if decisions.height > _MAX_LINES:
        yield f"… and {decisions.height - _MAX_LINES} more tests"
    for row in rows_of(folder, "problems", name, "problem").iter_rows(named=True):
        caught = f"{row['wrong_caught']} of {row['wrong_solutions']} known wrong solutions caught"
        yield f"{row['evidence']}; {row['voting']} of {row['solutions']} solutions vote; {caught}"


EXECUTION_MATRIX = Stage(
    name="execution_matrix",
    title="Execution matrix",
    folder="stages/08-execution-matrix",
    work=run_execution_matrix,
    kind=Kind.MEASURE,
    runs_anywhere=True,
)


@contextmanager
def _test_programs(job: StageRun) -> Iterator[Inputs]:
    run, matrix = job.run, job.results[EXECUTION_MATRIX]

    def tables(index: int) -> tuple[list[PromptRequest]]:
        runs = read_shard(matrix.folder, "runs", index)
        needing = [unit for unit in units(run, job.problems.folder, index) if _needs_programs(unit, runs)]
        return ([unit_request(unit) for unit in needing],)

    yield Inputs(tables, (matrix,), settings=f"{tests_agreement.MIN_AGREEMENT} {ENOUGH_TESTS}")


def _needs_programs(unit: Unit, runs: pl.DataFrame) -> bool:
    if unit.judging["function"] is not None:
        return False
    if not validators_of(unit.judging):
        return True
    own = runs.filter(pl.col("problem") == unit.name)
    staying = tests_agreement.decide_tests(own).filter(pl.col("decision") != "discard")
    return lacks_tests(own, staying)


def unit_request(unit: Unit) -> PromptRequest:
    """Return a problem's request; among its tests, the statement's examples come first."""
    rows = unit.tests.select("origin", "input", "output").iter_rows()
    given = sorted(
        rows, key=lambda row: (row[0] not in EXAMPLE_ORIGINS, len(row[1]) if row[0] not in EXAMPLE_ORIGINS else 0)
    )
    shown = ((text, output) for _, text, output in given)
    return programs_request(unit.row, shown, DESIGNED_INPUTS, MAX_INPUT_KB)


TEST_PROGRAMS = question_stage("test_programs", "stages/09-test-programs", _test_programs, kind=Kind.MEASURE)


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

            def decide(unit: Unit) -> dict[str, pl.DataFrame]:
                own, limit = runs.filter(pl.col("problem") == unit.name), limits[unit.name]["time_limit_s"]
                written = responses.get(unit.name, ())
                return deciding.decide_tests(code, run.recipe.seed, unit, runner, own, outputs, limit, written)

            decided = list(_in_threads(decide, units(run, problems, index), runner.workers))
            whys = {name: str(row["why"]) for name, row in limits.items()}
            tables, notes = deciding.decide_problems(frame, decided, whys, code, job.stage.name)
            return Shard(frame.height, tables, notes=notes)

        return job.shard_by_shard(folder, work)


def _in_threads(
    decide: Callable[[Unit], dict[str, pl.DataFrame]], problems: Iterable[Unit], workers: int
) -> Iterator[dict[str, pl.DataFrame]]:
    """Decide on problems in threads, in order, with at most twice ``workers`` in memory."""
    threads = ThreadPoolExecutor(workers, "problems")
    try:
        begun: deque[Future[dict[str, pl.DataFrame]]] = deque()
        for problem in problems:
            begun.append(threads.submit(decide, problem))
            if len(begun) == 2 * workers:
                yield begun.popleft().result()
        while begun:
            yield begun.popleft().result()
    finally:
        threads.shutdown(wait=False, cancel_futures=True)  # an interrupted run waits for none of them


TESTS = Stage(
    name="tests",
    title="Tests by agreement",
    folder="stages/10-tests",
    work=make_tests,
    explain=lambda run, folder, problem: execution_matrix_lines(folder, EXECUTION_MATRIX.folder_in(run), problem),
)


def make_variants(job: StageRun) -> StageResult:
    """Make each problem's language variants; drop problems without any.

    It reads the tests stage's tables, so it comes right after it.
    """
    recipe, problems = job.recipe, job.problems.folder

    def work(index: int) -> Shard:
        frame = read_shard(problems, "kept", index)
        runs = read_shard(problems, "runs", index)
        decisions = read_shard(problems, "decisions", index).filter(pl.col("decision") != "discard")
        deviating = tests_agreement.deviating_solutions(runs)
        voting = runs.join(deviating, on=["problem", "solution"], how="anti")
        judging = read_shard(problems, JUDGING_TABLE, index)
        limits = judging.select("problem", "time_limit_s")
        functions = set(judging.filter(pl.col("function").is_not_null())["problem"])
        languages = language_variants.languages_of(
            voting, decisions.select("problem", "test", "output"), limits, recipe.code.languages
        )
        kept, dropped = language_variants.make_variants(frame, languages, functions)
        return Shard(kept.height + dropped.height, {"kept": kept, "dropped": dropped, "asked": languages})

    folder = job.open(language_variants.VERSION, " ".join(recipe.code.languages), job.problems)
    return job.shard_by_shard(folder, work, is_whole=False)


def language_of(meta: str | None) -> str:
    """Return the programming language of a language variant."""
    return str(json.loads(meta or "{}").get(language_variants.LANGUAGE, "python"))


LANGUAGE_VARIANTS = Stage(
    name="language_variants",
    title="Language variants",
    folder="stages/11-language-variants",
    work=make_variants,
)
