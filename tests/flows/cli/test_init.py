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


def test_a_file_without_answers_is_refused_with_its_columns(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text(json.dumps({"question": "Why?", "id": 1}) + "\n")
    said = refusal("init", tmp_path / "rows.jsonl", "--out", tmp_path / "recipe.toml")
    assert "no column is named as answers are" in said
    assert "its columns are question, id" in said
    assert not (tmp_path / "recipe.toml").exists()
