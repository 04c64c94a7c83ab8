"""`goldilocks run` on code: a few problems and a problem package, end to end, resumed, explained."""

from __future__ import annotations

import json
import shutil
import tomllib
from pathlib import Path

import polars as pl
import pytest

from curation.publish.export_formats import export_set
from curation.records import JUDGING, TEST
from curation.scoring.record import read_record
from curation.storage.stages import read_table
from curation.translation.invariants import ProblemText
from curation.translation.questions import ask, original_text, read_both, translation_request
from curation.verify.programs.files import problem_of_row
from curation.verify.programs.judge import judge_programs
from curation.verify.programs.problem import CodeLang, CodeVerdict, Submission
from curation.verify.programs.tables import set_problems
from curation.verify.programs.tools import Runner
from flows.cli.plan import plan_recipe
from tests.flows.code_rows import READ, sound_row
from tests.flows.conftest import goldilocks, write_jsonl
from tests.flows.run.folders import run, times
from tests.places import ROOT

LINE = "Write the program in Python 3."
ASK = "Given a whole number $n$, $0 \\le n \\le 1000$, print the whole number that comes right after it, on one line."
PLUS_ONE = tomllib.loads(Path(__file__).with_name("plus_one.toml").read_text(encoding="utf-8"))
"""A Kattis package, a model's programs for it, and its statement in German."""
GERMAN = PLUS_ONE["german"]
PACKAGE = {
    **PLUS_ONE["package"],
    "problem_statement/problem.en.tex": f"\\problemname{{Plus one}}\n{ASK}\n",
    **{f"data/secret/{n}.in": f"{n}\n" for n in range(6)},
    **{f"data/secret/{n}.ans": f"{n + 1 + (n == 4)}\n" for n in range(6)},
    "data/secret/7.in": "2000\n",  # more than is allowed: dropped with the validator's words
    "data/secret/7.ans": "2001\n",
}
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
    write_jsonl(folder / "problems.jsonl", [sound, lone])
    right = f"```python\n{READ}print(max(a) - min(a))\n```"
    wrong = "```python\nprint(0)\n```"
    plus = "```python\nprint(int(input()) + 1)\n```"
    rows = [{"problem": f"{sound['text']}\n\n{LINE}", "text": text} for text in (right, wrong, "none", right)]
    rows += [{"problem": f"{STATEMENT}\n\n{LINE}", "text": text} for text in (plus, wrong, wrong, plus)]
    write_jsonl(folder / "attempts.jsonl", rows)
    asked = [{"problem": STATEMENT, "text": text} for text in (PLUS_ONE["outside"], PLUS_ONE["generator"])]
    asked += [{"problem": row["text"], "text": PLUS_ONE["validator"]} for row in (lone, sound)]
    write_jsonl(folder / "generators.jsonl", asked)
    text = (ROOT / "flows" / "recipes" / "demo_code.toml").read_text()
    for old, new in (
        ("../demo/code/problems.jsonl", "problems.jsonl"),
        ("../demo/code/attempts.jsonl", "attempts.jsonl"),
        ("../demo/code/programs.jsonl", "generators.jsonl"),
        ("attempts = 8", "attempts = 4"),
        ('path = "problems.jsonl"', 'path = "problems.jsonl"\nprocesses = true'),
        ("[code]", '[code]\nlanguages = ["python"]'),
    ):
        text = text.replace(old, new)
    text += '\n[[sources]]\nname = "packages"\nkind = "kattis"\npath = "packages"\n'
    (folder / "code.toml").write_text(text)
    return folder / "code.toml"


@pytest.fixture(scope="module")
def finished(recipe: Path) -> Path:
    run(recipe, recipe.parent / "run")
    return recipe.parent / "run"


def table(folder: Path, name: str) -> pl.DataFrame:
    return pl.read_parquet(folder / "curated" / name / "*.parquet")


@pytest.mark.slow
def test_the_set_holds_problems_tests_and_limits(finished: Path) -> None:
    curated, tests, judging = (table(finished, name) for name in ("data", "tests", "judging"))
    assert curated.height == 2
    assert (tests.schema, judging.schema) == (TEST, JUDGING)
    assert set(tests["problem"]) == set(judging["problem"]) == set(curated["id"])
    assert judging["time_limit_s"].to_list() == [3.0, 3.0]
    assert curated["pass_rate"].to_list() == [0.5, 0.5]


