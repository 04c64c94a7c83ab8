"""`goldilocks run` on code: a few problems and a problem package, end to end, resumed, explained."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import polars as pl
import pytest

from curation.publish.export_formats import export_set
from curation.records import JUDGING, TEST
from curation.scoring.record import read_record
from curation.storage.stages import read_manifest, read_table
from curation.translation.invariants import ProblemText
from curation.translation.questions import ask, original_text, read_both, translation_request
from curation.verify.programs.files import problem_of_row
from curation.verify.programs.judge import judge_programs
from curation.verify.programs.problem import CodeLang, CodeVerdict, Submission
from curation.verify.programs.tools import Runner
from flows.cli.commands import run_recipe
from flows.cli.plan import plan_recipe
from tests.flows.code_rows import READ, sound_row
from tests.flows.conftest import goldilocks
from tests.places import ROOT

pytestmark = pytest.mark.slow

RECIPES = ROOT / "flows" / "recipes"
LINE = "Write the program in Python 3."
ASK = "Given a whole number $n$, $0 \\le n \\le 1000$, print the whole number that comes right after it, on one line."
PACKAGE = {
    "problem.yaml": "name: Plus one\nlicense: cc by\n",
    "problem_statement/problem.en.tex": f"\\problemname{{Plus one}}\n{ASK}\n",
    **{f"data/secret/{n}.in": f"{n}\n" for n in range(6)},
    **{f"data/secret/{n}.ans": f"{n + 1 + (n == 4)}\n" for n in range(6)},
    "data/secret/7.in": "2000\n",  # more than is allowed: dropped with the validator's words
    "data/secret/7.ans": "2001\n",
    "input_validators/v.py": "import sys\nn = int(input())\nsys.exit(42 if 0 <= n <= 997 else f'{n} is too large')\n",
    "submissions/accepted/a.py": "print(int(input()) + 1)\n",
    "submissions/accepted/b.py": "n = int(input())\nprint(n - -1)\n",
    "submissions/accepted/c.py": "import sys\nprint(1 + int(sys.stdin.read()))\n",
    "submissions/wrong_answer/w.py": "n = int(input())\nprint(n + 1 if n < 300 else 1)\n",
}
GENERATOR = "```python\nk = int(input())\nprint(1000 - k)\n```\n```python\nassert 0 <= int(input()) <= 1000\n```\n"
OUTSIDE = "```python\nk = int(input())\nprint(-k)\n```\n```python\nassert 0 <= int(input()) <= 1000\n```\n"
"""A generator whose inputs its own validator rejects."""

VALIDATOR = """```python
raise SystemExit(1)
```
```python
import sys
lines = sys.stdin.read().split("\\n")
values = list(map(int, lines[1].split(" ")))
assert len(lines) == 3 and lines[2] == "" and len(values) == int(lines[0]) <= 50 and max(map(abs, values)) <= 1000
```
"""
"""A generator that fails, and a validator that is right."""

STATEMENT = f"# Plus one\n\n{ASK}"


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recipe with a jsonl source, a package, recorded attempts and a recorded generator."""
    folder = tmp_path_factory.mktemp("code")
    for name, text in PACKAGE.items():
        file = folder / "packages" / "plusone" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    sound, lone = sound_row(1), sound_row(0, tests=2, right=1)
    sound["parallel"] = True
    (folder / "problems.jsonl").write_text("".join(json.dumps(row) + "\n" for row in (sound, lone)))
    right = f"```python\n{READ}print(max(a) - min(a))\n```"
    wrong = "```python\nprint(0)\n```"
    plus = "```python\nprint(int(input()) + 1)\n```"
    rows = [{"problem": f"{sound['text']}\n\n{LINE}", "text": text} for text in (right, wrong, "none", right)]
    rows += [{"problem": f"{STATEMENT}\n\n{LINE}", "text": text} for text in (plus, wrong, wrong, plus)]
    (folder / "attempts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    asked = [{"problem": STATEMENT, "text": text} for text in (OUTSIDE, GENERATOR)]
    asked += [{"problem": row["text"], "text": VALIDATOR} for row in (lone, sound)]
    (folder / "generators.jsonl").write_text("".join(json.dumps(row) + "\n" for row in asked))
    text = (RECIPES / "demo_code.toml").read_text()
    text = text.replace("../demo/code/problems.jsonl", "problems.jsonl").replace(
        "../demo/code/attempts.jsonl", "attempts.jsonl"
    )
    text = (
        text.replace("attempts = 8", "attempts = 4")
        .replace('"../demo/code/programs.jsonl"', '"generators.jsonl"')
        .replace('path = "problems.jsonl"', 'path = "problems.jsonl"\nprocesses = true')
        .replace("[code]", '[code]\nlanguages = ["python"]')
    )
    text += """
[[sources]]
name = "packages"
kind = "kattis"
path = "packages"
"""
    (folder / "code.toml").write_text(text)
    return folder / "code.toml"


@pytest.fixture(scope="module")
def finished(recipe: Path) -> Path:
    run_recipe(recipe, [], recipe.parent / "run")
    return recipe.parent / "run"


def test_the_set_holds_problems_tests_and_limits(finished: Path) -> None:
    curated = pl.read_parquet(finished / "curated" / "data" / "*.parquet")
    tests = pl.read_parquet(finished / "curated" / "tests" / "*.parquet")
    judging = pl.read_parquet(finished / "curated" / "judging" / "*.parquet")
    assert curated.height == 2
    assert tests.schema == TEST
    assert judging.schema == JUDGING
    assert set(tests["problem"]) == set(judging["problem"]) == set(curated["id"])
    assert judging["time_limit_s"].to_list() == [3.0, 3.0]
    assert curated["pass_rate"].to_list() == [0.5, 0.5]
    assert export_set(finished / "curated", "verl", finished.parent / "verl").rows == 2


def test_the_right_to_processes_follows_the_row_into_the_set_and_an_export(finished: Path, tmp_path: Path) -> None:
    rights = pl.read_parquet(finished / "curated" / "judging" / "*.parquet").select("problem", "processes")
    assert sorted(rights["processes"]) == [False, True]
    rows = pl.read_parquet(export_set(finished / "curated", "verl", tmp_path / "verl").file)
    records = [read_record(about["goldilocks"]) for about in rows["extra_info"]]
    problems = {record["id"]: problem_of_row(record["program"], "here") for record in records}
    assert {name: problem.processes for name, problem in problems.items()} == dict(rights.iter_rows())
    fork = "import os\nif os.fork() == 0:\n    os._exit(0)\nos.wait()\n"
    spread, plus = f"{fork}{READ}print(max(a) - min(a))", f"{fork}print(int(input()) + 1)"
    with Runner(1) as runner:
        if not runner.box.forks:
            pytest.skip("no rung here lets a program start processes")
        jobs = [(one, Submission(CodeLang.PYTHON, spread if one.processes else plus)) for one in problems.values()]
        verdicts = {
            job[0].processes: result.verdict for job, result in zip(jobs, judge_programs(runner, jobs), strict=True)
        }
    assert verdicts == {True: CodeVerdict.AC, False: CodeVerdict.RTE}


def test_the_wrong_test_of_the_package_was_corrected_and_new_ones_catch_the_wrong_program(finished: Path) -> None:
    folder = finished / "stages" / "10-tests"
    name = next(
        row["id"]
        for row in read_table(finished / "stages" / "01-sources", "kept").iter_rows(named=True)
        if row["source"] == "packages"
    )
    decisions = read_table(folder, "decisions").filter(pl.col("problem") == name)
    refused = decisions.filter(pl.col("why") == "refused_input").select("decision", "evidence").rows()
    assert refused == [("discard", "exit code 1: 2000 is too large")]
    assert decisions.filter(pl.col("decision") == "correct")["test"].to_list() == [4]
    tests = read_table(folder, "tests").filter(pl.col("problem") == name)
    assert tests.filter(pl.col("index") == 4)["output"].to_list() == ["5\n"]
    assert "model" in set(tests["origin"])
    assert all(0 <= int(text) <= 997 for text in tests.filter(pl.col("origin") != "secret")["input"])
    proposals = read_table(finished / "stages" / "09-test-programs", "proposals").filter("accepted")
    assert proposals["id"].to_list().count(name) == 2
    power = read_table(folder, "power").filter(pl.col("problem") == name).row(0, named=True)
    assert (power["wrong"], power["caught_given"], power["caught"]) == (1, 0, 1)
    assert power["refused"] >= 2  # 999 and 998: by the statement they are fine, the package's validator says no


GERMAN = (
    "# Plus one\n\nGegeben ist eine ganze Zahl $n$ mit $0 \\le n \\le 1000$. Gib die ganze Zahl, die unmittelbar auf "
    "sie folgt, in einer Zeile aus.\n\nSchreibe das Programm in Python 3."
)


def test_a_statement_is_translated_and_its_tests_stay(recipe: Path, finished: Path, tmp_path: Path) -> None:
    """The table is added to a finished run; translator and reader are recorded."""
    home, folder = tmp_path / "code", tmp_path / "run"
    shutil.copytree(recipe.parent, home, ignore=shutil.ignore_patterns("run", "verl"))
    shutil.copytree(finished, folder)
    before = pl.read_parquet(finished / "curated" / "data" / "*.parquet")
    subjects = [
        {"target": "de", **row, "unchanged": None}
        for row in before.with_columns(choices=None).select("statement", "answer", "choices", "domain").to_dicts()
    ]
    (plus,) = (subject for subject in subjects if STATEMENT in subject["statement"])
    rows = [
        {"problem": ask(translation_request(plus)), "text": f"<translation>{GERMAN}</translation>"},
        {"problem": read_both(original_text(plus), ProblemText(GERMAN), "de").statement, "text": "VERDICT: SAME"},
    ]
    (home / "translations.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    table = """
[translation]
model = "linguist"
languages = ["de"]
share = 1.0

[models.linguist]
kind = "recorded"
name = "linguist@recorded"
path = "translations.jsonl"
columns = { problem = "problem", text = "text" }
"""
    (home / "code.toml").write_text((home / "code.toml").read_text() + table)
    said = goldilocks("run", home / "code.toml", "--out", folder)
    assert said.status == 0, said.err
    curated = pl.read_parquet(folder / "curated" / "data" / "*.parquet")
    (new,) = curated.filter(pl.col("translation_of").is_not_null()).to_dicts()
    assert new["statement"] == GERMAN
    assert curated.filter(pl.col("translation_of").is_null()).equals(before)
    original = new["translation_of"]
    for name in ("tests", "judging"):
        rows_of_both = pl.read_parquet(folder / "curated" / name / "*.parquet")
        own, others = (rows_of_both.filter(problem=which).drop("problem") for which in (new["id"], original))
        assert own.height > 0
        assert own.equals(others)
    assert export_set(folder / "curated", "verl", tmp_path / "verl").rows == 3
    assert read_table(folder / "stages" / "10-translation", "dropped")["reason"].to_list() == ["untranslated"]


def test_refused_inputs_and_asked_programs_are_counted(finished: Path) -> None:
    made, asked = (read_manifest(finished / "stages" / name) for name in ("10-tests", "09-test-programs"))
    assert made is not None
    assert asked is not None
    assert (made.notes["refused_given"], asked.notes["asked"]) == (1, 3)


def test_a_finished_run_makes_nothing_again(finished: Path, recipe: Path) -> None:
    made = {file: file.stat().st_mtime_ns for file in (finished / "stages").rglob("*.parquet")}
    run_recipe(recipe, [], finished)
    assert {file: file.stat().st_mtime_ns for file in made} == made


def test_a_plan_runs_the_code_pipelines_own_filters(finished: Path, recipe: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(finished, tmp_path / "run")
    for name in ("verdicts/stage1", "stages/10-export"):
        shutil.rmtree(copy / name)
    (plan,) = plan_recipe(recipe, copy)
    assert (plan.stage, plan.problems, plan.pilot, plan.attempts.mean) == ("stage1", 2, 2, 2 * 4)


def test_explain_shows_the_matrix(finished: Path) -> None:
    twin = pl.read_parquet(finished / "curated" / "data" / "*.parquet").filter(pl.col("source") == "packages")["id"][0]
    said = goldilocks("explain", finished, twin)
    assert said.status == 0, said.err
    assert "correct: corrected, 3 of 3 votes" in said.out
    assert "solution 3 of the source, python, labelled wrong: " in said.out
    assert "stage 1" in said.out
