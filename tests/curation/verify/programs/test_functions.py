"""Function problems: calls, assertions, benchmarks' canonical solutions, and cheats that must not pass."""

from __future__ import annotations

import json
import random
from array import array
from pathlib import Path
from typing import Any

import pytest

from curation.verify.programs.functions import _judge_call
from curation.verify.programs.judge import judge_programs
from curation.verify.programs.problem import CodeLang, CodeProblem, CodeVerdict, FunctionCall, FunctionTests, Submission
from curation.verify.programs.tools import Runner
from curation.verify.sandbox import Ending, RunResult
from curation.verify.sandbox.inside.functions.values import NotData, decode, encode

ANSWER = 7_391_846_205
CALLS = CodeProblem(
    "calls", function=FunctionTests("add", (FunctionCall((1, 2), 3), FunctionCall((ANSWER, 1), ANSWER + 1)))
)
CHECK = CodeProblem(
    "check",
    function=FunctionTests(
        "add",
        program=f"def check(candidate):\n    assert candidate(1, 2) == 3\n    x = candidate({ANSWER}, 1)\n"
        f"    assert x == {ANSWER + 1}\n    assert candidate(x, 1) == {ANSWER + 2}, 'again'\n",
    ),
)
ATTACKS = [json.loads(line) for line in Path(__file__).with_name("cheats.jsonl").read_text("utf-8").splitlines()]
CHEATS, BREAKING = ([row for row in ATTACKS if row["kind"] == kind] for kind in ("cheat", "breaks"))


def verdict(runner: Runner, problem: CodeProblem, code: str, lang: CodeLang = CodeLang.PYTHON) -> CodeVerdict:
    (result,) = judge_programs(runner, [(problem, Submission(lang, code))])
    assert result.verdict is not CodeVerdict.BROKEN, result
    return result.verdict


@pytest.mark.parametrize("problem", [CALLS, CHECK], ids=lambda problem: problem.id)
def test_cheats_do_not_pass(runner: Runner, problem: CodeProblem) -> None:
    jobs = [(problem, Submission(CodeLang.PYTHON, row["code"])) for row in CHEATS]
    found = {row["name"]: one.verdict for row, one in zip(CHEATS, judge_programs(runner, jobs), strict=True)}
    assert {name: one for name, one in found.items() if one not in {CodeVerdict.WA, CodeVerdict.RTE}} == {}


def test_values_pass_as_they_are() -> None:
    values = ([1, 2.5, None, True, "é\ud800"], (1, (2,)), {1: {2}}, frozenset({3}), b"\x00", 1j, range(3), 2**80)
    for value in (*values, array("i", [1]), memoryview(array("d", [0.5]))):
        assert decode(encode(value)) == value
        assert type(decode(encode(value))) is type(value)
    knot: list[Any] = []
    knot.append(knot)
    for no_data in (object(), print, knot):
        with pytest.raises(NotData):
            encode(no_data)


def test_values_that_no_table_holds(runner: Runner) -> None:
    """Python 3.11 refuses more than 4,300 digits unless it is configured otherwise; older solutions rely on them."""
    repunit = (10**5000 - 1) // 9
    for args, expected, right, wrong in (
        (("1" * 5000,), repunit, "lambda text: int(text)", "lambda text: int(text) + 1"),
        ((), {"a": {1, 2}}, "lambda: {'a': {2, 1}}", "lambda: {'a': [1, 2]}"),
        ((), {1, 2}, "lambda: {2, 1}", "lambda: [1, 2]"),
    ):
        problem = CodeProblem("value", function=FunctionTests("f", (FunctionCall(args, expected),)))
        assert verdict(runner, problem, f"f = {right}") is CodeVerdict.AC
        assert verdict(runner, problem, f"f = {wrong}") is CodeVerdict.WA


@pytest.mark.slow
@pytest.mark.parametrize("way", ["calls", "program"])
def test_no_submission_can_choose_to_be_broken(runner: Runner, way: str) -> None:
    loops = "n = f(1)\nfor i in range(n if isinstance(n, int) else 0): pass\nassert n + 1 == f(n) == 2\n"
    calls = FunctionTests("f", (FunctionCall((1,), 2.5),), tolerance=1e-6)
    tests = calls if way == "calls" else FunctionTests("f", program=loops)
    problem = CodeProblem("chosen", function=tests, cpu_s=0.3)
    jobs = [(problem, Submission(CodeLang.PYTHON, row["code"])) for row in BREAKING]
    for row, result in zip(BREAKING, judge_programs(runner, jobs), strict=True):
        assert result.verdict not in {CodeVerdict.BROKEN, CodeVerdict.AC}, (row["name"], result)
        result.how.encode()


def test_channel_of_dice(runner: Runner) -> None:
    """What a submission writes where its results go is read as data, whatever it is."""
    dice = random.Random(5)
    pieces = ['"', *"{}[]:,", *'value error args "t" "v" 1e999 null \\ud800 \n \xff -1 loaded'.split(" ")]
    call = FunctionCall((1,), [1])
    for _ in range(1000):
        told = "".join(dice.choices(pieces, k=dice.randrange(30))).encode("latin-1")
        lines = (
            b'{"loaded": true}\n'
            + (told if dice.random() < 0.5 else json.dumps({"value": told.decode("latin-1")}).encode())
            + b"\n"
        )
        ran = RunResult(Ending.EXITED, 0, None, lines, b"", 0.0, 0.0, 1)
        decided, how = _judge_call(ran, call, dice.choice((None, 1e-6)))
        assert decided in {CodeVerdict.WA, CodeVerdict.RTE, CodeVerdict.CE}, (lines, how)
        how.encode()
