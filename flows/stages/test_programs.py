"""Ask a model for programs that make and check tests, if tests or a validator are missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import polars as pl

from curation.programs import tests_agreement
from curation.programs.generation import ENOUGH_TESTS, EXAMPLE_ORIGINS, lacks_tests
from curation.programs.model_inputs import DESIGNED_INPUTS, MAX_INPUT_KB
from curation.programs.unit import Unit
from curation.questions.test_programs import programs_request
from curation.records import PromptRequest
from curation.storage.stages import read_shard
from curation.verify.programs.tables import validators_of
from flows.run.stage import CODE, Kind, StageRun
from flows.stages.execution_matrix import EXECUTION_MATRIX, units
from flows.stages.question import Inputs, question_stage


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


TEST_PROGRAMS = question_stage(
    "test_programs", "stages/09-test-programs", _test_programs, domains=CODE, kind=Kind.MEASURE
)
