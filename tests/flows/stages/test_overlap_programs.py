"""Decontamination in the code pipeline: a task in other words is found by what it does, an alike one stays."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from curation.storage.stages import read_table
from flows.pipelines.curate_code import CURATE_CODE
from flows.run.pipeline import run_stage
from flows.run.run_folder import new_run
from flows.run.stage import Results
from flows.stages.decontamination import DECONTAMINATION
from tests.flows.conftest import stamps, write_jsonl

RECIPE = """
name = "overlap"
flow = "curate-code"
workers = 1
[[sources]]
name = "rows"
kind = "jsonl"
path = "rows.jsonl"
columns = { statement = "text" }
[sources.code]
tests = [{ path = "tests" }]
solutions = [{ path = "solutions" }]
[[decontamination.against]]
name = "exam"
kind = "jsonl"
path = "exam.jsonl"
field = "task"
solution = "program"
tests = "cases"
[stage1]
model = "student"

[models.student]
kind = "recorded"
name = "nobody@1"
path = "none.jsonl"
columns = { problem = "problem", text = "text" }
"""
EXAM = "Read the masses of crates on a barge, and print by how much the heaviest exceeds the lightest."
SAME = "Several crates stand on a barge. You read all of their masses. Print heaviest minus lightest."
ALIKE = "Several crates stand on a barge. You read all of their masses. Print heaviest plus lightest."
OTHERS = [
    f"A {who} writes down {what}. Given these, say with one number how {how}."
    for who, what, how in zip(
        "gardener pilot baker singer tailor diver poet miner".split(),
        "heights speeds loaves notes seams depths verses tunnels".split(),
        "tall fast crusty loud long deep rhymed dark".split(),
        strict=True,
    )
]
INPUTS = ("3 9 4\n", "10 2\n", "7\n", "5 5 6\n", "1 2 3 30\n", "8 1 1\n")
SPREAD, TOTAL = (f"a = list(map(int, input().split()))\nprint(max(a) {sign} min(a))\n" for sign in "-+")


def row(text: str, program: str) -> dict[str, object]:
    sign = -1 if program == SPREAD else 1
    values = [(given, list(map(int, given.split()))) for given in INPUTS]
    tests = [{"input": given, "output": f"{max(numbers) + sign * min(numbers)}\n"} for given, numbers in values]
    return {"text": text, "tests": tests, "solutions": [program]}


def dropped(folder: Path, *settings: str) -> list[tuple[int, str]]:
    """Run the code pipeline up to decontamination, and return which rows it dropped, with the evidence."""
    run, results = new_run(folder / "recipe.toml", settings, folder / "run"), Results()
    for stage in CURATE_CODE.stages_of(run):
        results = results.plus(run_stage(stage, run, results))
        if stage is DECONTAMINATION:
            break
    table = read_table(results.problems.folder, "dropped")
    return list(table.select("row", "evidence").iter_rows()) if table.width else []


def write(folder: Path, exam: dict[str, object]) -> None:
    write_jsonl(folder / "rows.jsonl", [row(SAME, SPREAD), row(ALIKE, TOTAL), *(row(text, TOTAL) for text in OTHERS)])
    write_jsonl(folder / "exam.jsonl", [{"task": EXAM, "program": None, "cases": None, **exam}])
    (folder / "recipe.toml").write_text(RECIPE)


def test_what_behaves_like_a_benchmarks_task_leaves(tmp_path: Path) -> None:
    write(tmp_path, {"program": SPREAD})
    ((place, evidence),) = dropped(tmp_path)
    assert place == 0
    assert evidence.endswith("with row 0 of exam, 12 of 12 calls agree")
    scores = tmp_path / "run" / "stages" / "07-decontamination-scores"
    before = stamps(scores)
    assert dropped(tmp_path, "decontamination.words=0.9") == []  # another threshold runs nothing again
    assert stamps(scores) == before
    assert dropped(tmp_path, "decontamination.behaviour=false") == []


def test_a_benchmark_with_tests_alone(tmp_path: Path) -> None:
    cases = [{"input": "1 5\n", "output": "4\n"}, {"input": "2 9 3\n", "output": "7"}]
    write(tmp_path, {"cases": cases})
    assert [(place, evidence.rpartition(", ")[2]) for place, evidence in dropped(tmp_path)] == [
        (0, "2 of 2 calls agree")
    ]
    scores = read_table(tmp_path / "run" / "stages" / "07-decontamination-scores", "scores")
    assert scores.filter(pl.col("row") == 1)["trial"].unique().to_list() == ["other"]
