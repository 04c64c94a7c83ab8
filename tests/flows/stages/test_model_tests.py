"""Tests of a model's programs: designed inputs, small ones that are swept, wrong programs that are hunted by."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl
import pytest

from curation.programs import execution_matrix, tests_agreement
from curation.programs.validation import Vouching
from curation.questions.test_programs import wrong_programs_in
from curation.verify.programs.tools import Runner
from flows.stages import model_inputs
from flows.stages.code_generation import GeneratedTests, generate_tests
from flows.stages.hunting import begin_hunt
from flows.stages.model_inputs import inputs_from_model
from flows.stages.test_programs import unit_request as request_of
from tests.flows.stages.test_code_generation import problem_of
from tests.made_limits import made_with

GENERATOR = """
k = int(input())
if k == 2:
    raise SystemExit(1)
if k <= 3:
    print(5)
    print(*[1000 * k] * 5)
else:
    print(2)
    print(k % 3, 1)
"""
WRONG = "input()\na = input().split()\nprint(0 if a == ['2', '1'] else sum(map(int, a)))\n"
RIGHT = "input()\nprint(sum(map(int, input().split())))\n"


def response(*codes: str) -> str:
    return "\n".join(f"```python\n{code}```" for code in codes)


SAID = response(GENERATOR, "input()\n", WRONG, RIGHT)


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    with Runner(1) as runner:
        yield runner


def made(runner: Runner, said: str = SAID, **constants: int) -> GeneratedTests:
    """Return the tests that are made of the samples of `test_code_generation` with a model's response."""
    unit, run = problem_of("", 3)
    ids = unit.tests.select("problem", pl.col("index").alias("test"))
    matrix = execution_matrix.run_execution_matrix(
        runner, "sums", unit.problem(run, 10), unit.candidates(), time_given=True
    )
    decisions = tests_agreement.decide_tests(matrix.runs, ids)
    few = {"DESIGNED_INPUTS": 3, "ROUNDS": 1, "BATCH": 1, "MAX_INPUT_KB": 1, "MUTANTS": 0}
    with made_with(**(few | constants)):
        return generate_tests(run, unit, runner, matrix.runs, decisions, unit.tests, 10.0, [said], Vouching())


def test_the_question_shows_given_tests_and_how_many_inputs_are_wanted() -> None:
    unit, _ = problem_of("", 3)
    unit.row["lang"] = "en"
    with made_with(DESIGNED_INPUTS=3):
        details = request_of(unit).details
    assert details["count"] == "3"
    assert details["examples"].startswith("\nExample 1, input:\n```\n2\n1 2\n```\nOutput:\n```\n3\n```\n")
    late = unit.tests.with_columns(origin=pl.Series(["secret", "sample", "secret"]))
    unit.tests.__init__(late)  # type: ignore[misc]
    shown = request_of(unit).details["examples"]
    assert shown.index("3\n4 0 5") < shown.index("1\n7") < shown.index("2\n1 2"), "samples first, then short ones"


def test_a_generator_prints_designed_and_small_inputs_each_once(runner: Runner) -> None:
    with made_with(DESIGNED_INPUTS=3):
        inputs = inputs_from_model(runner, [SAID], trusted=True)
    assert inputs.designed == ["5\n1000 1000 1000 1000 1000\n", "5\n3000 3000 3000 3000 3000\n"], "number 2 fails"
    assert inputs.small == ["2\n1 1\n", "2\n2 1\n", "2\n0 1\n"]


def test_a_slow_generator_of_small_inputs_is_stopped(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_inputs, "_SMALL_S", 0.5)
    slow = "k = int(input())\nwhile k > 1: pass\nprint(1)\nprint(7)\n"
    with made_with(DESIGNED_INPUTS=1, GENERATOR_S=1.0):
        assert inputs_from_model(runner, [response(slow)], trusted=True).designed == ["1\n7\n"]


def test_wrong_programs_of_a_model_are_hunted_by_and_are_no_solutions(runner: Runner) -> None:
    assert wrong_programs_in([SAID, SAID]) == [WRONG, RIGHT]
    unit, run = problem_of("", 3)
    voters = [one for one in unit.candidates() if one.right]
    hunt = begin_hunt(run, unit, runner, 10.0, voters, unit.tests, written=[WRONG, RIGHT, "print(0)\n"])
    with made_with(MUTANTS=0):
        hunted = hunt.failing([("2\n2 1\n", "3\n"), ("2\n1 1\n", "2\n")])
    assert [len(one) for one in hunted] == [1, 0], "the right one never fails, the third fails a sample"
    generated = made(runner, HUNTED_INPUTS=4)
    assert set(generated.caught) <= {3}
    assert ("2\n2 1\n", "model") in [(text, origin) for _, _, text, _, origin in generated.tests]


def test_designed_inputs_are_kept_each_as_a_kind_of_its_own(runner: Runner) -> None:
    generated = made(runner, HUNTED_INPUTS=0)
    origins = {text: origin for _, _, text, _, origin in generated.tests}
    assert origins["5\n1000 1000 1000 1000 1000\n"] == "model"


def test_a_hunted_program_that_is_too_slow_is_left_out_after_two_batches(runner: Runner) -> None:
    unit, run = problem_of("", 3, limit=0.2)
    slow = f"{WRONG}while a == ['2', '2']: pass\n"
    voters = [one for one in unit.candidates() if one.right]
    hunt = begin_hunt(run, unit, runner, 0.2, voters, unit.tests, written=[slow, WRONG])
    for left in (2, 1):
        with made_with(MUTANTS=0):
            assert hunt.failing([("2\n2 2\n", "4\n")]) == [frozenset()]
        assert len(hunt.mutants or ()) == left
