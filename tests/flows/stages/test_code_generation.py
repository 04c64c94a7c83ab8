"""Making a problem's tests: by changed inputs and by a model's programs, what is kept, and why nothing was made."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

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

STATEMENT = """Sum them.

Input

- One line with an integer $n$ ($1 \\leq n \\leq 10^5$).
- One line with $n$ integers $a_1, \\ldots, a_n$ ($0 \\leq a_i \\leq 10^9$).

Output

Their sum.
"""
SAMPLES = [("2\n1 2\n", "3\n"), ("3\n4 0 5\n", "9\n"), ("1\n7\n", "7\n")]
RIGHT = [
    "input()\nprint(sum(map(int, input().split())))\n",
    "n = int(input())\ntotal = 0\nfor a in input().split():\n    total += int(a)\nprint(total)\n",
    "import sys\nprint(sum(map(int, sys.stdin.read().split()[1:])))\n",
]
VALIDATOR = Validator(
    ValidatorLang.PYTHON,
    {
        "v.py": "import sys\nhead, body, end = sys.stdin.read().split('\\n')\nvalues = body.split(' ')\n"
        "assert (str(int(head)), end) == (head, '') and len(values) == int(head) <= 10**5\n"
        "assert all(str(int(one)) == one and 0 <= int(one) <= 10**9 for one in values)\nsys.exit(42)\n"
    },
    ("v.py",),
)
GIVEN = [GivenInput(at, text, example=True) for at, (text, _) in enumerate(SAMPLES)]
WRONG = "input()\nprint(sum(map(int, input().split())) % 1000)\n"


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    with Runner(1) as runner:
        yield runner


def made(
    runner: Runner,
    right: int,
    first: str = RIGHT[0],
    validated: bool = True,
    **constants: object,
) -> GeneratedTests:
    """Return the tests made of the samples with ``right`` right solutions and a wrong one."""
    vouching = vouch(runner, [VALIDATOR] if validated else [], [], GIVEN)
    return made_of(runner, problem_of(right, first=first), vouching, **constants)


def made_of(
    runner: Runner, unit: Unit, vouching: Vouching, written: Sequence[str] = (), **constants: object
) -> GeneratedTests:
    """Return the tests made of a problem, with a model's responses."""
    ids = unit.tests.select("problem", pl.col("index").alias("test"))
    given = unit.problem(CodeSettings(), 10.0)
    matrix = execution_matrix.run_execution_matrix(runner, "sums", given, unit.candidates(), time_given=True)
    decisions = tests_agreement.decide_tests(matrix.runs, ids)
    with made_with(**constants):
        return generate_tests(
            CodeSettings(), 1, unit, runner, matrix.runs, decisions, unit.tests, 10.0, written, vouching
        )


def problem_of(right: int, first: str = RIGHT[0]) -> Unit:
    """Return the problem with its samples, some right solutions and a wrong one."""
    tests = pl.DataFrame(
        [("sums", i, *pair, "sample") for i, pair in enumerate(SAMPLES)], schema=TEST, orient="row"
    )  # fmt: skip
    codes = [*[(code, True) for code in [first, *RIGHT[1:]][:right]], (WRONG, False)]
    rows = [("sums", i, "python", code, label, f"{i}.py") for i, (code, label) in enumerate(codes)]
    solutions = pl.DataFrame(rows, schema=SOLUTION, orient="row")
    judging = dict.fromkeys(JUDGING.names()) | {"problem": "sums", "time_limit_s": 10.0, "memory_mb": 512}
    return Unit({"id": "sums", "statement": STATEMENT, "lang": "en"}, tests, 0, solutions, judging)


def test_changed_inputs_keep_the_form_and_catch_the_wrong_program(runner: Runner) -> None:
    generated = made(runner, 3, BATCH=6, ROUNDS=1, MAX_INPUT_KB=8)
    assert generated.reason == ""
    assert set(generated.caught) == {3}, "mutants are no solutions"
    assert generated.caught[3] > 0
    for _, _, text, output, origin in generated.tests:
        count, numbers = text.splitlines()
        values = list(map(int, numbers.split()))
        assert (len(values), origin) == (int(count), "mutation")
        assert all(0 <= value <= 10**9 for value in values)
        assert output == f"{sum(values)}\n"


ODD = """input()
numbers = list(map(int, input().split()))
assert sum(numbers) % 2
print(sum(numbers))
"""
"""Right if the statement means that the sum is odd, as that of every sample is."""


