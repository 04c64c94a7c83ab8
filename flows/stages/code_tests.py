"""The stage that decides on tests and makes those that lack: agreement, generation, agreement again.

What is wired here for each problem: the matrix's runs → which tests are believed → where there are too few of them, or
a known wrong solution passes them all, new inputs are made in rounds, run through the same matrix, and kept where all
voting solutions agree → the problem's fate. The rules are those of `curation.tests_agreement` and
`curation.test_generation`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import polars as pl

from curation import code_matrix, test_generation, tests_agreement
from curation.prompts.testing import COUNT, TESTING
from curation.records import DROPPED, JUDGING, TEST, Answered, Domain, DropReason, Prompted
from curation.store import Shard, Stage, read_shard
from curation.verify.code_judging import Runner
from curation.verify.programs_judge import VERSION as PROGRAMS
from flows.run.policies import open_policy
from flows.run.run_folder import Done, Run, inputs
from flows.stages.base import shard_by_shard
from flows.stages.code_generation import Made, failing_solutions, generate, lacks_tests
from flows.stages.code_stages import Unit, units

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
    }
)
"""What generation gave a problem: its tests' power to tell known wrong solutions apart, without and with it."""

ANSWERED = pl.Schema({"problem": pl.String(), "index": pl.Int32(), "text": pl.String()})


def ask_generators(run: Run, before: Done, matrix: Done) -> Done:
    """Have the recipe's model write generators for the problems that need tests; its responses are kept."""
    settings = run.recipe.code.generation
    assert settings.policy is not None
    policy = open_policy(settings.policy, run.recipe_folder, TESTING)
    about = f"{policy.key} {settings.digest()} {run.recipe.code.agreement.digest()}"
    stage = Stage(run.where("generators"), "generators", TESTING.version, about, inputs(before, matrix))
    if (manifest := stage.manifest()) is not None:
        return Done(stage.name, stage.folder, manifest, reused=True)

    async def ask(wanted: Sequence[Prompted]) -> list[tuple[str, int, str]]:
        gate = asyncio.Semaphore(max(1, policy.in_flight))

        async def one(problem: Prompted, index: int) -> Answered | None:
            async with gate:
                return await policy.answer(problem, index)

        asked = [(problem, index) for problem in wanted for index in range(settings.responses)]
        answers = await asyncio.gather(*(one(problem, index) for problem, index in asked))
        pairs = zip(asked, answers, strict=True)
        return [(problem.id, index, said.text) for (problem, index), said in pairs if said is not None and said.text]

    with asyncio.Runner() as loop:
        loop.run(policy.__aenter__())
        try:

            def work(index: int) -> Shard:
                wanted = [
                    Prompted(
                        unit.name, unit.row["statement"], Domain.CODE, unit.row["lang"], {COUNT: str(settings.batch)}
                    )
                    for unit in units(run, before, index)
                    if _needs(run, unit, read_shard(matrix.folder, "runs", index))
                ]
                rows = loop.run(ask(wanted))
                count = read_shard(before.folder, "kept", index).height
                table = pl.DataFrame(rows, schema=ANSWERED, orient="row")
                return Shard(count, {"answered": table}, kept_rows=count, notes={"asked": len(wanted)})

            return shard_by_shard(stage, before, work)
        finally:
            loop.run(policy.__aexit__(None, None, None))


def make_tests(run: Run, before: Done, matrix: Done, asked: Done | None = None) -> Done:
    """Tests that are believed, tests that were made, and the problems that have enough of them."""
    settings = run.recipe.code
    about = f"{settings.agreement.digest()} {settings.generation.digest()} {run.recipe.seed}"
    version = f"{tests_agreement.VERSION} {test_generation.VERSION} {code_matrix.VERSION} {PROGRAMS}"
    sources = inputs(before, matrix, *([asked] if asked is not None else []))
    stage = Stage(run.where("tests"), "tests", version, about, sources)
    with Runner(run.recipe.workers) as runner:

        def work(index: int) -> Shard:
            frame = read_shard(before.folder, "kept", index)
            said: dict[str, list[str]] = {}
            if asked is not None:
                for name, text in read_shard(asked.folder, "answered", index).select("problem", "text").iter_rows():
                    said.setdefault(name, []).append(text)
            return _decide_shard(run, before, matrix, index, frame, runner, said)

        return shard_by_shard(stage, before, work)


