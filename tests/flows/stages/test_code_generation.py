"""Making a problem's tests: what is kept, why nothing was made, and how many large inputs there may be."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from curation.programs import execution_matrix, tests_agreement
from curation.programs.validation import GivenInput, Vouching, vouch
from curation.records import JUDGING, SOLUTION, TEST
from curation.verify.programs.problem import Validator, ValidatorLang
from curation.verify.programs.tools import Runner
from flows.run.recipe import parse_recipe
from flows.run.run_folder import Run
from flows.stages.code_generation import CHANGED, CHANGED_ORIGIN, GeneratedTests, generate_tests
from flows.stages.hunting import MUTANTS, begin_hunt
from flows.stages.sound_tests import NewInput
from flows.stages.tests import known_inputs
from flows.stages.units import Unit
from tests.made_limits import made_with

STATEMENT = """Sum them.

Input

- One line with an integer $n$ ($1 \\leq n \\leq 10^5$).
- One line with $n$ integers $a_1, \\ldots, a_n$ ($0 \\leq a_i \\leq 10^9$).

{more}

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
    more: str,
    right: int,
    first: str = RIGHT[0],
    limit: float = 10.0,
    validated: bool = True,
    **constants: object,
) -> GeneratedTests:
    """Return the tests made of the samples with ``right`` right solutions and a wrong one."""
    unit, run = problem_of(more, right, first=first, limit=limit)
    vouching = vouch(runner.tools, [VALIDATOR] if validated else [], [], GIVEN)
    return made_of(runner, unit, run, vouching, limit, **constants)


def made_of(
    runner: Runner, unit: Unit, run: Run, vouching: Vouching, limit: float = 10.0, **constants: object
) -> GeneratedTests:
    """Return the tests made of a problem."""
    ids = unit.tests.select("problem", pl.col("index").alias("test"))
    matrix = execution_matrix.run_execution_matrix(
        runner,
        "sums",
        unit.problem(run, limit),
        unit.candidates(),
        time_given=True,
    )
    decisions = tests_agreement.decide_tests(matrix.runs, ids)
    with made_with(**constants):
        return generate_tests(run, unit, runner, matrix.runs, decisions, unit.tests, limit, (), vouching)


def changed(text: str) -> NewInput:
    """Return a changed input."""
    return NewInput(text, CHANGED_ORIGIN, CHANGED)


def problem_of(
    more: str,
    right: int,
    first: str = RIGHT[0],
    limit: float = 10.0,
) -> tuple[Unit, Run]:
    """Return the problem with its samples, so many right solutions and a wrong one, and a run."""
    models = {"none": {"kind": "recorded", "path": "none.jsonl"}}
    source = {"name": "sums", "kind": "kattis", "path": "."}
    table = {"flow": "curate-code", "seed": 1, "sources": [source], "models": models, "stage1": {"model": "none"}}
    run = Run(Path("."), parse_recipe(table, "test"), Path("."))
    tests = pl.DataFrame(
        [("sums", i, *pair, "sample") for i, pair in enumerate(SAMPLES)], schema=TEST, orient="row"
    )  # fmt: skip
    codes = [*[(code, True) for code in [first, *RIGHT[1:]][:right]], (WRONG, False)]
    rows = [("sums", i, "python", code, label, f"{i}.py") for i, (code, label) in enumerate(codes)]
    solutions = pl.DataFrame(rows, schema=SOLUTION, orient="row")
    judging = dict.fromkeys(JUDGING.names()) | {"problem": "sums", "time_limit_s": limit, "memory_mb": 512}
    unit = Unit({"id": "sums", "statement": STATEMENT.format(more=more)}, tests, 0, solutions, judging)
    return unit, run


def test_changed_inputs_keep_the_form_and_catch_the_wrong_program(runner: Runner) -> None:
    generated = made(runner, "", 3, BATCH=6, ROUNDS=1, MAX_INPUT_KB=8)
    assert generated.reason == ""
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