@pytest.mark.slow
def test_the_right_to_processes_follows_the_row_into_the_set_and_an_export(finished: Path, tmp_path: Path) -> None:
    rights = dict(table(finished, "judging").select("problem", "processes").iter_rows())
    assert sorted(rights.values()) == [False, True]
    rows = pl.read_parquet(export_set(finished / "curated", "verl", tmp_path / "verl").file)
    records = [read_record(about["goldilocks"]) for about in rows["extra_info"]]
    problems = {record["id"]: problem_of_row(record["program"], "here") for record in records}
    assert {name: problem.processes for name, problem in problems.items()} == rights
    fork = "import os\nif os.fork() == 0:\n    os._exit(0)\nos.wait()\n"
    spread, plus = f"{fork}{READ}print(max(a) - min(a))", f"{fork}print(int(input()) + 1)"
    with Runner(1) as runner:
        if not runner.box.forks:
            pytest.skip("no rung here lets a program start processes")
        jobs = [(one, Submission(CodeLang.PYTHON, spread if one.processes else plus)) for one in problems.values()]
        results = zip(jobs, judge_programs(runner, jobs), strict=True)
        verdicts = {problem.processes: result.verdict for (problem, _), result in results}
    assert verdicts == {True: CodeVerdict.AC, False: CodeVerdict.RTE}


@pytest.mark.slow
def test_the_wrong_test_of_the_package_was_corrected_and_new_ones_catch_the_wrong_program(finished: Path) -> None:
    folder, asked = (finished / "stages" / name for name in ("10-tests", "09-test-programs"))
    (name,) = read_table(finished / "stages" / "01-sources", "kept").filter(source="packages")["id"]
    decisions = read_table(folder, "decisions").filter(problem=name)
    refused = decisions.filter(why="refused_input").select("decision", "evidence").rows()
    assert refused == [("discard", "exit code 1: 2000 is too large")]
    assert decisions.filter(decision="correct")["test"].to_list() == [4]
    tests = read_table(folder, "tests").filter(problem=name)
    assert tests.filter(index=4)["output"].to_list() == ["5\n"]
    assert "model" in set(tests["origin"])
    assert all(0 <= int(text) <= 997 for text in tests.filter(pl.col("origin") != "secret")["input"])
    assert read_table(asked, "proposals").filter("accepted")["id"].to_list().count(name) == 2
    power = read_table(folder, "power").filter(problem=name).row(0, named=True)
    assert (power["wrong"], power["caught_given"], power["caught"]) == (1, 0, 1)
    assert power["refused"] >= 2  # 999 and 998: allowed by the statement, refused by the package's validator
    notes = [json.loads((stage / "DONE.json").read_text())["notes"] for stage in (folder, asked)]
    assert (notes[0]["refused_given"], notes[1]["asked"]) == (1, 3)


TRANSLATION = Path(__file__).with_name("translation.toml").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_statement_is_translated_and_its_tests_stay(recipe: Path, finished: Path, tmp_path: Path) -> None:
    """The table is added to a finished run; translator and reader are recorded."""
    home, folder = tmp_path / "code", tmp_path / "run"
    shutil.copytree(recipe.parent, home, ignore=shutil.ignore_patterns("run"))
    shutil.copytree(finished, folder)
    before = table(finished, "data")
    (plus,) = before.filter(pl.col("statement").str.contains(STATEMENT, literal=True)).to_dicts()
    subject = {name: plus[name] for name in ("statement", "answer", "domain")}
    subject |= {"target": "de", "choices": None, "unchanged": None}
    rows = [
        {"problem": ask(translation_request(subject)), "text": f"<translation>{GERMAN}</translation>"},
        {"problem": read_both(original_text(subject), ProblemText(GERMAN), "de").statement, "text": "VERDICT: SAME"},
    ]
    write_jsonl(home / "translations.jsonl", rows)
    (home / "code.toml").write_text((home / "code.toml").read_text() + TRANSLATION)
    run(home / "code.toml", folder)
    curated = table(folder, "data")
    (new,) = curated.filter(pl.col("translation_of").is_not_null()).to_dicts()
    assert new["statement"] == GERMAN
    assert curated.filter(pl.col("translation_of").is_null()).equals(before)
    for name in ("tests", "judging"):
        names = (new["id"], new["translation_of"])
        own, original = (table(folder, name).filter(problem=which).drop("problem") for which in names)
        assert own.height > 0
        assert own.equals(original)
    assert export_set(folder / "curated", "verl", tmp_path / "verl").rows == 3
    assert read_table(folder / "stages" / "10-translation", "dropped")["reason"].to_list() == ["untranslated"]