def _decide_shard(
    run: Run,
    before: Done,
    matrix: Done,
    index: int,
    frame: pl.DataFrame,
    runner: Runner,
    said: Mapping[str, Sequence[str]],
) -> Shard:
    settings = run.recipe.code.agreement
    runs = read_shard(matrix.folder, "runs", index)
    outputs = read_shard(matrix.folder, "outputs", index)
    limits = {row["problem"]: row for row in read_shard(matrix.folder, "limits", index).iter_rows(named=True)}
    all_tests, all_runs, all_decisions, power, judging = [TEST.to_frame()], [], [], [], []
    for unit in units(run, before, index):
        own = runs.filter(pl.col("problem") == unit.name)
        limit = limits[unit.name]["time_limit_s"]
        asked = unit.tests.select("problem", pl.col("index").alias("test"))
        decisions = tests_agreement.decide_tests(own, settings, asked)
        tests = code_matrix.corrected(unit.tests, decisions, outputs)
        made = generate(run, unit, runner, own, decisions, tests, limit, said.get(unit.name, ()))
        new = pl.DataFrame(made.tests, schema=TEST, orient="row")
        own = pl.concat([own, *made.runs])
        all_tests.append(pl.concat([tests, new]))
        all_runs.append(own)
        all_decisions.append(tests_agreement.decide_tests(own, settings, asked))
        power.append(_power(unit.name, own, decisions, made))
        judging.append({**{name: unit.judging[name] for name in JUDGING}, "time_limit_s": limit})
    every = pl.concat([code_matrix.MEASURED.to_frame(), *all_runs])
    decided = pl.concat([tests_agreement.TEST_DECISION.to_frame(), *all_decisions])
    checked = pl.Series([row["problem"] for row in judging if row["checker"] is not None], dtype=pl.String)
    problems = tests_agreement.decide_problems(every, decided, settings, checked)
    kept, dropped = _split(frame, problems, limits)
    tests = pl.concat(all_tests).filter(pl.col("problem").is_in(kept["id"].to_list()))
    tables = {
        "kept": kept,
        "dropped": dropped,
        "tests": tests,
        "judging": pl.DataFrame(judging, schema=JUDGING),
        "runs": every,
        "decisions": decided,
        "problems": problems,
        "power": pl.DataFrame(power, schema=POWER, orient="row"),
    }
    return Shard(frame.height, tables, notes=_notes(problems, tables["power"]))


def _split(
    frame: pl.DataFrame, problems: pl.DataFrame, limits: Mapping[str, Mapping[str, object]]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Kept and dropped rows; a problem of which no run is known at all was failed by the verifier."""
    decided = problems.select("problem", "reason", "evidence", pl.lit(True).alias("seen"))
    joined = frame.join(decided, left_on="id", right_on="problem", how="left", maintain_order="left")
    whys = pl.Series("why", [str(limits[name]["why"]) for name in joined["id"]], pl.String)
    joined = joined.with_columns(
        pl.when(pl.col("seen").is_null())
        .then(pl.lit(DropReason.VERIFIER_FAILED.value))
        .otherwise("reason")
        .alias("reason"),
        pl.when(pl.col("seen").is_null()).then(whys).otherwise("evidence").alias("evidence"),
        pl.lit("tests").alias("stage"),
    )
    dropped = joined.filter(pl.col("reason").is_not_null()).select(DROPPED.names())
    return joined.filter(pl.col("reason").is_null()).select(frame.columns), dropped


def _notes(problems: pl.DataFrame, power: pl.DataFrame) -> dict[str, int]:
    """The shard in figures, for the card."""
    kept = problems.filter("keep")
    beside = power.join(kept, on="problem", how="semi")
    total = {name: int(problems[name].sum()) for name in ("tests", "tests_kept", "tests_corrected", "tests_discarded")}
    total["weakly_tested"] = int(kept["weakly_tested"].sum())
    counted = [name for name in POWER.names() if name not in ("problem", "rounds")]
    return total | {f"power_{name}": int(beside[name].sum()) for name in counted}


def _power(name: str, runs: pl.DataFrame, given: pl.DataFrame, made: Made) -> tuple[object, ...]:
    wrong = runs.filter(~pl.col("right").fill_null(True))["solution"].n_unique()
    before = failing_solutions(runs, given.filter(pl.col("decision") != "discard"))
    caught = frozenset().union(*before.values()) if before else frozenset()
    return name, wrong, len(caught), len(caught | made.caught), *made.counts()


def _needs(run: Run, unit: Unit, runs: pl.DataFrame) -> bool:
    """Whether a problem has too few tests, or a known wrong solution passes those that stay."""
    own = runs.filter(pl.col("problem") == unit.name)
    staying = tests_agreement.decide_tests(own, run.recipe.code.agreement).filter(pl.col("decision") != "discard")
    return lacks_tests(run, own, staying)
