"""Verdicts on programs, tests drawn for a group, and the shape that the math judge has."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest

from curation.records import Outcome
from curation.verify.math_judge import JudgeTask, Response
from curation.verify.programs.files import problem_of_row
from curation.verify.programs.judge import ProgramJudge, judge_programs
from curation.verify.programs.problem import (
    CodeLang,
    CodeProblem,
    CodeTest,
    CodeVerdict,
    FunctionCall,
    FunctionTests,
    ProgramResult,
    Submission,
    draw_tests,
)
from curation.verify.programs.tools import Runner, python_program
from curation.verify.sandbox import Limits

NEXT = CodeProblem("next", tuple(CodeTest(b"%d\n" % n, b"%d\n" % (n + 1)) for n in range(12)), cpu_s=1.0)
VERDICTS = [
    pytest.param(row, id=f"{row['problem']['id']}, {row['lang']}", marks=pytest.mark.slow if row.get("slow") else ())
    for row in map(json.loads, Path(__file__).with_name("verdicts.jsonl").read_text("utf-8").splitlines())
]
"""A row has a problem, a language, and programs, each with its verdict and perhaps the first test that it fails."""

HEAD = "#include <bits/stdc++.h>\nusing namespace std;\n"


def run(runner: Runner, code: str, lang: CodeLang = CodeLang.PYTHON, problem: CodeProblem = NEXT) -> ProgramResult:
    (result,) = judge_programs(runner, [(problem, Submission(lang, code))])
    return result


@pytest.mark.parametrize("row", VERDICTS)
def test_every_verdict(runner: Runner, row: dict[str, Any]) -> None:
    problem, lang = problem_of_row(row["problem"], "verdicts.jsonl"), CodeLang(row["lang"])
    results = judge_programs(runner, [(problem, Submission(lang, code)) for code, *_ in row["programs"]])
    for (code, expected, *place), result in zip(row["programs"], results, strict=True):
        verdict = result.verdict.value
        assert verdict == expected or (expected == "not AC" and verdict not in ("AC", "BROKEN")), (code, result)
        assert not place or result.first_failed == place[0], (code, result)


def test_the_first_failure_ends_the_run_unless_every_test_is_asked_for(runner: Runner) -> None:
    code = "n = int(input())\nprint(n + 1 if n != 5 and n != 8 else 0)"
    short = run(runner, code)
    assert (short.verdict, short.first_failed, len(short.tests)) == (CodeVerdict.WA, 5, 6)
    (long,) = judge_programs(runner, [(NEXT, Submission(CodeLang.PYTHON, code))], every=True)
    assert (long.verdict, long.first_failed, len(long.tests)) == (CodeVerdict.WA, 5, 12)
    assert [run.index for run in long.tests if run.verdict is CodeVerdict.WA] == [5, 8]
    assert all(run.cpu_s >= 0 and run.memory_mb > 0 for run in long.tests)


def test_results_come_in_order_and_do_not_depend_on_the_workers(runner: Runner) -> None:
    jobs = [
        (NEXT, Submission(CodeLang.PYTHON, f"n = int(input())\nprint(n + 1 if n < {bad} else 0)")) for bad in range(13)
    ]
    wide = [(result.verdict, result.first_failed, len(result.tests)) for result in judge_programs(runner, jobs)]
    with Runner(1) as alone:
        narrow = [(result.verdict, result.first_failed, len(result.tests)) for result in judge_programs(alone, jobs)]
    assert wide == narrow
    assert [first for _, first, _ in wide] == [*range(12), None]


def test_nothing_passes_from_one_test_to_the_next(runner: Runner) -> None:
    code = (
        "import os, builtins\nn = int(input())\nbuiltins.kept = getattr(builtins, 'kept', 0) + 1\n"
        "path = '/tmp/kept'\nseen = os.path.exists(path)\nopen(path, 'w').write('x')\n"
        "print(n + 1 if builtins.kept == 1 and not seen else 0)"
    )
    result = run(runner, code)
    assert result.verdict is CodeVerdict.AC, result


def test_a_group_is_judged_by_the_same_tests_drawn_by_its_seed() -> None:
    problem = CodeProblem("many", tuple(CodeTest(b"%d" % n, b"") for n in range(100)))
    first = draw_tests(problem, 7)
    assert len(set(first)) == 20
    assert first == draw_tests(problem, 7)
    assert first != draw_tests(problem, 8)
    assert draw_tests(problem, 7, None) == tuple(range(100))
    assert draw_tests(NEXT, 7) == tuple(range(12))


def test_responses_are_judged_as_the_math_judge_does(runner: Runner) -> None:
    right = "```python\nprint(int(input()) + 1)\n```"
    texts = [right, "```python\nprint(0)\n```", "I do not know.", "```\n1\n```", f"<think>hm</think>{right}"]
    problems = {"next": NEXT, "talk": CodeProblem("talk", refused="it is interactive")}
    task = JudgeTask("next", "", "en", tuple(Response(text, None) for text in texts), seed=3)
    refused = JudgeTask("talk", "", "en", (Response(right, None),))
    empty = JudgeTask("next", "", "en", (Response("nothing", None),))
    first, second, third = ProgramJudge(problems.__getitem__, 7, runner=runner).judge([task, refused, empty])
    correct, wrong, none = Outcome.CORRECT, Outcome.WRONG, Outcome.NO_ANSWER
    assert [one.outcome for one in first.verdicts] == [correct, wrong, none, none, correct]
    unclosed = tuple(Response(right.removesuffix("\n```"), None, finish) for finish in ("stop", "length", None))
    ends = ProgramJudge(problems.__getitem__, 7, runner=runner).submit(JudgeTask("next", "", "en", unclosed)).result()
    assert [one.outcome for one in ends] == [Outcome.CORRECT, Outcome.NO_ANSWER, Outcome.NO_ANSWER]
    tag = JudgeTask("next", "", "en", (Response("```python\nt = '</think>'\nprint(int(input()) + 1)\n```", None),))
    answer = "```python\nt = '</think>'\nprint(int(input()) + 1)\n```"  # a final answer has no thoughts
    judge = ProgramJudge(problems.__getitem__, 7, runner=runner)
    assert judge.submit(tag, [answer]).result()[0].outcome is Outcome.CORRECT
    assert [one.answer_class for one in first.verdicts] == [0, None, None, None, 0], "only accepted ones have a class"
    assert first.problem == "next"
    assert first.verdicts[1].method.startswith("WA on test 0")
    assert (second.verdicts[0].outcome, third.verdicts[0].outcome) == (Outcome.BROKEN, Outcome.NO_ANSWER)
    assert "interactive" in second.verdicts[0].method


def test_a_problem_without_tests_accepts_nothing(runner: Runner) -> None:
    assert run(runner, "print(1)", problem=CodeProblem("none")).verdict is CodeVerdict.BROKEN


def test_each_test_draws_its_own_numbers(runner: Runner) -> None:
    for source in ("import random\nprint(random.random())", "import numpy as np\nprint(np.random.random())"):
        ran = runner.run(python_program(source), [b""] * 4, Limits())
        assert len({one.stdout for one in ran}) == 4, source


POOL = """
from multiprocessing import Pool
if __name__ == "__main__":
    with Pool(2) as pool: print(pool.map(abs, [-3])[0])
