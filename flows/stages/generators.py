"""A model writes generator and validator programs for the problems that need them; its responses are kept.

A problem needs tests where it has too few of them, or a known wrong solution passes those that stay. It needs a
validator, which is proved before it counts (`curation.programs.validation`), where its source gives none: then given
inputs are checked too, however many there are.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from curation.config.coding import TestGenerationSettings
from curation.programs import tests_agreement
from curation.programs.test_generation.generators import programs_in
from curation.prompts.testing import COUNT, EXAMPLES, MOST_KB, TESTING, examples_text
from curation.records import Domain, PromptRequest
from curation.storage.stages import Shard, read_shard
from curation.verify.programs.tables import validators_of
from flows.run.policies import model_title
from flows.run.run_folder import Run
from flows.run.stage import CODE, Kind, Stage, StageResult, StageRun, refusal_retries
from flows.stages.asking import PolicySession
from flows.stages.code_generation import EXAMPLE_ORIGINS, lacks_tests
from flows.stages.execution_matrix import EXECUTION_MATRIX
from flows.stages.units import Unit, units

VERSION = "generators@3"
RESPONSES_TABLE = "answered"
GENERATOR_RESPONSES = pl.Schema({"problem": pl.String(), "index": pl.Int32(), "text": pl.String()})


def ask_generators(job: StageRun) -> StageResult:
    """Request generators and validators from the recipe's model for the problems that need them."""
    run, settings = job.run, job.recipe.code.test_generation
    problems, matrix = job.problems.folder, job.results[EXECUTION_MATRIX].folder
    table = "code.test_generation"
    with PolicySession.of_stage(job, table, settings.model, settings.max_failed, TESTING, _is_readable) as session:

        def work(index: int) -> Shard:
            runs = read_shard(matrix, "runs", index)
            requests = [question_of(unit, settings) for unit in units(run, problems, index) if _needs(run, unit, runs)]
            rows = session.ask(requests, settings.responses).filter(pl.col("text").str.len_bytes() > 0)
            order = pl.DataFrame({"problem": [request.id for request in requests]}, schema={"problem": pl.String})
            answered = order.join(rows, on="problem", how="inner", maintain_order="left_right")
            count = read_shard(problems, "kept", index).height
            tables = {RESPONSES_TABLE: answered.select(GENERATOR_RESPONSES.names())}
            return Shard(count, tables, kept_rows=count, notes={"asked": len(requests)})

        settings_text = f"{session.policy.key} {settings.digest()} {run.recipe.code.agreement.digest()}"
        folder = job.open(f"{VERSION} {TESTING.version}", settings_text, job.problems, job.results[EXECUTION_MATRIX])
        return session.shard_by_shard(job, folder, work)


def question_of(unit: Unit, settings: TestGenerationSettings) -> PromptRequest:
    """Return what a model is asked for a problem: its statement, and given tests, those of the statement first."""
    rows = unit.tests.select("origin", "input", "output").iter_rows()
    given = sorted(
        rows, key=lambda row: (row[0] not in EXAMPLE_ORIGINS, len(row[1]) if row[0] not in EXAMPLE_ORIGINS else 0)
    )
    details = {
        COUNT: str(settings.designed),
        MOST_KB: str(settings.max_input_kb),
        EXAMPLES: examples_text((text, output) for _, text, output in given),
    }
    return PromptRequest(unit.name, unit.row["statement"], Domain.CODE, unit.row["lang"], details)


def _is_readable(text: str) -> bool:
    return programs_in(text) is not None


def _needs(run: Run, unit: Unit, runs: pl.DataFrame) -> bool:
    """Return whether a problem has too few tests, no validator, or known wrong solutions that pass those that stay."""
    if not validators_of(unit.judging):
        return True
    own = runs.filter(pl.col("problem") == unit.name)
    staying = tests_agreement.decide_tests(own, run.recipe.code.agreement).filter(pl.col("decision") != "discard")
    return lacks_tests(run, own, staying)


def _is_enabled(run: Run) -> bool:
    return run.recipe.code.test_generation.model is not None


def _describe(run: Run) -> Iterator[str]:
    yield f"{GENERATORS.name}: {model_title(run.recipe, run.recipe.code.test_generation.model)}"


GENERATORS = Stage(
    name="generators",
    title="Generators asked for",
    folder="stages/09-generators",
    work=ask_generators,
    domains=CODE,
    kind=Kind.MEASURE,
    enabled=_is_enabled,
    asks="code.test_generation.model",
    describe=_describe,
    retries=refusal_retries(),
)
