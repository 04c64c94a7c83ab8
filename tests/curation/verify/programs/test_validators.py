"""Input validators in Python, C++ and checktestdata: what they accept, refuse, and leave open."""

from __future__ import annotations

import pytest

from curation.verify.programs.checkers import ReadyValidator, check_inputs, prepare_validator
from curation.verify.programs.problem import Validator, ValidatorLang
from curation.verify.programs.tools import Runner
from curation.verify.sandbox import Limits

PYTHON = "import sys\nassert sys.argv[1:] == ['x']\nsys.exit(42 if int(sys.stdin.read()) < 9 else 43)"
CPP = "#include <iostream>\n#include <cassert>\nint main() { int n; assert(std::cin >> n); return n < 9 ? 42 : 43; }"
GRAMMAR = """# n numbers, all different
INT(1, 10^5, n) NEWLINE
REPI(i, n, SPACE) INT(-9, 9, a[i]) END NEWLINE
ASSERT(UNIQUE(a) && n < 4)
"""
PYTHON_VALIDATOR = Validator(ValidatorLang.PYTHON, {"v.py": PYTHON}, ("v.py",), ("x",))
CTD = Validator(ValidatorLang.CHECKTESTDATA, {"n.ctd": GRAMMAR}, ("n.ctd",))


def said(runner: Runner, validators: list[Validator], inputs: list[bytes]) -> list[bool | None]:
    ready = [prepare_validator(runner, validator) for validator in validators]
    prepared = [one for one in ready if isinstance(one, ReadyValidator)]
    assert len(prepared) == len(ready), ready
    return [verdict.valid for verdict in check_inputs(runner, prepared, inputs)]


@pytest.mark.parametrize(
    "validator", [PYTHON_VALIDATOR, Validator(ValidatorLang.CPP, {"v.cpp": CPP}, ("v.cpp",))], ids=["python", "cpp"]
)
def test_inputs_are_allowed_where_their_validator_says_so_and_only_there(runner: Runner, validator: Validator) -> None:
    assert said(runner, [validator], [b"8\n", b"9\n", b"one\n"]) == [True, False, False]


def test_a_validator_in_another_language_has_the_reason(runner: Runner) -> None:
    java = Validator(ValidatorLang.OTHER, {"V": ".java is neither Python, C++ nor checktestdata"}, ("V",))
    assert prepare_validator(runner, java) == ".java is neither Python, C++ nor checktestdata"


def test_grammars_of_checktestdata(runner: Runner) -> None:
    wrong = [b"3\n1 1 3\n", b"3\n1 2\n", b"3\n1 2 3", b"4\n1 2 3 4\n", b"3\n1 2 3\n\n", b"", b"1\n10\n"]
    assert said(runner, [CTD], [b"3\n1 -2 3\n", *wrong]) == [True] + [False] * 7
    (verdict,) = check_inputs(runner, [ready(runner, CTD)], [b"1\n10\n"])
    assert "integer 10 outside of range [-9, 9]" in verdict.words


def test_an_input_must_pass_every_validator(runner: Runner) -> None:
    even = Validator(ValidatorLang.PYTHON, {"e.py": "import sys\nsys.exit(int(input()) % 2)"}, ("e.py",), accepts=0)
    assert said(runner, [PYTHON_VALIDATOR, even], [b"8\n", b"7\n", b"10\n"]) == [True, False, False]


def test_a_validator_that_cannot_be_run_is_named(runner: Runner) -> None:
    cpp = Validator(ValidatorLang.CPP, {"v.cpp": "int main() { return 42 }"}, ("v.cpp",))
    assert "cannot be compiled" in str(prepare_validator(runner, cpp))
    grammar = Validator(ValidatorLang.CHECKTESTDATA, {"n.ctd": "INT(1, NEWLINE"}, ("n.ctd",))
    assert "checktestdata cannot read it" in str(prepare_validator(runner, grammar))


def test_one_that_runs_out_of_its_limits_has_said_nothing(runner: Runner) -> None:
    endless = Validator(ValidatorLang.PYTHON, {"v.py": "while True:\n    pass"}, ("v.py",))
    limits = Limits(cpu_s=0.2, memory_mb=256)
    (verdict,) = check_inputs(runner, [ready(runner, endless)], [b"1\n"], limits)
    assert verdict.valid is None


def ready(runner: Runner, validator: Validator) -> ReadyValidator:
    prepared = prepare_validator(runner, validator)
    assert isinstance(prepared, ReadyValidator)
    return prepared
