"""`goldilocks init`: a recipe from a file's columns that runs as it is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from flows.run.recipe import load_recipe
from tests.flows.conftest import goldilocks, refusal, write_jsonl


def rows(**columns: Any) -> list[dict[str, Any]]:
    return [{name: value.format(number) for name, value in columns.items()} for number in range(8)]


@pytest.mark.parametrize(
    ("columns", "answer"),
    [
        ({"Question": "What is {0} + 1?", "final_answer": "{0}"}, "final_answer"),
        ({"problem": "What is {0} + 1?", "solution": "It is\n#### {0}"}, {"path": "solution", "take": "hash"}),
        ({"prompt": "What is {0} + 1?", "output": "\\boxed{{{0}}}"}, {"path": "output", "take": "boxed"}),
    ],
)
def test_the_recipe_of_a_file_is_one_that_runs(columns: dict[str, str], answer: Any, tmp_path: Path) -> None:
    write_jsonl(tmp_path / "set one.jsonl", rows(**columns))
    out = tmp_path / "recipe.toml"
    said = goldilocks("init", tmp_path / "set one.jsonl", "--out", out, "--model", "embedded")
    assert said.out.splitlines()[1] == f"next: goldilocks run {out} --dry"
    (source,) = load_recipe(out).sources
    assert source.columns.statement == next(iter(columns))
    found = source.columns.answer
    assert (found if isinstance(found, str) else found.model_dump(exclude_none=True)) == answer
    dry = goldilocks("run", out, "--dry")
    assert dry.status == 0, dry.err
    assert "exists already" in refusal("init", tmp_path / "set one.jsonl", "--out", out)


def test_a_file_of_programs_becomes_a_code_recipe(tmp_path: Path) -> None:
    mbpp = {
        "prompt": "Add two numbers.",
        "code": "def sum(a, b):\n  return a + b",
        "test_list": ["assert sum(1, 2) == 3"],
    }
    write_jsonl(tmp_path / "mbpp.jsonl", [mbpp] * 3)
    out = tmp_path / "mbpp.toml"
    assert "tests = test_list, solutions = code" in goldilocks("init", tmp_path / "mbpp.jsonl", "--out", out).out
    recipe = load_recipe(out)
    assert (recipe.flow, recipe.code.min_tests) == ("curate-code", 1)
    assert goldilocks("run", out, "--dry").status == 0
    humaneval = {"prompt": "def f(x):\n", "entry_point": "f", "canonical_solution": "  return x\n"}
    write_jsonl(tmp_path / "he.jsonl", [{**humaneval, "test": "def check(candidate):\n  assert candidate(1) == 1\n"}])
    goldilocks("init", tmp_path / "he.jsonl", "--out", tmp_path / "he.toml")
    code = load_recipe(tmp_path / "he.toml").sources[0].code
    assert code is not None
    assert (code.function, code.starter, code.solutions[0].path) == ("entry_point", "prompt", "canonical_solution")


def test_a_file_without_answers_is_refused_with_its_columns(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text(json.dumps({"question": "Why?", "id": 1}) + "\n")
    said = refusal("init", tmp_path / "rows.jsonl", "--out", tmp_path / "recipe.toml")
    assert "no column has a usual name of answers" in said
    assert "its columns are question, id" in said
    assert not (tmp_path / "recipe.toml").exists()
