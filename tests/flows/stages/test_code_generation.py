"""Making a problem's tests: by changed inputs and by a model's programs, what is kept, and why nothing was made."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl
import pytest

from curation.config import CodeSettings
from curation.programs import execution_matrix, tests_agreement
from curation.programs.deciding import known_inputs
from curation.programs.execution_matrix import Unit
from curation.programs.generation import GeneratedTests, generate_tests
from curation.programs.hunting import Hunt, inputs_from_model
from curation.programs.validation import GivenInput, Vouching, vouch
from curation.questions.test_programs import wrong_programs_in
from curation.records import JUDGING, SOLUTION, TEST
from curation.verify.programs.problem import Validator, ValidatorLang
from curation.verify.programs.tools import Runner
from flows.stages.tests import unit_request
from tests.made_limits import made_with

SUMS = tomllib.loads(Path(__file__).with_name("sums.toml").read_text(encoding="utf-8"))
"""A statement, and programs for it."""
RIGHT, WRONG, ODD, CHEAT = SUMS["right"], SUMS["wrong"], SUMS["odd"], SUMS["cheat"]
VALIDATOR = Validator(ValidatorLang.PYTHON, {"v.py": SUMS["validator"]}, ("v.py",))
SAMPLES = [("2\n1 2\n", "3\n"), ("3\n4 0 5\n", "9\n"), ("1\n7\n", "7\n")]
GIVEN = [GivenInput(at, text, example=True) for at, (text, _) in enumerate(SAMPLES)]


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    with Runner(1) as runner:
        yield runner


def sums(*right: str) -> Unit:
    """Return the problem with its samples, these right solutions and a wrong one."""
    rows = [("sums", at, text, output, "sample") for at, (text, output) in enumerate(SAMPLES)]
    labelled = [*((code, True) for code in right), (WRONG, False)]
    solutions = [("sums", at, "python", code, label, f"{at}.py") for at, (code, label) in enumerate(labelled)]
    judging = dict.fromkeys(JUDGING.names()) | {"problem": "sums", "time_limit_s": 10.0, "memory_mb": 512}
    about = {"id": "sums", "statement": SUMS["statement"], "lang": "en"}
    tests = pl.DataFrame(rows, schema=TEST, orient="row")
    return Unit(about, tests, 0, pl.DataFrame(solutions, schema=SOLUTION, orient="row"), judging)


def made(
    runner: Runner, unit: Unit, validators: Sequence[Validator] = (), written: Sequence[str] = (), **constants: int
) -> GeneratedTests:
    """Return the tests made of a problem, with its validators and a model's responses."""
    vouching = vouch(runner, validators, [], GIVEN)
    given = unit.problem(CodeSettings(), 10.0)
    matrix = execution_matrix.run_execution_matrix(runner, "sums", given, unit.candidates(), time_given=True)
    ids = unit.tests.select("problem", pl.col("index").alias("test"))
    decisions = tests_agreement.decide_tests(matrix.runs, ids)
    with made_with(**constants):
        return generate_tests(
            CodeSettings(), 1, unit, runner, matrix.runs, decisions, unit.tests, 10.0, written, vouching
        )


def test_changed_inputs_keep_the_form_and_catch_the_wrong_program(runner: Runner) -> None:
    generated = made(runner, sums(*RIGHT), [VALIDATOR], BATCH=6, ROUNDS=1, MAX_INPUT_KB=8)
    assert generated.reason == ""
    assert set(generated.caught) == {3}, "mutants are no solutions"
    assert generated.caught[3] > 0
    for _, _, text, output, origin in generated.tests:
        count, numbers = text.splitlines()
        values = list(map(int, numbers.split()))
        assert (len(values), origin) == (int(count), "mutation")
        assert all(0 <= value <= 10**9 for value in values)
        assert output == f"{sum(values)}\n"


