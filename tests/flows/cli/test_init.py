"""`goldilocks init`: a recipe from a file's columns that runs as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from curation.config import Recipe
from flows.run.recipe import load_recipe
from tests.flows.conftest import goldilocks, refusal, write_jsonl


def made(folder: Path, row: dict[str, Any], words: str, *options: str) -> Recipe:
    """The recipe of eight such rows, which names their columns and which a run accepts."""
    out = folder / "recipe.toml"
    rows = write_jsonl(folder / "set one.jsonl", [row] * 8)
    said = goldilocks("init", rows, "--out", out, *options).out
    assert words in said
    assert said.splitlines()[1] == f"next: goldilocks run {out} --dry"
    dry = goldilocks("run", out, "--dry")
    assert dry.status == 0, dry.err
    assert "exists already" in refusal("init", rows, "--out", out)
    return load_recipe(out)


@pytest.mark.parametrize(
    ("row", "answer"),
    [
        ({"Question": "What is 4 + 1?", "final_answer": "5"}, "final_answer"),
        ({"problem": "What is 4 + 1?", "solution": "It is\n#### 5"}, {"path": "solution", "take": "hash"}),
        ({"prompt": "What is 4 + 1?", "output": "\\boxed{5}"}, {"path": "output", "take": "boxed"}),
    ],
)
def test_the_recipe_of_a_file_is_one_that_runs(row: dict[str, str], answer: Any, tmp_path: Path) -> None:
    columns = made(tmp_path, row, "", "--model", "embedded").sources[0].columns.model_dump(exclude_none=True)
    assert (columns["statement"], columns["answer"]) == (next(iter(row)), answer)


def test_a_file_of_programs_becomes_a_code_recipe(tmp_path: Path) -> None:
    mbpp = {"prompt": "Add two numbers.", "code": "def sum(a, b):\n  return a + b"}
    recipe = made(tmp_path, {**mbpp, "test_list": ["assert sum(1, 2) == 3"]}, "tests = test_list, solutions = code")
    assert (recipe.flow, recipe.code.min_tests) == ("curate-code", 1)
    (tmp_path / "recipe.toml").unlink()
    humaneval = {"prompt": "def f(x):\n", "entry_point": "f", "canonical_solution": "  return x\n"}
    test = "def check(candidate):\n  assert candidate(1) == 1\n"
    code = made(tmp_path, {**humaneval, "test": test}, "").sources[0].code
    assert code is not None
    assert (code.function, code.starter, code.solutions[0].path) == ("entry_point", "prompt", "canonical_solution")


def test_a_file_without_answers_is_refused_with_its_columns(tmp_path: Path) -> None:
    rows = write_jsonl(tmp_path / "rows.jsonl", [{"question": "Why?", "id": 1}])
    said = refusal("init", rows, "--out", tmp_path / "recipe.toml")
    assert "no column has a usual name of answers" in said
    assert "its columns are question, id" in said
    assert list(tmp_path.iterdir()) == [rows]


def test_a_column_of_ids_is_kept_for_explain(tmp_path: Path) -> None:
    rows = write_jsonl(tmp_path / "rows.jsonl", [{"question": "What is 3 + 4?", "answer": "7", "uid": "hw-1"}])
    made = goldilocks("init", rows, "--out", tmp_path / "recipe.toml")
    assert "meta = uid" in made.out
    assert load_recipe(tmp_path / "recipe.toml").sources[0].columns.meta == ("uid",)
