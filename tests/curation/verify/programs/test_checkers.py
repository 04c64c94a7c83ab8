"""Checkers in Python and C++, by both conventions; their own failures are BROKEN."""

from __future__ import annotations

import pytest

from curation.records import VerifierError
from curation.verify.programs.checkers import check_outputs, prepare_validator
from curation.verify.programs.judge import judge_programs
from curation.verify.programs.problem import (
    Checker,
    CheckerKind,
    CodeLang,
    CodeProblem,
    CodeTest,
    CodeVerdict,
    Submission,
    Validator,
    ValidatorLang,
)
from curation.verify.programs.tools import Runner
from curation.verify.sandbox import CompileResult, Ending, RunResult


def test_a_checker_that_fails_is_broken(runner: Runner) -> None:
    failing = {"raise ValueError": "exit code 1", "exit(7)": "exit code 7", "import os\nos.abort()": "signaled"}
    for source, said in (*failing.items(), ("print(", "exit code 1")):
        checker = Checker(CheckerKind.KATTIS, CodeLang.PYTHON, {"validate.py": source}, ("validate.py",))
        ((verdict, how),) = check_outputs(runner, checker, [(b"1", b"1", b"1")])
        assert verdict is CodeVerdict.BROKEN, source
        assert said in how


def test_a_checker_that_does_not_compile_is_broken(runner: Runner) -> None:
    checker = Checker(CheckerKind.TESTLIB, CodeLang.CPP, {"c.cpp": '#include "testlib.h"\n'}, ("c.cpp",))
    problem = CodeProblem("x", (CodeTest(b"12\n", b"2\n"),), checker=checker)
    (result,) = judge_programs(runner, [(problem, Submission(CodeLang.PYTHON, "print(2)"))])
    assert result.verdict is CodeVerdict.BROKEN
    assert "testlib.h" in result.how


def test_flags_and_helpers_reach_the_checker(runner: Runner) -> None:
    sources = {"validate.py": "import sys, helper\nsys.exit(helper.code(sys.argv[4:]))", "helper.py": "def code(a): return 42 if a == ['x', '1'] else 43"}  # fmt: skip  # noqa: E501
    tools = runner
    for args, wanted in ((("x", "1"), CodeVerdict.AC), ((), CodeVerdict.WA)):
        checker = Checker(CheckerKind.KATTIS, CodeLang.PYTHON, sources, ("validate.py",), args)
        assert check_outputs(tools, checker, [(b"", b"", b"")])[0][0] is wanted


def test_an_output_that_a_checker_fails_on_is_wrong_where_the_checker_works(runner: Runner) -> None:
    source = "import sys\nsys.exit(42 if sys.stdin.read().split()[0] == '1' else 43)"  # fails on no output, or bytes
    checker = Checker(CheckerKind.KATTIS, CodeLang.PYTHON, {"v.py": source}, ("v.py",))
    runs = [(b"", b"1\n", output) for output in (b"1\n", b"2\n", b"", b"\n")]
    verdicts = [verdict for verdict, _ in check_outputs(runner, checker, runs)]
    assert verdicts == [CodeVerdict.AC, *[CodeVerdict.WA] * 3]
    broken = Checker(CheckerKind.KATTIS, CodeLang.PYTHON, {"v.py": "1 / 0"}, ("v.py",))
    assert check_outputs(runner, broken, runs[:1])[0][0] is CodeVerdict.BROKEN


def test_a_validator_is_not_lost_by_a_failure_of_the_sandbox(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    validator = Validator(ValidatorLang.CPP, {"v.cpp": "int main() { return 42; }"}, ("v.cpp",))
    box = runner.box

    def waits(*_: object) -> CompileResult:
        return CompileResult("", None, RunResult(Ending.WALL_LIMIT, None, 9, b"", b"", 0.1, 99.0, 9))

    with monkeypatch.context() as patch:
        patch.setattr(box, "_compile", waits)
        with pytest.raises(VerifierError, match="the compiler waited for more than 60 s, 2 times; run this again"):
            prepare_validator(runner, validator)
        result = box.compile({}, ("g++", "--version"))
        assert result.run.ending is Ending.BROKEN
    assert not isinstance(prepare_validator(runner, validator), str), "the failure was not kept"
