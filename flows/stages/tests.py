"""Decide which tests to trust, generate missing ones, and decide on problems."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from curation.programs import execution_matrix, tests_agreement
from curation.programs.generation import ENOUGH_TESTS, MODEL_ORIGIN, GeneratedTests, generate_tests, vouching_of
from curation.programs.mutation import keeps_counts
from curation.programs.selecting import VERSION as SELECTING_VERSION
from curation.programs.sound_tests import failing_solutions
from curation.programs.unit import Unit
from curation.programs.validation import VERSION as VALIDATION_VERSION
from curation.programs.validation import Vouching, cut_inputs
from curation.records import DROPPED, JUDGING, TEST, DropReason
from curation.storage.stages import Shard, read_shard
from curation.verify.programs.judge import VERSION as PROGRAMS
from curation.verify.programs.tools import Runner
from flows.run.run_folder import Run
from flows.run.stage import CODE, Stage, StageResult, StageRun
from flows.stages.base import JUDGING_TABLE, TESTS_TABLE
from flows.stages.execution_matrix import EXECUTION_MATRIX, units
from flows.stages.execution_matrix_table import execution_matrix_lines
from flows.stages.test_programs import TEST_PROGRAMS

GIVEN_TESTS = "tests"
"""Number of the sources' tests, of a problem or shard."""

POWER = pl.Schema(
    {
        "problem": pl.String(),
        "wrong": pl.Int32(),  # solutions known to be wrong
        "caught_given": pl.Int32(),  # of these, by the source's tests that stay
        "caught": pl.Int32(),  # … and by generated ones too
        "tried": pl.Int32(),  # inputs made
        "refused": pl.Int32(),  # of these, by the package's input validator, and so not run
        "sound": pl.Int32(),  # of these, all voting solutions agreed
        "made": pl.Int32(),  # of these, kept
        "rounds": pl.Int32(),
        "reason": pl.String(),  # why nothing was made; empty where tests were
    }
)
"""How many wrong solutions a problem's tests catch, without and with generated ones."""


VALIDATION = pl.Schema(
    {
        "problem": pl.String(),
        "by": pl.String(),  # who speaks for its inputs: package, model, or empty where nobody is believed
        "refused": pl.Int32(),  # given inputs that are not allowed
        "aside": pl.String(),  # why validators are not believed; null where all are
    }
)
"""Which validator is trusted with a problem's inputs."""


def make_tests(job: StageRun) -> StageResult:
    """Keep trusted tests, generate missing ones, and keep problems with enough of them."""
    run, settings = job.run, job.recipe.code
    matrix, programs = job.results[EXECUTION_MATRIX], job.results.get(TEST_PROGRAMS)
    used = tests_agreement.MIN_AGREEMENT, settings.min_tests, settings.make_tests, ENOUGH_TESTS, run.recipe.seed
    versions = (tests_agreement.VERSION, VALIDATION_VERSION, SELECTING_VERSION, execution_matrix.VERSION)
    version = f"{' '.join(versions)} {PROGRAMS}"
    read = [job.problems, matrix, *([programs] if programs is not None else [])]
    problems, matrix_folder = job.problems.folder, matrix.folder
    with Runner(run.recipe.workers) as runner:

        def work(index: int) -> Shard:
            responses: dict[str, list[str]] = {}
            if programs is not None:
                answered = read_shard(programs.folder, "proposals", index).filter("accepted")
                for name, text in answered.select("id", "text").iter_rows():
                    responses.setdefault(name, []).append(text)
            return _decide_shard(run, problems, matrix_folder, index, runner, responses)

        return job.shard_by_shard(job.open(version, str(used), *read), work)


@dataclass(frozen=True, slots=True)
class _Decided:
    """A problem's tests and runs, given and generated, with the decisions on them."""

    tests: pl.DataFrame
    made: pl.DataFrame
    runs: pl.DataFrame
    decisions: pl.DataFrame
    power: tuple[object, ...]
    validation: tuple[object, ...]
    judging: dict[str, object]