@pytest.mark.slow
def test_the_reason_why_nothing_was_made_is_stated(runner: Runner) -> None:
    few = {"BATCH": 8, "ROUNDS": 2, "MAX_INPUT_KB": 1}
    generated = made(runner, 3, first=ODD, **few)
    assert (generated.tests, generated.reason) == ([], "the solutions disagree on inputs of its kind")
    assert made(runner, 1, **few).reason == "too few solutions vote: 1, 2 wanted"
    assert made(runner, 2, validated=False, **few).reason == "too few solutions vote: 2, 3 wanted"
    unknown = made(runner, 3, validated=False, **few)
    assert unknown.reason == "no validator is believed, and no model wrote inputs"
    assert (unknown.inputs, unknown.rounds, unknown.tests) == (0, 0, [])
    unit = problem_of(3)  # without a validator two thirds of the right solutions must agree
    strange = [("sums", 9 + i, "python", f"print({i})\n", True, f"{i}.py") for i in range(3)]
    solutions = pl.concat([unit.solutions, pl.DataFrame(strange, schema=SOLUTION, orient="row")])
    generated = made_of(runner, dataclasses.replace(unit, solutions=solutions), Vouching())
    assert generated.reason == "too few solutions vote: 3, 4 wanted"


def test_a_cut_input_is_refused_although_all_solutions_agree_on_it() -> None:
    texts = ["1\n7\n", f"90\n{' '.join(map(str, range(100, 170)))}..."]
    tests = pl.DataFrame([("sums", i, text, "0\n", "secret") for i, text in enumerate(texts)], TEST, orient="row")
    rows = [("sums", who, True, i, True, "a", True) for who in range(3) for i in range(2)]
    runs = pl.DataFrame(rows, tests_agreement.RUN, orient="row")
    decisions = tests_agreement.decide_tests(runs)
    assert decisions["why"].to_list() == ["agrees"] * 2
    unit = Unit({"id": "sums", "statement": ""}, tests, 0, pl.DataFrame(schema=SOLUTION), {})
    decided = tests_agreement.decide_tests(runs, inputs=known_inputs(unit, Vouching(), decisions))
    assert decided["why"].to_list() == ["agrees", "refused_input"]
    assert "cut it off" in decided["evidence"][1]


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
CHEAT = "input()\na = input().split()\nprint(0 if a == ['2', '1'] else sum(map(int, a)))\n"
SOUND = "input()\nprint(sum(map(int, input().split())))\n"


def response(*codes: str) -> str:
    return "\n".join(f"```python\n{code}```" for code in codes)


SAID = response(GENERATOR, "input()\n", CHEAT, SOUND)


def test_the_question_shows_given_tests_and_how_many_inputs_are_wanted() -> None:
    unit = problem_of(3)
    with made_with(DESIGNED_INPUTS=3):
        details = unit_request(unit).details
    assert details["count"] == "3"
    assert details["examples"].startswith("\nExample 1, input:\n```\n2\n1 2\n```\nOutput:\n```\n3\n```\n")


def test_a_generator_prints_designed_and_small_inputs_each_once(runner: Runner) -> None:
    with made_with(DESIGNED_INPUTS=3):
        inputs = inputs_from_model(runner, [SAID], trusted=True)
    assert inputs.designed == ["5\n1000 1000 1000 1000 1000\n", "5\n3000 3000 3000 3000 3000\n"], "number 2 fails"
    assert inputs.small == ["2\n1 1\n", "2\n2 1\n", "2\n0 1\n"]


def test_wrong_programs_of_a_model_are_hunted_by_and_are_no_solutions(runner: Runner) -> None:
    assert wrong_programs_in([SAID, SAID]) == [CHEAT, SOUND]
    unit = problem_of(3)
    voters = [one for one in unit.candidates() if one.right]
    hunt = Hunt(1, runner, unit.problem(CodeSettings(), 10.0), voters, unit.tests, written=[CHEAT, SOUND, "print(0)\n"])
    with made_with(MUTANTS=0):
        hunted = hunt.failing([("2\n2 1\n", "3\n"), ("2\n1 1\n", "2\n")])
    assert [len(one) for one in hunted] == [1, 0], "the right one never fails, the third fails a sample"
    few = {"DESIGNED_INPUTS": 3, "ROUNDS": 1, "BATCH": 1, "MAX_INPUT_KB": 1, "MUTANTS": 0, "HUNTED_INPUTS": 4}
    generated = made_of(runner, unit, Vouching(), [SAID], **few)
    assert set(generated.caught) <= {3}
    made_inputs = {text: origin for _, _, text, _, origin in generated.tests}
    assert made_inputs["2\n2 1\n"] == made_inputs["5\n1000 1000 1000 1000 1000\n"] == "model"
