"""Every correct way to read and to print is accepted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from curation.verify.programs.extraction import CodeLang
from curation.verify.programs.judge import judge_programs
from curation.verify.programs.problem import CodeProblem, CodeTest, CodeVerdict, ProgramResult, Submission
from curation.verify.programs.tools import Runner

TESTS = tuple(
    CodeTest(text.encode(), answer.encode())
    for text, answer in (
        ("3\n1 2 3\n", "6\n"),
        ("3\n1 2 3", "6"),
        ("1\r\n5\r\n", "5\n"),
        ("2\n-1   1  \n\n", "0\n"),
    )
)
SUM = CodeProblem("sum", TESTS, memory_mb=400)

WAYS = [json.loads(line) for line in Path(__file__).with_name("reading.jsonl").read_text("utf-8").splitlines()]
HEAD = "#include <bits/stdc++.h>\nusing namespace std;\n"


def verdict(runner: Runner, problem: CodeProblem, lang: CodeLang, code: str) -> ProgramResult:
    (result,) = judge_programs(runner, [(problem, Submission(lang, code))])
    return result


@pytest.mark.slow
@pytest.mark.parametrize("lang", CodeLang)
def test_every_way_to_read_and_to_print_is_accepted(runner: Runner, lang: CodeLang) -> None:
    names = {row["name"]: Submission(lang, row["code"]) for row in WAYS if row["lang"] == lang.value}
    results = judge_programs(runner, [(SUM, submission) for submission in names.values()])
    assert {
        name: result for name, result in zip(names, results, strict=True) if result.verdict is not CodeVerdict.AC
    } == {}


def test_trailing_spaces_and_new_lines(runner: Runner) -> None:
    problem = CodeProblem("two", (CodeTest(b"", b"1 2\n"),))
    for code in (
        "print('1 2 ')",
        "print('1 2\\n\\n')",
        "print('1 2', end='')",
        "print(1); print(2)",
        "print('\\t1  2')",
    ):
        assert verdict(runner, problem, CodeLang.PYTHON, code).verdict is CodeVerdict.AC, code
    for code in ("print(12)", "print('1 2 3')", "print(1)", "pass", "print('1 2\\0')"):
        assert verdict(runner, problem, CodeLang.PYTHON, code).verdict is CodeVerdict.WA, code


@pytest.mark.slow
def test_ten_megabytes_in_and_out(runner: Runner) -> None:
    text = b"\n".join(b"%d" % number for number in range(1_400_000)) + b"\n"
    assert len(text) > 10_000_000
    problem = CodeProblem("copy", (CodeTest(text, text),), cpu_s=10.0)
    for lang, code in (
        (CodeLang.PYTHON, "import sys\nsys.stdout.write(sys.stdin.read())"),
        (CodeLang.CPP, HEAD + 'int main() { int a; while (scanf("%d", &a) == 1) printf("%d ", a); }'),
    ):
        result = verdict(runner, problem, lang, code)
        assert result.verdict is CodeVerdict.AC, result


def test_nul_and_invalid_utf_8_in_output(runner: Runner) -> None:
    problem = CodeProblem("bytes", (CodeTest(b"\xff\x00\n", b"\xff\x00\n"),))
    copy = "import sys\nsys.stdout.buffer.write(sys.stdin.buffer.read())"
    assert verdict(runner, problem, CodeLang.PYTHON, copy).verdict is CodeVerdict.AC
    other = "import sys\nsys.stdout.buffer.write(b'\\xfe\\x00')"
    assert verdict(runner, problem, CodeLang.PYTHON, other).verdict is CodeVerdict.WA
