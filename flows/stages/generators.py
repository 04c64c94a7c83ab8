"""A model writes generator and validator programs for the problems that need them; its responses are kept.

A problem needs tests where it has too few of them, or a known wrong solution passes those that stay. It needs a
validator, which is proved before it counts (`curation.programs.validation`), where its source gives none: then given
inputs are checked too, however many there are.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

import polars as pl

from curation.programs import tests_agreement
from curation.programs.test_generation.generators import programs_in
from curation.prompts.testing import COUNT, TESTING
from curation.records import Completion, Domain, Policy, PromptRequest
from curation.storage.stages import Shard, read_shard
from curation.verify.programs.tables import validators_of
from flows.run.policies import check_policy, open_policy, policy_name
from flows.run.run_folder import Run
from flows.run.stage import CODE, Kind, Stage, StageResult, StageRun
from flows.stages.asking import ResponseWatch
from flows.stages.code_generation import lacks_tests
from flows.stages.execution_matrix import EXECUTION_MATRIX
from flows.stages.units import Unit, units

VERSION = "generators@2"
RESPONSES_TABLE = "answered"
GENERATOR_RESPONSES = pl.Schema({"problem": pl.String(), "index": pl.Int32(), "text": pl.String()})


def ask_generators(job: StageRun) -> StageResult:
    """Request generators and validators from the recipe's model for the problems that need them."""
    run, settings = job.run, job.recipe.code.test_generation
    assert settings.policy is not None
    policy = open_policy(settings.policy, run.recipe_folder, TESTING)
    settings_text = f"{policy.key} {settings.digest()} {run.recipe.code.agreement.digest()}"
    problems, matrix = job.problems.folder, job.results[EXECUTION_MATRIX].folder
    folder = job.open(f"{VERSION} {TESTING.version}", settings_text, job.problems, job.results[EXECUTION_MATRIX])
    if (result := job.finished(folder)) is not None:
        return result
    watch = ResponseWatch(run, job.stage.name, "code.test_generation", settings.policy, _is_readable)
    with asyncio.Runner() as loop:
        loop.run(policy.__aenter__())
        try:

            def work(index: int) -> Shard:
                runs = read_shard(matrix, "runs", index)
                requests = [
                    _question(unit, settings.batch) for unit in units(run, problems, index) if _needs(run, unit, runs)
                ]
                rows = loop.run(_ask(policy, requests, settings.responses, watch))
                count = read_shard(problems, "kept", index).height
                table = pl.DataFrame(rows, schema=GENERATOR_RESPONSES, orient="row")
                return Shard(count, {RESPONSES_TABLE: table}, kept_rows=count, notes={"asked": len(requests)})

            result = job.shard_by_shard(folder, work)
            watch.close()
            return result
        finally:
            loop.run(policy.__aexit__(None, None, None))


def _question(unit: Unit, batch: int) -> PromptRequest:
    return PromptRequest(unit.name, unit.row["statement"], Domain.CODE, unit.row["lang"], {COUNT: str(batch)})


def _is_readable(text: str) -> bool:
    return programs_in(text) is not None


async def _ask(
    policy: Policy, requests: Sequence[PromptRequest], responses: int, watch: ResponseWatch
) -> list[tuple[str, int, str]]:
    """Return problem, number and text of each response that came."""
    gate = asyncio.Semaphore(max(1, policy.in_flight))

    async def answer(problem: PromptRequest, index: int) -> Completion | None:
        async with gate:
            completion = await policy.answer(problem, index)
        if completion is not None:
            watch.add(problem.id, index, completion)
        return completion

    jobs = [(problem, index) for problem in requests for index in range(responses)]
    answers = await asyncio.gather(*(answer(problem, index) for problem, index in jobs))
    pairs = zip(jobs, answers, strict=True)
    return [
        (problem.id, index, completion.text)
        for (problem, index), completion in pairs
        if completion is not None and completion.text
    ]


def _needs(run: Run, unit: Unit, runs: pl.DataFrame) -> bool:
    """Return whether a problem has too few tests, no validator, or known wrong solutions that pass those that stay."""
    if not validators_of(unit.judging):
        return True
    own = runs.filter(pl.col("problem") == unit.name)
    staying = tests_agreement.decide_tests(own, run.recipe.code.agreement).filter(pl.col("decision") != "discard")
    return lacks_tests(run, own, staying)


def _is_enabled(run: Run) -> bool:
    return run.recipe.code.test_generation.policy is not None


def _check(run: Run) -> None:
    check_policy(run.recipe.code.test_generation.policy, run.recipe_folder)


def _describe(run: Run) -> Iterator[str]:
    yield f"{GENERATORS.name}: {policy_name(run.recipe.code.test_generation.policy)}"


GENERATORS = Stage(
    name="generators",
    title="Generators asked for",
    folder="stages/09-generators",
    work=ask_generators,
    domains=CODE,
    kind=Kind.MEASURE,
    enabled=_is_enabled,
    check=_check,
    describe=_describe,
)
