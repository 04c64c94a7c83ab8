"""The matrix, on real programs in the real sandbox, and what agreement makes of it."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from curation.config import CodeSettings
from curation.programs import execution_matrix, tests_agreement
from curation.programs.execution_matrix import (
    Candidate,
    ExecutionMatrix,
    corrected,
    draw_candidates,
    run_execution_matrix,
)
from curation.records import TEST
from curation.verify.programs.comparison import Comparison
from curation.verify.programs.problem import CodeLang, CodeProblem, CodeTest, Submission
from curation.verify.programs.tables import checker_of
from curation.verify.programs.tools import Runner
from flows.stages.tests import execution_matrix_lines

RIGHT = "print(int(input()) + 1)"
ALSO = "n = int(input())\nprint(n - -1)"
THIRD = "import sys\nprint(1 + int(sys.stdin.read()))"
WRONG = "print(abs(int(input())) + 1)"


def candidates(*programs: tuple[str, bool | None]) -> list[Candidate]:
    return [Candidate(i, Submission(CodeLang.PYTHON, code), right) for i, (code, right) in enumerate(programs)]


def problem(*pairs: tuple[str, str], **more: object) -> CodeProblem:
    tests = tuple(CodeTest(given.encode(), wanted.encode()) for given, wanted in pairs)
    return CodeProblem("p", tests, cpu_s=1.0, **more)  # type: ignore[arg-type]


def measured(runner: Runner, asked: CodeProblem, programs: list[Candidate], **settings: Any) -> ExecutionMatrix:
    return run_execution_matrix(runner, "p", asked, programs, **{"time_given": True, **settings})


def test_a_wrong_expected_output_is_corrected_and_a_wrong_solution_is_caught(runner: Runner) -> None:
    asked = problem(("1\n", "2\n"), ("5\n", "7\n"), ("-3\n", "-2\n"))
    programs = candidates((RIGHT, True), (ALSO, True), (THIRD, None), (WRONG, False))
    made = measured(runner, asked, programs)
    assert made.judged == 12
    assert made.broken == 0
    decisions = tests_agreement.decide_tests(made.runs)
    assert decisions["decision"].to_list() == ["keep", "correct", "keep"]
    given = [("p", i, test.input.decode(), test.output.decode(), "given") for i, test in enumerate(asked.tests)]
    after = corrected(pl.DataFrame(given, schema=TEST, orient="row"), decisions, made.outputs)
    assert after["output"].to_list() == ["2\n", "6\n", "-2\n"]
    verdict = tests_agreement.decide_problems(made.runs, decisions, CodeSettings(min_tests=3)).row(0, named=True)
    assert (verdict["keep"], verdict["wrong_caught"], verdict["weakly_tested"]) == (True, 1, False)


def test_a_test_without_expected_output_gets_the_output_that_all_agree_on(runner: Runner) -> None:
    programs = candidates((RIGHT, True), (ALSO, True), (THIRD, True))
    asked = problem(("8\n", ""))
    made = measured(runner, asked, programs, indices=[41], known=[False])
    assert made.runs["expected"].to_list() == [False] * 3
    assert made.outputs.select("test", "output").rows() == [(41, "9\n")]


@pytest.mark.slow
def test_failures_are_named_and_a_slow_solution_is_given_up(runner: Runner) -> None:
    asked = problem(*((f"{n}\n", f"{n + 1}\n") for n in range(4)))
    programs = candidates(("while True: pass", False), ("raise SystemExit(3)", True), ("print(", True), (RIGHT, True))
    made = measured(runner, asked, programs, give_up=2)
    ended = {i: group["ended"].to_list() for (i,), group in made.runs.group_by("solution")}
    assert ended[0] == ["TLE", "TLE", "skipped", "skipped"]
    assert ended[1] == ["RTE"] * 4
    assert set(ended[2]) == {"CE"}
    assert ended[3] == ["ok"] * 4


def test_the_standard_that_a_solution_was_compiled_as_is_kept_and_told(runner: Runner, tmp_path: Path) -> None:
    new = '#include <cstdio>\nint main() { int n; scanf("%d", &n); printf("%d", n + 1); }'
    old = '#include <cstdio>\nint main() throw(int) { int n; scanf("%d", &n); printf("%d", n + 1); }'
    programs = [
        Candidate(place, Submission(lang, code), True)
        for place, (lang, code) in enumerate(((CodeLang.CPP, new), (CodeLang.CPP, old), (CodeLang.PYTHON, RIGHT)))
    ]
    made = measured(runner, problem(("1\n", "2\n")), programs)
    assert made.runs.select("ended", "standard").rows() == [("ok", "gnu++20"), ("ok", "gnu++14"), ("ok", None)]
    (tmp_path / "runs").mkdir()
    made.runs.write_parquet(tmp_path / "runs" / "00000.parquet")
    assert list(execution_matrix_lines(tmp_path, tmp_path, "p"))[:2] == [
        "solution 0 of the source, cpp, labelled right: 1 as expected",
        "solution 1 of the source, cpp, compiled as gnu++14, labelled right: 1 as expected",
    ]


def test_a_limit_that_the_source_does_not_name_is_measured(runner: Runner) -> None:
    made = measured(runner, problem(("1\n", "2\n")), candidates((RIGHT, True)), time_given=False)
    assert made.time_limit_s == 1.0


LOOKS_AT_THE_INPUT = "import sys\na = [open(n).read().split() for n in sys.argv[1:4]]\nprint(int(a[2][0] in a[0]))"
FIRST, LAST, ANY = "print(input().split()[0])", "print(input().split()[-1])", "print(sorted(input().split())[1])"


def _asked_of(checker: str, *pairs: tuple[str, str]) -> CodeProblem:
    return problem(*pairs, checker=checker_of({"checker": checker, "checker_kind": "script", "checker_lang": "python"}))


def test_a_checker_puts_all_that_it_accepts_into_one_class(runner: Runner) -> None:
    programs = candidates((FIRST, True), (LAST, True), ("print(99)", False))
    asked = _asked_of(LOOKS_AT_THE_INPUT, ("3 4 5\n", "4\n"), ("6 7 8\n", "6\n"))
    made = measured(runner, asked, programs)
    assert made.runs.sort("solution", "test")["expected"].to_list() == [True, True, True, True, False, False]
    assert made.broken == 0


def test_an_output_that_its_own_checker_refuses_is_none(runner: Runner) -> None:
    """Solutions may print the same of an input that was guaranteed to have a solution and has none."""
    programs = candidates((FIRST, True), ("a = input().split()\nprint(a[0])", True), ("print(input()[0])", True))
    above = "import sys\na = [open(n).read().split() for n in sys.argv[1:4]]\nprint(int(int(a[2][0]) > 4))"
    asked = _asked_of(above, ("7 8 9\n", ""), ("3 8 9\n", ""), ("5 5 5\n", "5\n"))
    made = measured(runner, asked, programs, known=[False, False, True])
    assert sorted(made.runs["test"].unique()) == [0, 2]
    assert made.runs.group_by("test").agg(pl.col("output").n_unique()).sort("test").rows() == [(0, 1), (2, 1)]
    assert made.broken == 0


def test_a_wrong_expected_output_is_found_though_the_checker_never_looks_at_it(runner: Runner) -> None:
    asked = _asked_of(
        LOOKS_AT_THE_INPUT, *((f"{n} {n + 1} {n + 2}\n", f"{n + 1}\n") for n in range(4)), ("7 8 9\n", "5\n")
    )
    programs = candidates((FIRST, True), (LAST, True), (ANY, True))
    made = measured(runner, asked, programs)
    decisions = tests_agreement.decide_tests(made.runs)
    assert decisions["decision"].to_list() == ["keep"] * 4 + ["correct"]
    assert made.outputs.select("test", "output").rows() == [(4, "7\n")]
    hints = _asked_of(LOOKS_AT_THE_INPUT, *((f"{n} {n + 1} {n + 2}\n", "any\n") for n in range(3)))
    made = measured(runner, hints, programs)  # expected outputs that are hints to the checker are left alone
    assert tests_agreement.decide_tests(made.runs)["decision"].to_list() == ["keep"] * 3


def test_a_checker_that_fails_says_nothing_but_that_an_answer_it_cannot_read_is_none(runner: Runner) -> None:
    programs = candidates((FIRST, True), (LAST, True), (ANY, True))
    failing = _asked_of("raise SystemExit(3)", ("1 2 3\n", "x\n"))
    made = measured(runner, failing, programs)
    assert made.runs.is_empty()
    assert made.broken == 3
    reading = LOOKS_AT_THE_INPUT.replace("print", "int(a[1][0]); print")
    asked = _asked_of(reading, ("1 2 3\n", "2\n"), ("4 5 6\n", "5x\n"))
    made = measured(runner, asked, programs)
    assert tests_agreement.decide_tests(made.runs)["decision"].to_list() == ["keep", "correct"]


def test_a_tolerance_joins_near_outputs(runner: Runner) -> None:
    programs = candidates(("print(0.3333333)", True), ("print(1/3)", True), ("print(0.5)", True))
    asked = problem(("\n", "0.333\n"), comparison=Comparison(absolute=1e-2))
    made = measured(runner, asked, programs)
    assert made.runs["expected"].to_list() == [True, True, False]


def test_few_solutions_of_each_kind_are_drawn_and_copies_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(i, "python", f"print({i % 3})", True) for i in range(9)] + [(9, "cpp", "x", False), (10, "cpp", "y", True)]
    monkeypatch.setattr(execution_matrix, "MAX_RIGHT", 2)
    monkeypatch.setattr(execution_matrix, "MAX_WRONG", 1)
    found = draw_candidates(rows)
    assert [(one.index, one.right) for one in found] == [(0, True), (1, True), (9, False), (10, True)]