"""
FORK = f"""{HEAD}#include <unistd.h>
#include <sys/wait.h>
int main() {{ if (!fork()) _exit(3); int s; wait(&s); cout << s / 256; }}
"""
FORKING_FUNCTION = "import os\ndef f():\n    if os.fork() == 0: os._exit(3)\n    return os.wait()[1] >> 8"


@pytest.mark.parametrize("allowed", [False, True])
def test_the_problem_decides_whether_programs_may_start_processes(runner: Runner, allowed: bool) -> None:
    """The word "fork" in a program's text was enough."""
    if allowed and not runner.box.forks:
        pytest.skip("no program may start processes there")
    problem = CodeProblem("three", (CodeTest(b"", b"3\n"),), cpu_s=2.0, processes=allowed)
    for lang, code in ((CodeLang.PYTHON, POOL), (CodeLang.CPP, FORK)):
        result = run(runner, code, lang, problem)
        assert (result.verdict is CodeVerdict.AC) == allowed, result
        assert ("which its problem does not allow" in result.how) != allowed
    called = CodeProblem("f", function=FunctionTests("f", (FunctionCall((), 3),)), processes=allowed)
    assert (run(runner, FORKING_FUNCTION, problem=called).verdict is CodeVerdict.AC) == allowed
    named = run(runner, "fork = 3  # multiprocessing\nprint(fork)", problem=problem)
    assert (named.verdict, named.how) == (CodeVerdict.AC, "")


ADDS = HEAD + "int main() { int n; cin >> n; cout << n + 1; }"


@pytest.mark.slow
@pytest.mark.skipif(not os.access("/tmp", os.W_OK), reason="/tmp is not this user's to write")
def test_a_cache_below_the_temporary_folder_is_used_and_what_it_loses_is_no_programs_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A box with a /tmp of its own covers that folder."""
    with tempfile.TemporaryDirectory(dir="/tmp") as place, monkeypatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", place)
        with Runner(1) as own:
            assert run(own, ADDS, CodeLang.CPP).verdict is CodeVerdict.AC
            (header,) = Path(place).rglob("stdc++.h.gch")
            shown = own.cpp({"main.cpp": ADDS.encode()}, ("main.cpp", "-H"))
            assert f"! {own.box.seen_tools}" in shown.log, "the header made before is used"
            assert header.name in shown.log
            (lost,) = Path(place).rglob("threads.o")
            lost.unlink()
            other = run(own, ADDS + "\n", CodeLang.CPP)
            assert other.verdict is CodeVerdict.BROKEN
            assert "threads.o, which C++ programs are linked with, is missing; run the command again" in other.how
            assert run(own, ADDS + "// known", CodeLang.CPP).verdict is CodeVerdict.BROKEN
