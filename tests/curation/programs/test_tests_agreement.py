"""Agreement of solutions on tests: each rule on a matrix small enough to read, and planted faults at size."""

import random

import polars as pl

from curation.config import CodeSettings
from curation.programs.tests_agreement import (
    INPUT,
    RUN,
    decide_problems,
    decide_tests,
    deviating_solutions,
    majority_outputs,
)
from tests.curation.tables import check_table

SETTINGS = CodeSettings(min_tests=1)


def matrix(rows, right=None, problem="p", expected="e"):
    """RUN rows of a matrix: one list a solution, one output a test; None is a crash."""
    labels = right or [True] * len(rows)
    runs = [
        (problem, solution, labels[solution], test, output is not None, output, output == expected)
        for solution, outputs in enumerate(rows)
        for test, output in enumerate(outputs)
    ]
    return pl.DataFrame(runs, schema=RUN, orient="row")


def why(runs):
    """decision/why per test."""
    return [f"{d}/{w}" for d, w in decide_tests(runs).select("decision", "why").iter_rows()]


def test_each_rule_on_one_test():
    # every other test is sound, so that no solution is set aside for this one
    check_table("agreement on a test", lambda column: why(matrix([[one, "e", "e", "e"] for one in column]))[0])


def test_a_tie_goes_to_the_expected_output_whatever_the_order():
    runs = matrix([["z"], ["e"], ["a"]])
    for seed in range(5):
        modal = majority_outputs(runs.sample(fraction=1.0, shuffle=True, seed=seed))
        assert modal.row(0, named=True)["output"] == "e"


def test_a_test_whose_runs_all_broke_is_discarded_and_not_lost():
    runs = matrix([["e"], ["e"]])
    asked = pl.DataFrame({"problem": ["p", "p"], "test": [0, 1]})
    decided = decide_tests(runs, asked)
    assert decided.select("test", "decision", "why").rows() == [(0, "keep", "agrees"), (1, "discard", "no_votes")]


def test_refused_inputs_are_dropped_with_their_evidence_and_unproven_ones_are_not_corrected():
    runs = matrix([["e", "x", "x", "e", "e"]] * 3)
    said = [("p", 0, False, "43: n is too large"), ("p", 1, None, None), ("p", 2, True, None), ("p", 3, None, None)]
    inputs = pl.DataFrame(said, schema=INPUT, orient="row")
    decided = decide_tests(runs, None, inputs)
    assert decided.select("decision", "why", "evidence").rows() == [
        ("discard", "refused_input", "43: n is too large"),
        ("discard", "unproven_input", None),
        ("correct", "corrected", None),
        *[("keep", "agrees", None)] * 2,
    ]


def test_wrong_solutions_do_not_vote():
    runs = matrix([["e", "e"], ["x", "x"], ["x", "x"], ["x", "x"]], [True, False, False, False])
    assert why(runs) == ["keep/agrees"] * 2


def test_a_solution_that_crashes_nearly_everywhere_is_set_aside():
    runs = matrix([["e", "e", "e"], ["e", "e", "e"], [None, None, "x"]])
    assert deviating_solutions(runs).select("solution", "why").rows() == [(2, "fails")]


def test_a_solution_that_deviates_everywhere_is_set_aside_only_where_three_others_vote():
    three = matrix([["e"] * 4, ["e"] * 4, ["x", "y", "z", "e"]])
    four = matrix([["e"] * 4, ["e"] * 4, ["e"] * 4, ["x", "y", "z", "e"]])
    assert deviating_solutions(three).is_empty()
    assert deviating_solutions(four).select("solution", "why").rows() == [(3, "deviates")]


def test_several_outputs_drop_the_problem_unless_it_has_a_checker():
    runs = matrix([["a", "b", "e", "e"], ["b", "c", "e", "e"], ["c", "d", "e", "e"]])
    tests = decide_tests(runs)
    assert decide_problems(runs, tests, SETTINGS)["reason"].to_list() == ["several_outputs"]
    with_checker = decide_problems(runs, tests, SETTINGS, pl.Series(["p"]))
    assert with_checker["reason"].to_list() == [None]


def test_tests_that_were_made_do_not_hide_several_outputs():
    runs = matrix([["a", "b", *["e"] * 30], ["b", "c", *["e"] * 30], ["c", "d", *["e"] * 30]])
    tests = decide_tests(runs)
    made = pl.DataFrame({"problem": "p", "test": range(2, 32)}, schema={"problem": pl.String, "test": pl.Int32})
    assert decide_problems(runs, tests, SETTINGS)["reason"].to_list() == [None]
    decided = decide_problems(runs, tests, SETTINGS, None, made)
    assert decided["evidence"].to_list() == ["the solutions do not agree on 100.0 % of 2 tests"]


def test_problem_rules_and_their_numbers():
    settings = CodeSettings(min_tests=3)
    sound = matrix([["e"] * 3] * 3, problem="sound")
    alone = matrix([[None] * 3], problem="alone")
    short = matrix([["e"] * 2] * 3, problem="short")
    runs = pl.concat([sound, alone, short])
    decided = decide_problems(runs, decide_tests(runs), settings)
    reasons = [("alone", "no_solution"), ("short", "too_few_tests"), ("sound", None)]
    assert decided.select("problem", "reason").rows() == reasons
    assert decided["evidence"].to_list()[1] == "2 of 2 tests stay, 3 wanted"


def test_a_wrong_solution_that_passes_everything_makes_a_weakly_tested_problem_and_a_discarded_test_catches_none():
    missed = matrix([["e", "e"], ["e", "e"], ["e", "x"], ["e", "e"]], [True, True, False, False])
    discarded = matrix([["e", "a"], ["e", "b"], ["e", "c"]], [True, True, False])
    for runs, expected in ((missed, (2, 1, True)), (discarded, (1, 0, True))):
        decided = decide_problems(runs, decide_tests(runs), SETTINGS)
        assert decided.select("wrong_solutions", "wrong_caught", "weakly_tested").row(0) == expected


def test_every_test_gets_one_decision_whatever_the_matrix_its_order_and_the_other_problems():
    draw = random.Random(7)
    matrices = []
    for number in range(500):
        width, height = draw.randint(1, 5), draw.randint(1, 6)
        rows = [[draw.choice([None, "e", "x", "y"]) for _ in range(width)] for _ in range(height)]
        matrices.append(matrix(rows, problem=f"{number:03}"))
    runs = pl.concat(matrices)
    decided = decide_tests(runs)
    assert decided.select("problem", "test").rows() == sorted(runs.select("problem", "test").unique().rows())
    assert decided["decision"].is_in(["keep", "correct", "discard"]).all()
    assert decided.equals(decide_tests(runs.reverse()))
    assert decided.filter(problem="003").equals(decide_tests(matrices[3]))
    problems = decide_problems(runs, decided, SETTINGS)
    assert problems["problem"].to_list() == [f"{number:03}" for number in range(500)]
    counted = problems.select("tests_kept", "tests_corrected", "tests_discarded").sum_horizontal()
    assert problems["tests"].to_list() == counted.to_list()
