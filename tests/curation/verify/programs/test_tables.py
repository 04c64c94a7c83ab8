"""Attempts at code problems, judged by the sandbox behind the face of the math judge."""

import polars as pl

from curation.records import JUDGING, Outcome
from curation.verify.math_judge import JudgeTask, Response
from curation.verify.programs.comparison import Comparison
from curation.verify.programs.extraction import CodeLang, extract_code, fenced
from curation.verify.programs.judge import ProgramJudge, program_answer
from curation.verify.programs.problem import Checker, CheckerKind, Validator, ValidatorLang
from curation.verify.programs.tables import (
    build_problem,
    checker_of,
    checker_text,
    comparison_of,
    comparison_text,
    validators_of,
    validators_text,
)

RULES = {**dict.fromkeys(JUDGING), "time_limit_s": 1.0}
TESTS = [("1 2\n", "3\n"), ("5 -5\n", "0\n")]
RIGHT = "<think>\nadd\n</think>\n```python\nprint(sum(map(int, input().split())))\n```\n"


def test_attempts_are_judged_and_only_accepted_ones_have_a_class() -> None:
    problem = build_problem("p", TESTS, RULES, 4.0, 300, lang=CodeLang.PYTHON)
    assert (problem.cpu_s, problem.memory_mb) == (1.0, 300)
    texts = (
        RIGHT,
        "```python\nprint(3)\n```",
        "```cpp\nint main() {}\n```",
        "I give up.",
        "```python\nprint(\n```",
        RIGHT,
    )
    with ProgramJudge(lambda _: problem, 7, 2) as judge:
        (result,) = judge.judge([JudgeTask("p", "", "en", tuple(Response(text, None) for text in texts))])
        found = [judge.final_answer(Response(text, None)) for text in texts]
        again = judge.submit(JudgeTask("p", "", "en", ()), found).result()
    outcomes = [one.outcome for one in result.verdicts]
    none, wrong, right = Outcome.NO_ANSWER, Outcome.WRONG, Outcome.CORRECT
    assert outcomes == [right, wrong, none, none, wrong, right]
    assert [one.answer_class for one in result.verdicts] == [0, None, None, None, None, 0]
    assert result.verdicts[2].method == "asked for python, answered in cpp"
    assert again == result.verdicts
    assert [one.answer for one in again] == found


def test_a_final_answer_is_read_back_as_the_same_program() -> None:
    code = 'print("""\n```\n""")\n'
    answer = fenced(CodeLang.PYTHON, code)
    found = extract_code(answer)
    assert (found.lang, found.code) == (CodeLang.PYTHON, code)
    assert program_answer(Response(answer, None)) == program_answer(Response(None, answer)) == answer


def test_comparisons_and_checkers_go_through_the_table() -> None:
    comparison = Comparison(absolute=1e-6, relative=1e-3)
    assert comparison_of(comparison_text(comparison)) == comparison
    assert comparison_of(None) == Comparison(case_sensitive=True)
    checker = Checker(CheckerKind.KATTIS, CodeLang.CPP, {"a.cpp": "x", "b.h": "y"}, ("a.cpp",), ("-f",))
    row = {"checker": checker_text(checker), "checker_kind": "kattis", "checker_lang": "cpp"}
    assert checker_of(row) == checker
    foreign = Validator(ValidatorLang.CPP, {"a.cpp": "// Bj\udcf6rn"}, ("a.cpp",), ("x",))  # a byte of Latin-1
    grammar = Validator(ValidatorLang.CHECKTESTDATA, {"n.ctd": "EOF"}, ("n.ctd",), accepts=0)
    stored = pl.DataFrame({"validator": [validators_text([foreign, grammar])]})
    assert validators_of(stored.row(0, named=True)) == (foreign, grammar)
    assert validators_of({"validator": validators_text([])}) == ()
    single = checker_of({"checker": "int main(){}", "checker_kind": "testlib", "checker_lang": "cpp"})
    assert single is not None
    assert single.main == ("checker.cpp",)
    assert checker_of({"checker": None}) is None


def test_an_argument_may_contain_a_line_separator_of_unicode() -> None:
    problem = build_problem("p", [('"a\u2028b"\n', "3")], {**RULES, "function": "size"}, 4.0, 300, lang=CodeLang.PYTHON)
    assert problem.function is not None
    assert problem.function.calls[0].args == ("a\u2028b",)