STRANGE = [f"print({number})\n" for number in range(3)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("right", "validators", "reason"),
    [
        ([ODD, *RIGHT[1:]], [VALIDATOR], "the solutions disagree on inputs of its kind"),
        (RIGHT[:1], [VALIDATOR], "too few solutions vote: 1, 2 wanted"),
        (RIGHT[:2], [], "too few solutions vote: 2, 3 wanted"),
        (RIGHT, [], "no validator is believed, and no model wrote inputs"),
        ([*RIGHT, *STRANGE], [], "too few solutions vote: 3, 4 wanted"),  # two thirds of the right ones
    ],
)
def test_the_reason_why_nothing_was_made_is_stated(
    right: list[str], validators: list[Validator], reason: str, runner: Runner
) -> None:
    generated = made(runner, sums(*right), validators, BATCH=8, ROUNDS=2, MAX_INPUT_KB=1)
    assert (generated.reason, generated.tests) == (reason, [])
    assert (generated.inputs > 0) == (ODD in right)


def test_a_cut_input_is_refused_although_all_solutions_agree_on_it() -> None:
    texts = ["1\n7\n", f"90\n{' '.join(map(str, range(100, 170)))}..."]
    tests = pl.DataFrame([("sums", at, text, "0\n", "secret") for at, text in enumerate(texts)], TEST, orient="row")
    rows = [("sums", who, True, at, True, "a", True) for who in range(3) for at in range(2)]
    runs = pl.DataFrame(rows, tests_agreement.RUN, orient="row")
    decisions = tests_agreement.decide_tests(runs)
    assert decisions["why"].to_list() == ["agrees"] * 2
    unit = Unit({"id": "sums", "statement": ""}, tests, 0, pl.DataFrame(schema=SOLUTION), {})
    decided = tests_agreement.decide_tests(runs, inputs=known_inputs(unit, Vouching(), decisions))
    assert decided["why"].to_list() == ["agrees", "refused_input"]
    assert "cut it off" in decided["evidence"][1]


RESPONSE = "\n".join(f"```python\n{code}```" for code in (SUMS["generator"], "input()\n", CHEAT, RIGHT[0]))


def test_a_model_is_shown_given_tests_and_its_generator_prints_designed_and_small_inputs_each_once(
    runner: Runner,
) -> None:
    with made_with(DESIGNED_INPUTS=3):
        details = unit_request(sums(*RIGHT)).details
        inputs = inputs_from_model(runner, [RESPONSE], trusted=True)
    assert details["count"] == "3"
    assert details["examples"].startswith("\nExample 1, input:\n```\n2\n1 2\n```\nOutput:\n```\n3\n```\n")
    assert inputs.designed == ["5\n1000 1000 1000 1000 1000\n", "5\n3000 3000 3000 3000 3000\n"], "number 2 fails"
    assert inputs.small == ["2\n1 1\n", "2\n2 1\n", "2\n0 1\n"]


def test_wrong_programs_of_a_model_are_hunted_by_and_are_no_solutions(runner: Runner) -> None:
    assert wrong_programs_in([RESPONSE, RESPONSE]) == [CHEAT, RIGHT[0]]
    unit = sums(*RIGHT)
    voters, written = [one for one in unit.candidates() if one.right], [CHEAT, RIGHT[0], "print(0)\n"]
    hunt = Hunt(1, runner, unit.problem(CodeSettings(), 10.0), voters, unit.tests, written=written)
    with made_with(MUTANTS=0):
        hunted = hunt.failing([("2\n2 1\n", "3\n"), ("2\n1 1\n", "2\n")])
    assert [len(one) for one in hunted] == [1, 0], "the right one never fails, the third fails a sample"
    few = {"DESIGNED_INPUTS": 3, "ROUNDS": 1, "BATCH": 1, "MAX_INPUT_KB": 1, "MUTANTS": 0, "HUNTED_INPUTS": 4}
    generated = made(runner, unit, written=[RESPONSE], **few)
    assert set(generated.caught) <= {3}
    origins = {text: origin for _, _, text, _, origin in generated.tests}
    assert origins["2\n2 1\n"] == origins["5\n1000 1000 1000 1000 1000\n"] == "model"