def test_inputs_of_the_kind_on_which_a_solution_crashes_are_not_kept(runner: Runner) -> None:
    few = {"BATCH": 8, "ROUNDS": 2, "MAX_INPUT_KB": 1}
    assert made(runner, "", 3, **few).tests
    generated = made(runner, "", 3, first=ODD, **few)
    assert (generated.tests, generated.reason) == ([], "the solutions disagree on inputs of its kind")


def test_the_reason_why_nothing_was_made_is_stated(runner: Runner) -> None:
    alone = made(runner, "", 1, BATCH=4, ROUNDS=1)
    assert (alone.tests, alone.reason) == ([], "too few solutions vote: 1, 2 wanted")
    few = made(runner, "", 2, validated=False, BATCH=4, ROUNDS=1)
    assert few.reason == "too few solutions vote: 2, 3 wanted"
    unknown = made(runner, "", 3, validated=False, BATCH=4, ROUNDS=1)
    assert unknown.reason == "no validator is believed, and no model wrote inputs"
    assert unknown.counts() == (0, 0, 0, 0, 0, unknown.reason)


def test_without_a_validator_two_thirds_of_the_right_solutions_must_agree(runner: Runner) -> None:
    unit, run = problem_of("", 3)
    strange = [("sums", 9 + i, "python", f"print({i})\n", True, f"{i}.py") for i in range(3)]
    solutions = pl.concat([unit.solutions, pl.DataFrame(strange, schema=SOLUTION, orient="row")])
    generated = made_of(runner, dataclasses.replace(unit, solutions=solutions), run, Vouching())
    assert generated.reason == "too few solutions vote: 3, 4 wanted"


def test_a_cut_input_is_in_doubt_before_its_output_is_corrected() -> None:
    texts = [f"{n}\n{' '.join(map(str, range(n)))}\n" for n in range(1, 10)] + ["4\n1 2\n", "2\n1 5\n"]
    tests = pl.DataFrame([("sums", i, text, "0\n", "secret") for i, text in enumerate(texts)], TEST, orient="row")
    runs = [("sums", who, True, i, True, "a", i < 9) for who in range(3) for i in range(len(texts))]
    decisions = tests_agreement.decide_tests(pl.DataFrame(runs, tests_agreement.RUN, orient="row"))
    assert decisions["why"].to_list() == ["agrees"] * 9 + ["corrected"] * 2
    unit = Unit({"id": "sums", "statement": ""}, tests, 0, pl.DataFrame(schema=SOLUTION), {})
    assert known_inputs(unit, Vouching(), decisions).rows() == [("sums", 9, None, None)]


def test_a_cut_input_is_refused_although_all_solutions_agree_on_it() -> None:
    texts = ["1\n7\n", f"90\n{' '.join(map(str, range(100, 170)))}..."]
    tests = pl.DataFrame([("sums", i, text, "0\n", "secret") for i, text in enumerate(texts)], TEST, orient="row")
    rows = [("sums", who, True, i, True, "a", True) for who in range(3) for i in range(2)]
    runs = pl.DataFrame(rows, tests_agreement.RUN, orient="row")
    decisions = tests_agreement.decide_tests(runs)
    assert decisions["why"].to_list() == ["agrees"] * 2
    inputs = known_inputs(
        Unit({"id": "sums", "statement": ""}, tests, 0, pl.DataFrame(schema=SOLUTION), {}), Vouching(), decisions
    )
    decided = tests_agreement.decide_tests(runs, inputs=inputs)
    assert decided["why"].to_list() == ["agrees", "refused_input"]
    assert "cut it off" in decided["evidence"][1]


def test_a_slow_program_in_python_does_not_forbid_an_input_within_its_own_limit(runner: Runner) -> None:
    slow = "import time\nend = time.process_time() + 0.25\nwhile time.process_time() < end: pass\n" + RIGHT[0]
    found = {}
    for factor in (1.0, 3.0):
        few = {"BATCH": 1, "ROUNDS": 1, "MAX_INPUT_KB": 1, "MUTANTS": 0, "HUNTED_INPUTS": 0}
        few |= {"TIME_FACTORS": {"python": factor, "cpp": 1.0}}
        found[factor] = made(runner, "", 3, first=slow, limit=0.3, **few)
    assert found[1].reason == "the voting solutions agree on no input, or take too long"
    assert found[3].tests


