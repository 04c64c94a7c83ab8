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
CPP_TESTS = (
    "#undef NDEBUG\n#include <assert.h>\nint main() {\n    assert(add(1, 2) == 3);\n    assert(add(40, 2) == 42);\n}\n"
)
CPP = CodeProblem(
    "cpp", function=FunctionTests("main", program=CPP_TESTS, setup="#include <vector>\nlong add(long a, long b){\n")
)

ATTACKS = [json.loads(line) for line in Path(__file__).with_name("cheats.jsonl").read_text("utf-8").splitlines()]
CHEATS, BREAKING = ([row for row in ATTACKS if row["kind"] == kind] for kind in ("cheat", "breaks"))


def verdict(runner: Runner, problem: CodeProblem, code: str, lang: CodeLang = CodeLang.PYTHON) -> CodeVerdict:
    (result,) = judge_programs(runner, [(problem, Submission(lang, code))])
    assert result.verdict is not CodeVerdict.BROKEN, result
    return result.verdict


@pytest.mark.parametrize("problem", [CALLS, CHECK], ids=lambda problem: problem.id)
def test_a_right_function_passes(runner: Runner, problem: CodeProblem) -> None:
    assert verdict(runner, problem, "def add(a, b):\n    print('debugging')\n    return a + b") is CodeVerdict.AC


@pytest.mark.parametrize("problem", [CALLS, CHECK], ids=lambda problem: problem.id)
def test_cheats_do_not_pass(runner: Runner, problem: CodeProblem) -> None:
    jobs = [(problem, Submission(CodeLang.PYTHON, row["code"])) for row in CHEATS]
    found = {row["name"]: one.verdict for row, one in zip(CHEATS, judge_programs(runner, jobs), strict=True)}
    assert {name: one for name, one in found.items() if one not in {CodeVerdict.WA, CodeVerdict.RTE}} == {}


def test_methods_data_and_arguments_changed_in_place(runner: Runner) -> None:
    calls = FunctionTests("Solution.pair", (FunctionCall(([3, 4], 7), [0, 1]), FunctionCall(([1.5, 1], 2.5), [0, 1])))
    code = "class Solution:\n    def pair(self, values, total):\n        return (0, 1)"
    assert verdict(runner, CodeProblem("method", function=calls), code) is CodeVerdict.AC
    program = (
        "a = [3, 1, 2]\nassert order(a) is None\nassert a == [1, 2, 3]\nassert {order(b) for b in ([2, 1],)} == {None}"
    )
    place = CodeProblem("place", function=FunctionTests("order", program=program))
    assert verdict(runner, place, "def order(a): a.sort()") is CodeVerdict.AC
    assert verdict(runner, place, "def order(a): sorted(a)") is CodeVerdict.WA


def test_calls_that_depend_on_results_and_exceptions(runner: Runner) -> None:
    program = (
        "import random\nx = 0\nfor i in range(5):\n    x = step(x)\nassert x == 5\n"
        "for i in range(3):\n    n = random.randint(0, 99)\n    assert step(n) == n + 1\n"
        "try:\n    step(None)\n    assert False\nexcept TypeError:\n    pass\n"
    )
    problem = CodeProblem("steps", function=FunctionTests("step", program=program))
    assert verdict(runner, problem, "def step(x): return x + 1") is CodeVerdict.AC
    assert verdict(runner, problem, "def step(x): return (x or 0) + 1") is CodeVerdict.WA
    assert verdict(runner, problem, "def step(x): return x + 1 if x != 3 else 5") is CodeVerdict.WA


def test_tolerance_and_kinds_of_values(runner: Runner) -> None:
    third = FunctionTests("f", (FunctionCall((), 1 / 3),), tolerance=1e-6)
    assert verdict(runner, CodeProblem("third", function=third), "def f(): return 0.3333333") is CodeVerdict.AC
    cases: tuple[tuple[object, str, bool], ...] = (
        ({"a": {1, 2}}, "{'a': {2, 1}}", True),
        ([1, [2, None]], "(1, (2, None))", True),
        (10**40, "10**40", True),
        (10**40, "10**40 + 1", False),
        ("3", "3", False),
        ([1, 2], "[2, 1]", False),
        ({1, 2}, "[1, 2]", False),
    )
    jobs = [
        (
            CodeProblem("value", function=FunctionTests("f", (FunctionCall((), expected),))),
            Submission(CodeLang.PYTHON, f"def f(): return {returned}"),
        )
        for expected, returned, _ in cases
    ]
    for case, found in zip(cases, judge_programs(runner, jobs), strict=True):
        assert found.verdict is (CodeVerdict.AC if case[2] else CodeVerdict.WA), case


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


CPP_FUNCTIONS = {
    "long add(long a, long b){ return a + b; }": True,
    "#include <cstdio>\nlong add(long a, long b){ puts(\"noise\"); return a + b; }\nint main() { return 0; }": True,
    "long add(long a, long b){ return 3; }": False,
    "#include <cstdlib>\nlong add(long a, long b){ exit(0); }": False,
    "#define NDEBUG\n#define assert(x)\nlong add(long, long){ return 0; }": False,
    "#include <unistd.h>\nstruct S { S() { _exit(0); } } s;\nlong add(long, long){ return 0; }": False,
    "struct A { template <class T> bool operator==(T) { return true; } };\nA add(long, long){ return {}; }": False,
}  # fmt: skip


