"""Checkers in Python and C++, by both conventions; their own failures are BROKEN."""

from __future__ import annotations

import pytest

from curation.records import VerifierError
from curation.verify.programs.checkers import check_outputs
from curation.verify.programs.extraction import CodeLang
from curation.verify.programs.judge import judge_programs
from curation.verify.programs.problem import (
    Checker,
    CheckerKind,
    CodeProblem,
    CodeTest,
    CodeVerdict,
    Submission,
    Validator,
    ValidatorLang,
)
from curation.verify.programs.tools import Runner
from curation.verify.programs.validators import prepare_validator
from curation.verify.sandbox import CompileResult, Ending, RunResult

VALIDATE_H = """#include <fstream>
#include <iostream>
#include <cstdlib>
static std::ifstream judge_in, judge_ans;
static std::ofstream message;
static void init(char **argv) {
    judge_in.open(argv[1]);
    judge_ans.open(argv[2]);
    message.open(std::string(argv[3]) + "judgemessage.txt");
    if (!judge_in || !judge_ans || !message) std::exit(1);
}
static void wrong() { message << "wrong"; std::exit(43); }
static void right() { std::exit(42); }
"""
DIVISOR_CPP = """#include "validate.h"
int main(int argc, char **argv) {
    init(argv);
    long n, d;
    judge_in >> n;
    if (!(std::cin >> d) || d < 2 || d >= n || n % d) wrong();
    std::string more;
    if (std::cin >> more) wrong();
    right();
}
"""
DIVISOR_PY = """import sys
n = int(open(sys.argv[1]).read())
open(sys.argv[3] + "judgemessage.txt", "w").write("seen")
tokens = sys.stdin.read().split()
right = len(tokens) == 1 and tokens[0].isdigit() and 1 < int(tokens[0]) < n and n % int(tokens[0]) == 0
sys.exit(42 if right else 43)
"""
DIVISOR_TESTLIB = """import sys
n = int(open(sys.argv[1]).read())
tokens = open(sys.argv[2]).read().split()
answer = open(sys.argv[3]).read()
if len(tokens) != 1 or not tokens[0].isdigit():
    sys.exit(2)
d = int(tokens[0])
if not answer.strip():
    sys.exit(3)
sys.exit(0 if 1 < d < n and n % d == 0 else 1)
"""
CHECKERS = {
    "Kattis, C++": Checker(
        CheckerKind.KATTIS, CodeLang.CPP, {"validate.h": VALIDATE_H, "validate.cpp": DIVISOR_CPP}, ("validate.cpp",)
    ),
    "Kattis, Python": Checker(CheckerKind.KATTIS, CodeLang.PYTHON, {"validate.py": DIVISOR_PY}, ("validate.py",)),
    "testlib, Python": Checker(CheckerKind.TESTLIB, CodeLang.PYTHON, {"check.py": DIVISOR_TESTLIB}, ("check.py",)),
}
TESTS = tuple(CodeTest(b"%d\n" % n, b"2\n") for n in (12, 30, 100, 64, 18))


@pytest.mark.slow
@pytest.mark.parametrize("name", CHECKERS)
def test_any_right_output_is_accepted_and_no_other(runner: Runner, name: str) -> None:
    problem = CodeProblem("divisor", TESTS, checker=CHECKERS[name])
    codes = {
        "print(2)": (CodeVerdict.AC, None),
        "print(int(input()) // 2)": (CodeVerdict.AC, None),
        "n = int(input())\nprint(2 if n != 100 else 3)": (CodeVerdict.WA, 2),
        "print('two')": (CodeVerdict.WA, 0),
        "print(2, 2)": (CodeVerdict.WA, 0),
        "pass": (CodeVerdict.WA, 0),
        "n = int(input())\nprint(2)\nassert n != 64": (CodeVerdict.RTE, 3),
    }
    results = judge_programs(runner, ((problem, Submission(CodeLang.PYTHON, code)) for code in codes))
    assert [(result.verdict, result.first_failed) for result in results] == list(codes.values())


def test_a_checker_that_fails_is_broken(runner: Runner) -> None:
    failing = {"raise ValueError": "exit code 1", "exit(7)": "exit code 7", "import os\nos.abort()": "signaled"}
    for source, said in (*failing.items(), ("print(", "exit code 1")):
        checker = Checker(CheckerKind.KATTIS, CodeLang.PYTHON, {"validate.py": source}, ("validate.py",))
        ((verdict, how),) = check_outputs(runner.tools, checker, [(b"1", b"1", b"1")])
        assert verdict is CodeVerdict.BROKEN, source
        assert said in how


def test_a_checker_that_does_not_compile_is_broken(runner: Runner) -> None:
    checker = Checker(CheckerKind.TESTLIB, CodeLang.CPP, {"c.cpp": '#include "testlib.h"\n'}, ("c.cpp",))
    problem = CodeProblem("x", TESTS, checker=checker)
    (result,) = judge_programs(runner, [(problem, Submission(CodeLang.PYTHON, "print(2)"))])
    assert result.verdict is CodeVerdict.BROKEN
    assert "testlib.h" in result.how


def test_flags_and_helpers_reach_the_checker(runner: Runner) -> None:
    sources = {"validate.py": "import sys, helper\nsys.exit(helper.code(sys.argv[4:]))", "helper.py": "def code(a): return 42 if a == ['x', '1'] else 43"}  # fmt: skip  # noqa: E501
    tools = runner.tools
    for args, wanted in ((("x", "1"), CodeVerdict.AC), ((), CodeVerdict.WA)):
        checker = Checker(CheckerKind.KATTIS, CodeLang.PYTHON, sources, ("validate.py",), args)
        assert check_outputs(tools, checker, [(b"", b"", b"")])[0][0] is wanted


def test_an_output_that_a_checker_fails_on_is_wrong_where_the_checker_works(runner: Runner) -> None:
    source = "import sys\nsys.exit(42 if sys.stdin.read().split()[0] == '1' else 43)"  # fails on no output, or bytes
    checker = Checker(CheckerKind.KATTIS, CodeLang.PYTHON, {"v.py": source}, ("v.py",))
    runs = [(b"", b"1\n", output) for output in (b"1\n", b"2\n", b"", b"\n")]
    verdicts = [verdict for verdict, _ in check_outputs(runner.tools, checker, runs)]
    assert verdicts == [CodeVerdict.AC, *[CodeVerdict.WA] * 3]
    broken = Checker(CheckerKind.KATTIS, CodeLang.PYTHON, {"v.py": "1 / 0"}, ("v.py",))
    assert check_outputs(runner.tools, broken, runs[:1])[0][0] is CodeVerdict.BROKEN


def test_a_validator_is_not_lost_by_a_failure_of_the_sandbox(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    validator = Validator(ValidatorLang.CPP, {"v.cpp": "int main() { return 42; }"}, ("v.cpp",))
    box = runner.tools.box

    def waits(*_: object) -> CompileResult:
        return CompileResult(False, "", None, "", RunResult(Ending.WALL_LIMIT, None, 9, b"", b"", 0.1, 99.0, 9))

    with monkeypatch.context() as patch:
        patch.setattr(box, "_compile", waits)
        with pytest.raises(VerifierError, match="the compiler waited for more than 60 s, 2 times; run this again"):
            prepare_validator(runner.tools, validator)
        result = box.compile({}, ("g++", "--version"))
        assert result.run.ending is Ending.BROKEN
    assert not isinstance(prepare_validator(runner.tools, validator), str), "the failure was not kept"
