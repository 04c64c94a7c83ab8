"""Measuring, training and `goldilocks verify code` say the same of every response of the corpus."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from curation.records import JUDGING, TEST, Outcome, SourceError
from curation.verify.math_judge import JudgeTask, Response
from curation.verify.programs.files import problem_of_row, read_problems, row_of_problem
from curation.verify.programs.judge import ProgramJudge, judge_programs, submission_in
from curation.verify.programs.problem import CodeLang, CodeProblem, CodeTest, draw_tests
from curation.verify.programs.tables import build_problem, set_problems
from curation.verify.programs.tools import Runner
from flows.cli.tools import code as verify_code_file
from tests.curation.verify.programs.corpus import PROBLEMS, RESPONSES, responses, write_set
from training.config import RewardSettings
from training.embedded_model.problems import Split
from training.recipe import CuratedData
from training.rollouts.tasks import load_tasks
from training.rollouts.verifiers import Verifiers

EXPECTED = {row["id"]: row["outcome"] for row in responses()}
ASKED = [row for row in responses() if row["problem"] != "yes-any-language"]
"""Responses to problems that name a language, as all problems of a curated set do."""


@pytest.fixture(scope="module")
def curated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_set(tmp_path_factory.mktemp("corpus") / "curated")


@pytest.mark.slow
def test_verify_code(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    verify_code_file(PROBLEMS, RESPONSES, out, workers=2)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert {row["id"]: row["outcome"] for row in rows} == EXPECTED


@pytest.mark.slow
def test_measuring_and_judging_again(curated: Path, runner: Runner) -> None:
    rules = {row["problem"]: row for row in pl.read_parquet(curated / "judging/*.parquet").iter_rows(named=True)}
    tests: dict[str, list[tuple[str, str]]] = {}
    for name, given, wanted in pl.read_parquet(curated / "tests/*.parquet").select("problem", "input", "output").rows():
        tests.setdefault(name, []).append((given, wanted))

    def find(name: str) -> CodeProblem:
        lang = CodeLang.CPP if name.endswith("-cpp") else CodeLang.PYTHON
        return build_problem(name, tests.get(name, ()), rules[name], lang=lang)

    judge = ProgramJudge(find, 7, runner=runner)
    for name in dict.fromkeys(row["problem"] for row in ASKED):
        rows = [row for row in ASKED if row["problem"] == name]
        texts = tuple(Response(row["response"], None) for row in rows)
        (result,) = judge.judge([JudgeTask(name, "", "en", texts)])
        assert {row["id"]: one.outcome for row, one in zip(rows, result.verdicts, strict=True)} == {
            row["id"]: row["outcome"] for row in rows
        }
        if name == ASKED[0]["problem"]:
            stored = [judge.final_answer(text) for text in texts]
            assert judge.submit(JudgeTask(name, "", "en", ()), stored).result() == result.verdicts


def test_every_kind_of_problem_is_the_same_from_a_table_and_from_a_row(curated: Path) -> None:
    known = {name: one for name, one in read_problems(PROBLEMS).items() if one.lang is not None}
    languages = {name: (name, one.lang) for name, one in known.items() if one.lang is not None}
    assert set_problems(curated, languages) == known
    assert {name: problem_of_row(row_of_problem(one), "here") for name, one in known.items()} == known


def test_a_group_of_rollouts_meets_the_tests_that_measuring_draws(tmp_path: Path) -> None:
    """The ids of twins differ, their group does not: the draw is the group's."""
    curated = write_set(tmp_path / "curated")
    (frame,) = [pl.read_parquet(file) for file in (curated / "data").glob("*.parquet")]
    frame.filter(pl.col("id") == "yes").with_columns(pl.lit("original").alias("group")).write_parquet(
        curated / "data" / "00000.parquet"
    )
    many = [{"problem": "yes", "index": n, "input": f"{n}\n", "output": "YES\n", "origin": "x"} for n in range(90)]
    pl.DataFrame(many, schema=TEST).write_parquet(curated / "tests" / "00000.parquet")
    tasks = load_tasks(CuratedData(kind="curated", folders=(str(curated),)), Split.TRAIN, Path())
    measured = build_problem("original", [(row["input"], row["output"]) for row in many], dict.fromkeys(JUDGING))
    trained = tasks["yes"].code_problem
    assert trained is not None
    assert draw_tests(trained, 11) == draw_tests(measured, 11) != draw_tests(measured, 12)


def test_functions_of_tables_have_their_calls_in_the_tests(runner: Runner) -> None:
    rules = {**dict.fromkeys(JUDGING), "function": "pair", "starter": "class Solution:\n    def pair(self, values):"}
    problem = build_problem("pair", [('[3, 4]\n"a"', '["a", 7]')], rules)
    assert (problem.tests, problem.test_count) == ((), 1)
    code = "```python\nclass Solution:\n    def pair(self, values, name):\n        return [name, sum(values)]\n```"
    (result,) = judge_programs(runner, [(problem, submission_in(Response(code, None)))])
    assert result.outcome is Outcome.CORRECT, result


def test_a_share_does_not_count_what_the_checker_failed_on(runner: Runner) -> None:
    checker = {
        "kind": "kattis",
        "lang": "python",
        "sources": {"v.py": "import sys\nsys.exit({'1': 42, '2': 43}.get(sys.stdin.read().strip(), 7))"},
    }
    problem = problem_of_row({"id": "x", "tests": [{"input": t, "output": ""} for t in "1123"], "checker": checker}, "")
    judge = ProgramJudge(lambda _: problem, 1, every=True, runner=runner)
    (result,) = judge.judge([JudgeTask("x", "", "en", (Response("```python\nprint(input())\n```", None),))])
    assert (result.verdicts[0].outcome, result.verdicts[0].passed) == (Outcome.WRONG, pytest.approx(2 / 3))


def test_a_problem_held_out_under_other_tests_is_refused(tmp_path: Path) -> None:
    curated = write_set(tmp_path / "curated")
    tasks = load_tasks(CuratedData(kind="curated", folders=(str(curated),)), Split.TRAIN, Path())
    other = replace(tasks["yes"], code_problem=CodeProblem("yes", (CodeTest(b"1", b"1"),)))
    Verifiers([tasks["yes"], tasks["yes"]], 1, RewardSettings())
    with pytest.raises(SourceError, match="different tests"):
        Verifiers([tasks["yes"], other], 1, RewardSettings())
