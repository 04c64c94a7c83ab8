"""How programs are judged goes through a published set's tables and comes back the same."""

import polars as pl

from curation.records import JUDGING
from curation.verify.math_judge import Response
from curation.verify.programs.comparison import Comparison
from curation.verify.programs.extraction import extract_code, fenced
from curation.verify.programs.judge import program_answer
from curation.verify.programs.problem import Checker, CheckerKind, CodeLang, Submission, Validator, ValidatorLang
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


def test_a_final_answer_is_read_back_as_the_same_program() -> None:
    code = 'print("""\n```\n""")\n'
    answer = fenced(CodeLang.PYTHON, code)
    assert extract_code(answer) == Submission(CodeLang.PYTHON, code)
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