@pytest.mark.slow
def test_a_finished_run_makes_nothing_again(finished: Path, recipe: Path) -> None:
    made = times(finished / "stages", "*.parquet")
    assert made
    run(recipe, finished)
    assert times(finished / "stages", "*.parquet") == made


@pytest.mark.slow
def test_a_plan_runs_the_code_pipelines_own_filters(finished: Path, recipe: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(finished, tmp_path / "run")
    for name in ("verdicts/stage1", "stages/10-export"):
        shutil.rmtree(copy / name)
    (plan,) = plan_recipe(recipe, copy)
    assert (plan.stage, plan.problems, plan.pilot, plan.attempts.mean) == ("stage1", 2, 2, 2 * 4)


@pytest.mark.slow
def test_explain_shows_the_matrix(finished: Path) -> None:
    (twin,) = table(finished, "data").filter(source="packages")["id"]
    explained = goldilocks("explain", finished, twin)
    assert explained.status == 0, explained.err
    for words in ("correct: corrected, 3 of 3 votes", "solution 3 of the source, python, labelled wrong: ", "stage 1"):
        assert words in explained.out


# --- functions, in the forms of MBPP and HumanEval -------------------------------------------------------------------

MBPP, HUMANEVAL = map(json.loads, Path(__file__).with_name("functions.jsonl").read_text(encoding="utf-8").splitlines())
FUNCTIONS = Path(__file__).with_name("functions.toml").read_text(encoding="utf-8")
FUNCTION_LINE = "Write the function in Python 3."


def test_functions_are_curated_and_judged_by_their_asserts(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "mbpp.jsonl", [MBPP])
    write_jsonl(tmp_path / "humaneval.jsonl", [HUMANEVAL])
    asked = f"{MBPP['text']}\n\nThe function is called as in `{MBPP['test_list'][0]}`.\n\n{FUNCTION_LINE}"
    right, wrong = f"```python\n{MBPP['code']}\n```", "```python\ndef shared(a, b): return a\n```"
    rows = [{"problem": asked, "text": text} for text in (right, wrong, right, wrong)]
    asked = f"{HUMANEVAL['prompt'].strip()}\n\n{FUNCTION_LINE}"
    right = f"```python\n{HUMANEVAL['prompt']}{HUMANEVAL['canonical_solution']}```"
    rows += [{"problem": asked, "text": text} for text in (right, "none", "none", "none")]
    write_jsonl(tmp_path / "attempts.jsonl", rows)
    (tmp_path / "functions.toml").write_text(FUNCTIONS)
    run(tmp_path / "functions.toml", tmp_path / "run")
    data = table(tmp_path / "run", "data").sort("source", descending=True)
    assert data["source"].to_list() == ["mbpp", "humaneval"]
    assert data["correct"].to_list() == [2, 1]
    groups = {row["id"]: (row["group"], CodeLang.PYTHON) for row in data.iter_rows(named=True)}
    problems = set_problems(tmp_path / "run" / "curated", groups)
    submissions = [Submission(CodeLang.PYTHON, text) for text in (MBPP["code"], "def area(r): return 3 * r")]
    with Runner(1) as runner:
        jobs = zip((problems[name] for name in data["id"]), submissions, strict=True)
        assert [one.verdict for one in judge_programs(runner, jobs)] == [CodeVerdict.AC, CodeVerdict.WA]
