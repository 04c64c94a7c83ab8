"""Tasks are run on one another, in the sandbox: what behaves the same is the same task, whatever its words."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl
import pytest

from curation.filters.decontamination.behaviour import MOSTLY, OTHER, SAME, Side, Trial, side_of, try_pairs, with_trials
from curation.filters.decontamination.overlap import SCORE, OverlapSettings, classify_hits
from curation.verify.programs.problem import CodeProblem, CodeTest, FunctionCall, FunctionTests
from curation.verify.programs.tools import Runner

SUM = "def total(xs):\n    return sum(xs)\n"
PRODUCT = "def total(xs):\n    p = 1\n    for x in xs:\n        p *= x\n    return p\n"
HUMAN_EVAL = 'def total(xs):\n    """ Add them.\n    >>> total([1, 2, 3])\n    6\n    """\n'
PORT = "function addAll(xs) {}\naddAll([4, 5]); // 9\naddAll([4, 5, 1]); // 10\n"


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    with Runner(2) as runner:
        yield runner


def tried(runner: Runner, row: Side, other: Side) -> Trial:
    ((trial,),) = try_pairs(runner, [(row, [other])])
    return trial


def calls(*pairs: tuple[list[int], int]) -> CodeProblem:
    return CodeProblem("p", function=FunctionTests("add", calls=tuple(FunctionCall((xs,), told) for xs, told in pairs)))


def test_a_ports_examples_are_run_on_the_benchmarks_program(runner: Runner) -> None:
    port = side_of(PORT)
    assert tried(runner, port, side_of("", [SUM])) == Trial(SAME, 2, 2)
    assert tried(runner, port, side_of("", [PRODUCT])).word is None  # a port's figures may be wrong: nothing is taken


def test_a_solution_goes_on_behind_its_statement(runner: Runner) -> None:
    other = side_of(HUMAN_EVAL, ["    return sum(xs)\n"])
    assert other.program == (HUMAN_EVAL + "    return sum(xs)\n", "total")
    assert tried(runner, side_of(PORT), other).word == SAME
    assert side_of(HUMAN_EVAL).program is None  # a head alone is no program


def test_given_tests_and_programs_can_speak_against_a_pair(runner: Runner) -> None:
    row = side_of("Sum them.", ["def add(xs):\n    return sum(xs)\n"], calls(([1, 2], 3), ([4, 5], 9)))
    assert tried(runner, row, side_of("", [SUM])).word == SAME
    assert tried(runner, row, side_of("", [PRODUCT])) == Trial(OTHER, 0, 4)


def test_a_benchmark_with_tests_alone_is_tried_by_the_rows_program(runner: Runner) -> None:
    row = side_of("Sum them.", ["def add(xs):\n    return sum(xs)\n"])
    tests = "assert total([1, 2]) == 3\nassert total([5, 5]) == 10"
    assert tried(runner, row, side_of("Add up.", tests=tests)).word == SAME
    assert tried(runner, row, side_of("Add up.", tests=tests.replace("10", "25").replace("3", "2"))).word == OTHER


def test_programs_that_read_and_print(runner: Runner) -> None:
    problem = CodeProblem("p", (CodeTest(b"1 2\n", b"3\n"), CodeTest(b"4 4\n", b"8\n")))
    row = side_of("Sum.", ["print(sum(map(int, input().split())))\n"], problem)
    shown = "Sample Input 1\n\n2 3\n\nSample Output 1\n\n{}\n\nSample Input 2\n\n5 5\n\nSample Output 2\n\n{}\n"
    assert tried(runner, row, side_of(shown.format(5, 10))).word == SAME
    assert tried(runner, row, side_of(shown.format(6, 25))).word == OTHER
    assert tried(runner, row, side_of("", [SUM])) == Trial(None, 0, 0)  # a function and a program are not compared


def test_one_yes_says_nothing_and_one_list_does(runner: Runner) -> None:
    even, upto = "def f(n):\n    return n % 2 == 0\n", "def f(n):\n    return list(range(n))\n"
    assert (
        tried(runner, side_of("def g(n):\n    # g(4) == True\n    # g(6) == True\n"), side_of("", [even])).word is None
    )
    assert tried(runner, side_of("def g(n):\n    # g(4) == [0, 1, 2, 3]\n"), side_of("", [upto])).word == MOSTLY


@pytest.mark.parametrize(
    "program",
    ["def f(n):\n    while True:\n        pass\n", "import os\ndef f(n):\n    os._exit(0)\n",
     "def f(n):\n    return f\n",
     "def f(n):\n    return 10 ** 9999\n", "import nothing_like_this\ndef f(n):\n    return n\n"],
)  # fmt: skip
def test_a_program_that_fails_says_nothing(runner: Runner, program: str) -> None:
    row = side_of("def g(n):\n    # g(1) == 1\n    # g(2) == 2\n")
    trials = try_pairs(runner, [(row, [side_of("", [program]), side_of("", ["def f(n):\n    return n\n"])])])
    assert trials[0][0].word is None


def test_what_behaves_the_same_overlaps_and_what_does_not_stays(runner: Runner) -> None:
    rows = [side_of(PORT), side_of("Sum.", ["def add(xs):\n    return sum(xs)\n"], calls(([1, 2], 3), ([4, 5], 9)))]
    benchmarks = {("exam", 0): side_of("", [SUM]), ("exam", 1): side_of("", [PRODUCT])}
    pairs = [(0, 0.45, 0), (0, 0.45, 1), (1, 0.75, 1), (1, 0.81, 1)]
    scores = pl.DataFrame(
        [{"row": row, "method": "embedding", "score": score, "agreement": 1.0, "formal": False, "wording": 0.0,
          "benchmark": "exam", "benchmark_row": at} for row, score, at in pairs],
        schema_overrides={"row": pl.Int64, "benchmark_row": pl.Int64},
    ).match_to_schema(SCORE, missing_columns="insert")  # fmt: skip
    settings = OverlapSettings(programs=True, figures=0.0, formulas=0.0, cosine=0.72, behaviour=True)
    tried_scores = with_trials(scores, rows, benchmarks, runner)
    assert tried_scores["calls"].to_list() == [2, 2, 4, 4]
    hits = classify_hits(tried_scores, settings)
    assert hits.select("row", "score", "benchmark_row").rows() == [(0, 0.45, 0), (1, 0.81, 1)]
    assert classify_hits(scores, settings).select("row", "score").rows() == [(1, 0.75), (1, 0.81)]