def _decide_shard(
    run: Run,
    before: Path,
    matrix: Path,
    index: int,
    runner: Runner,
    responses: Mapping[str, Sequence[str]],
) -> Shard:
    frame = read_shard(before, "kept", index)
    runs = read_shard(matrix, "runs", index)
    outputs = read_shard(matrix, "outputs", index)
    limits = {row["problem"]: row for row in read_shard(matrix, "limits", index).iter_rows(named=True)}

    def decide(unit: Unit) -> _Decided:
        limit, measured = limits[unit.name]["time_limit_s"], runs.filter(pl.col("problem") == unit.name)
        return _decide_problem(run, unit, runner, measured, outputs, limit, responses.get(unit.name, ()))

    decided = list(_side_by_side(decide, units(run, before, index), runner.workers))
    runs_table = pl.concat([execution_matrix.MEASURED.to_frame(), *(one.runs for one in decided)])
    decisions_table = pl.concat([tests_agreement.TEST_DECISION.to_frame(), *(one.decisions for one in decided)])
    judging = pl.DataFrame([one.judging for one in decided], schema=JUDGING)
    checked = judging.filter(pl.col("checker").is_not_null())["problem"]
    made = pl.concat([_test_ids(TEST.to_frame()), *(one.made for one in decided)])
    problems = tests_agreement.decide_problems(runs_table, decisions_table, run.recipe.code, checked, made)
    power = pl.DataFrame([one.power for one in decided], schema=POWER, orient="row")
    validation = pl.DataFrame([one.validation for one in decided], schema=VALIDATION, orient="row")
    kept, dropped = _split(frame, _with_reasons(problems, power), limits)
    tests = pl.concat([TEST.to_frame(), *(one.tests for one in decided)])
    tests = tests.filter(pl.col("problem").is_in(kept["id"].to_list()))
    tables = {
        "kept": kept,
        "dropped": dropped,
        TESTS_TABLE: tests,
        JUDGING_TABLE: judging,
        "runs": runs_table,
        "decisions": decisions_table,
        "problems": problems,
        "power": power,
        "validation": validation,
    }
    return Shard(frame.height, tables, notes=_notes(problems, tests, power, validation))


def _decide_problem(
    run: Run,
    unit: Unit,
    runner: Runner,
    runs: pl.DataFrame,
    outputs: pl.DataFrame,
    limit: float,
    responses: Sequence[str],
) -> _Decided:
    vouching = vouching_of(unit, runner, responses)
    inputs = known_inputs(unit, vouching, tests_agreement.decide_tests(runs, _test_ids(unit.tests)))
    decisions = tests_agreement.decide_tests(runs, _test_ids(unit.tests), inputs)
    tests = execution_matrix.corrected(unit.tests, decisions, outputs)
    generated = generate_tests(
        run.recipe.code, run.recipe.seed, unit, runner, runs, decisions, tests, limit, responses, vouching
    )
    new = pl.DataFrame(generated.tests, schema=TEST, orient="row")
    every = pl.concat([runs, *generated.runs])
    refused = inputs.filter(~pl.col("allowed")).height
    return _Decided(
        pl.concat([tests, new]),
        _test_ids(new),
        every,
        tests_agreement.decide_tests(every, _test_ids(unit.tests), inputs),
        _power(unit.name, every, decisions, generated),
        (unit.name, vouching.by, refused, "; ".join(vouching.aside) or None),
        {**{name: unit.judging[name] for name in JUDGING}, "time_limit_s": limit},
    )


def _side_by_side(decide: Callable[[Unit], _Decided], problems: Iterable[Unit], workers: int) -> Iterator[_Decided]:
    """Decide on problems in threads, in order, with at most twice ``workers`` in memory."""
    threads = ThreadPoolExecutor(workers, "problems")
    try:
        begun: deque[Future[_Decided]] = deque()
        for problem in problems:
            begun.append(threads.submit(decide, problem))
            if len(begun) == 2 * workers:
                yield begun.popleft().result()
        while begun:
            yield begun.popleft().result()
    finally:
        threads.shutdown(wait=False, cancel_futures=True)  # an interrupted run waits for none of them


def _test_ids(tests: pl.DataFrame) -> pl.DataFrame:
    return tests.select("problem", pl.col("index").alias("test"))