def test_mutants_of_voting_solutions_that_pass_the_given_tests_are_hunted(runner: Runner) -> None:
    unit, run = problem_of("", 3)
    voters = [one for one in unit.candidates() if one.right]
    hunt = begin_hunt(run, unit, runner, 10.0, voters, unit.tests)
    assert hunt.over, "no test has been made"
    assert hunt.failing(SAMPLES) == [frozenset()] * len(SAMPLES)
    assert hunt.mutants is not None
    assert 1 <= len(hunt.mutants) <= MUTANTS
    assert all(mutant.index < 0 for mutant in hunt.mutants), "a mutant is no solution"
    assert not hunt.over
    everyone = frozenset(mutant.index for mutant in hunt.mutants)
    assert [hunt.learn(everyone) for _ in range(3)] == [True, True, False]
    assert hunt.over


def test_of_many_inputs_those_with_rare_answers_are_chosen(runner: Runner) -> None:
    unit, run = problem_of("", 3)
    hunt = begin_hunt(run, unit, runner, 10.0, unit.candidates()[:1], unit.tests)
    made_inputs = [changed(f"2\n1000 {n}\n") for n in range(20)] + [changed("2\n0 0\n")]
    assert hunt.sweep(made_inputs, 1, Counter())[0].text == "2\n0 0\n"


def test_mutants_and_hunted_inputs_catch_and_count_no_solution(runner: Runner) -> None:
    generated = made(runner, "", 3, BATCH=4, ROUNDS=2, MAX_INPUT_KB=8, MUTANTS=4, HUNTED_INPUTS=4)
    assert set(generated.caught) == {3}
    assert generated.inputs > 2 * 4


def test_of_many_inputs_those_are_chosen_on_which_a_known_wrong_program_answers_otherwise(runner: Runner) -> None:
    unit, run = problem_of("", 3)
    voters, wrong = unit.candidates()[:1], [one for one in unit.candidates() if one.right is False]
    hunt = begin_hunt(run, unit, runner, 10.0, voters, unit.tests, wrong)
    small = [changed(f"2\n{n} 3\n") for n in range(20)]
    telling = changed("2\n900 173\n")
    assert hunt.sweep([*small, telling], 1, Counter()) == [telling]
    caught = Counter({one.index: 3 for one in wrong})
    assert hunt.sweep([*small, telling], 1, caught) != [telling], "enough tests fail it"


def test_a_program_that_answers_all_sweeps_right_is_swept_no_more(runner: Runner) -> None:
    unit, run = problem_of("", 3)
    wrong = [one for one in unit.candidates() if one.right is False]
    hunt = begin_hunt(run, unit, runner, 10.0, unit.candidates()[:1], unit.tests, wrong)
    small = [changed(f"2\n{n} 3\n") for n in range(4)]
    for _ in range(5):
        hunt.sweep(small, 1, Counter())
    assert hunt.idle == {one.index: 3 for one in wrong}


def test_mutants_are_drawn_again_once_all_fail_and_pass_what_was_made(runner: Runner) -> None:
    unit, run = problem_of("", 3)
    hunt = begin_hunt(run, unit, runner, 10.0, [one for one in unit.candidates() if one.right], unit.tests)
    hunt.failing(SAMPLES)
    first = list(hunt.mutants or ())
    hunt.renew([])
    assert hunt.mutants == first, "they are still alive"
    for _ in range(2):
        hunt.learn(frozenset(one.index for one in first))
    made_before = [("2\n0 0\n", "0\n"), ("2\n7 3\n", "10\n")]
    hunt.renew(made_before)
    later = (hunt.mutants or [])[len(first) :]
    assert not {one.submission.code for one in later} & {one.submission.code for one in first}
    assert set(hunt.first_failures(later, made_before).values()) <= {None}
    assert len({one.index for one in [*first, *later]}) == len(first) + len(later)