@pytest.mark.slow
def test_cpp_functions(runner: Runner) -> None:
    jobs = [(CPP, Submission(CodeLang.CPP, code)) for code in CPP_FUNCTIONS]
    found = dict(zip(CPP_FUNCTIONS, (one.verdict for one in judge_programs(runner, jobs)), strict=True))
    assert CodeVerdict.BROKEN not in found.values(), found
    assert {code: one is CodeVerdict.AC for code, one in found.items()} == CPP_FUNCTIONS


def test_several_functions_may_be_called(runner: Runner) -> None:
    tests = FunctionTests("f", program="assert f(1) == 2; assert g(1) == 3\nassert g(f(1)) == 4\n")
    problem = CodeProblem("two", function=tests)
    assert verdict(runner, problem, "def f(x): return x + 1\ndef g(x): return x + 2") is CodeVerdict.AC
    assert verdict(runner, problem, "def f(x): return x + 1\ndef g(x): return x + 3") is CodeVerdict.WA
    assert verdict(runner, problem, "def f(x): return x + 1") is CodeVerdict.WA


@pytest.mark.slow
def test_what_is_gone_through_may_stand_for_a_list(runner: Runner) -> None:
    problem = CodeProblem("list", function=FunctionTests("f", (FunctionCall((3,), [0, 1, 2]),)))
    right = (
        "yield from range(n)",
        "return map(int, range(n))",
        "return (x for x in range(n))",
        "return iter([0, 1, 2])",
        "return range(n)",
        "return (0, 1, 2)",
        "import array\n    return array.array('i', range(n))",
        "import array\n    return memoryview(array.array('q', range(n)))",
        "return bytearray(range(n))",
        "import collections\n    return collections.deque(range(n))",
        "return dict.fromkeys(range(n)).keys()",
        "return dict(enumerate(range(n))).values()",
        "import collections\n    return collections.OrderedDict.fromkeys(range(n))" + ".keys()",
        "return reversed([2, 1, 0])",
        "return filter(None.__ne__, range(n))",
        "import numpy\n    return numpy.arange(n)",
        "import numpy\n    return [numpy.int64(i) for i in range(n)]",
    )
    wrong = ("range(10 ** 15)", "range(n - 1)", "[*range(n)][::-1]", "{0, 1, 2}", "{0: 0, 1: 1, 2: 2}", "'012'")
    wrong += ("bytearray(range(n + 1))", "dict.fromkeys((2, 1, 0)).keys()", "__import__('array').array('d', [0])")
    expected = dict.fromkeys(right, CodeVerdict.AC) | {f"return {value}": CodeVerdict.WA for value in wrong}
    expected["yield from range(n + 1)"] = CodeVerdict.WA
    jobs = [(problem, Submission(CodeLang.PYTHON, f"def f(n):\n    {body}")) for body in expected]
    found = {body: one.verdict for body, one in zip(expected, judge_programs(runner, jobs), strict=True)}
    assert found == expected
    pairs = CodeProblem("pairs", function=FunctionTests("f", (FunctionCall((3,), [[0, 1]]),)))
    assert verdict(runner, pairs, "def f(n): return {0: 1}.items()") is CodeVerdict.AC
    endless = "import itertools\ndef f(n): return itertools.count()"
    assert verdict(runner, problem, endless) is not CodeVerdict.AC


def test_whole_numbers_of_any_length_become_text_and_values(runner: Runner) -> None:
    """Python 3.11 refuses more than 4,300 digits unless told otherwise; older solutions rely on them."""
    calls = FunctionCall((5000,), "1" + "0" * 5000), FunctionCall((4999,), "1" + "0" * 4999)
    text = CodeProblem("text", function=FunctionTests("f", calls))
    assert verdict(runner, text, "def f(n): return str(10**n)") is CodeVerdict.AC
    number = CodeProblem("number", function=FunctionTests("f", (FunctionCall(("1" * 5000,), (10**5000 - 1) // 9),)))
    assert verdict(runner, number, "def f(text): return int(text)") is CodeVerdict.AC
    assert verdict(runner, number, "def f(text): return int(text) + 1") is CodeVerdict.WA
    program = "assert f(5000) == 10**5000 and str(f(5000))[0] == '1'"
    asserted = CodeProblem("asserted", function=FunctionTests("f", program=program))
    assert verdict(runner, asserted, "def f(n): return int('1' + '0' * n)") is CodeVerdict.AC


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


@pytest.mark.slow
def test_calls_without_end_are_the_submissions(runner: Runner) -> None:
    endless = CodeProblem("endless", function=FunctionTests("f", program="while f(1): pass"), cpu_s=0.3)
    assert verdict(runner, endless, "def f(a): return 1") is CodeVerdict.TLE


def test_channel_of_dice(runner: Runner) -> None:
    """What a submission writes where its results go is read as data, whatever it is."""
    dice = random.Random(5)
    pieces = [
        '"',
        *"{}[]:,",
        "value",
        "error",
        "args",
        '"t"',
        '"v"',
        "1e999",
        "null",
        "\\ud800",
        "\n",
        "\xff",
        "-1",
        "loaded",
    ]
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