def known_inputs(unit: Unit, vouching: Vouching, decisions: pl.DataFrame) -> pl.DataFrame:
    """Return what is known of given inputs, as `tests_agreement.INPUT`.

    Without a trusted validator, truncated inputs are refused, and corrected ones with a wrong count are doubted.
    """
    texts = dict(unit.tests.select("index", "input").iter_rows())
    if vouching.by:
        known = {test: None if test in vouching.unsaid else test not in vouching.refused for test in texts}
        rows = [(unit.name, test, allowed, vouching.refused.get(test)) for test, allowed in known.items()]
        return pl.DataFrame(rows, schema=tests_agreement.INPUT, orient="row")
    cut = cut_inputs(texts)
    agreed = decisions.filter(pl.col("why") == "agrees")["test"].sort()
    agreeing = [texts[test] for test in agreed if test not in cut]
    corrected = decisions.filter(pl.col("decision") == "correct")["test"].sort()
    doubted = [test for test in corrected if test not in cut and not keeps_counts(texts[test], agreeing)]
    rows = [*((unit.name, test, False, words) for test, words in cut.items()),
            *((unit.name, test, None, None) for test in doubted)]  # fmt: skip
    return pl.DataFrame(rows, schema=tests_agreement.INPUT, orient="row")


def _with_reasons(problems: pl.DataFrame, power: pl.DataFrame) -> pl.DataFrame:
    """Add to the evidence of too few tests why none could be made."""
    joined = problems.join(power.select("problem", pl.col("reason").alias("why")), on="problem", how="left")
    explained = (pl.col("reason") == DropReason.TOO_FEW_TESTS.value) & (pl.col("why") != "")
    evidence = pl.format("{}; no tests could be made: {}", "evidence", "why")
    return joined.with_columns(pl.when(explained).then(evidence).otherwise("evidence").alias("evidence")).drop("why")


def _split(
    frame: pl.DataFrame, problems: pl.DataFrame, limits: Mapping[str, Mapping[str, object]]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Split rows; the verifier failed on problems without any run."""
    decided = problems.select("problem", "reason", "evidence", pl.lit(True).alias("seen"))
    joined = frame.join(decided, left_on="id", right_on="problem", how="left", maintain_order="left")
    whys = pl.Series("why", [str(limits[name]["why"]) for name in joined["id"]], pl.String)
    joined = joined.with_columns(
        pl.when(pl.col("seen").is_null())
        .then(pl.lit(DropReason.VERIFIER_FAILED.value))
        .otherwise("reason")
        .alias("reason"),
        pl.when(pl.col("seen").is_null()).then(whys).otherwise("evidence").alias("evidence"),
        pl.lit(TESTS.name).alias("stage"),
    )
    dropped = joined.filter(pl.col("reason").is_not_null()).select(DROPPED.names())
    return joined.filter(pl.col("reason").is_null()).select(frame.columns), dropped


def _notes(
    problems: pl.DataFrame, tests: pl.DataFrame, power: pl.DataFrame, validation: pl.DataFrame
) -> dict[str, int]:
    kept = problems.filter("keep")
    kept_power = power.join(kept, on="problem", how="semi")
    total = {
        name: int(problems[name].sum()) for name in (GIVEN_TESTS, "tests_kept", "tests_corrected", "tests_discarded")
    }
    total["weakly_tested"] = int(kept["weakly_tested"].sum())
    counted = [name for name in POWER.names() if name not in ("problem", "rounds", "reason")]
    kept_validation = validation.join(kept, on="problem", how="semi")
    total |= {f"vouched_{by or 'none'}": kept_validation.filter(by=by).height for by in ("package", "model", "")}
    total["refused_given"] = int(validation["refused"].sum())
    total["validators_aside"] = validation["aside"].drop_nulls().len()
    unvouched = kept_power.join(kept_validation.filter(by=""), on="problem", how="semi")
    total["made_unvouched"] = int(unvouched["made"].sum())
    written = tests.filter(origin=MODEL_ORIGIN).join(kept_validation.filter(by=""), on="problem", how="semi")
    total["written_unvouched"] = written.height
    return total | {f"power_{name}": int(kept_power[name].sum()) for name in counted}


def _power(name: str, runs: pl.DataFrame, decisions: pl.DataFrame, generated: GeneratedTests) -> tuple[object, ...]:
    wrong = runs.filter(~pl.col("right").fill_null(True))["solution"].n_unique()
    before = failing_solutions(runs, decisions.filter(pl.col("decision") != "discard"))
    caught = frozenset().union(*before.values()) if before else frozenset()
    every = {solution for solution, tests in generated.caught.items() if tests}
    return name, wrong, len(caught), len(caught | every), *generated.counts()


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
