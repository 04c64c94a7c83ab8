"""Licences of a run: each row's own, and a card that may not promise more."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.flows.conftest import goldilocks, published, recipe_with, refusal, write_jsonl

RECIPE = recipe_with(
    'name="licensed"',
    "shard_rows=2000",
    'export.license="apache-2.0"',
    'sources.0.columns.license="terms"',
    "stage1.band.attempts=2",
    'models.student.path="attempts.jsonl"',
)
SUMS = {f"What is {number} plus {number} times 3?": 4 * number for number in (11, 12, 13, 14)}
TERMS = (None, "CC-BY-NC-4.0", "cc-by-4.0", "CC-BY-NC-4.0")  # in whatever letters


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    rows = [{"question": text, "final": str(value)} for text, value in SUMS.items()]
    write_jsonl(tmp_path / "problems.jsonl", [{**row, "terms": terms} for row, terms in zip(rows, TERMS, strict=True)])
    tries = [{"question": text, "tries": [{"text": str(value)}, {"text": "1"}]} for text, value in SUMS.items()]
    write_jsonl(tmp_path / "attempts.jsonl", tries)
    (tmp_path / "licensed.toml").write_text(RECIPE)
    return tmp_path / "licensed.toml"


def test_rows_that_forbid_the_cards_licence_are_named_and_published_if_the_recipe_asks(
    recipe: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    said = goldilocks("run", recipe, "--out", run)
    assert said.status == 1
    assert "source school: 2 rows (1, 3) under CC-BY-NC-4.0, which allows non-commercial use only" in said.err
    assert "`export.license` is apache-2.0" in said.err
    said = goldilocks("run", recipe, "--out", run, "--set", "export.license=other")
    assert said.status == 0, said.err
    licenses = published(run, "data").sort("row")["license"].to_list()
    assert licenses == ["MIT", "CC-BY-NC-4.0", "CC-BY-4.0", "CC-BY-NC-4.0"]
    told = (run / "curated" / "ATTRIBUTION.md").read_text()
    line = "| school | problems.jsonl | not pinned |"
    assert f"{line} CC-BY-NC-4.0 | 2 | 0 | 0 |" in told
    assert f"{line} MIT | 1 | 0 | 0 |" in told


def test_what_is_no_licence_is_refused(recipe: Path, tmp_path: Path) -> None:
    recipe.write_text(RECIPE.replace('"MIT"', '"NOT-A-LICENCE-!!"'))
    assert "'NOT-A-LICENCE-!!' is no SPDX licence" in refusal("run", recipe, "--out", tmp_path / "run")
    recipe.write_text(RECIPE.replace('"apache-2.0"', '"Apache 2"'))
    assert "perhaps 'Apache-2.0' is meant" in refusal("run", recipe, "--out", tmp_path / "run")
    recipe.write_text(RECIPE)
    rows = (tmp_path / "problems.jsonl").read_text()
    (tmp_path / "problems.jsonl").write_text(rows.replace('"cc-by-4.0"', '"free"'))
    assert "line 3: 'free' is no SPDX licence" in goldilocks("run", recipe, "--out", tmp_path / "run").err


@pytest.mark.slow
def test_merged_copies_keep_where_they_stood_and_under_which_licence(recipe: Path, tmp_path: Path) -> None:
    text, value = next(iter(SUMS.items()))
    near = text.replace("What is", "Now what is")
    copies = [{"question": text, "final": str(value)}, {"question": near, "final": str(value)}]
    write_jsonl(tmp_path / "copies.jsonl", [*copies, {"question": f"  {near}", "final": str(value)}])
    more = """
[[sources]]
name = "web"
kind = "jsonl"
path = "copies.jsonl"
license = "CC-BY-NC-4.0"
columns = { statement = "question", answer = "final" }

[near_dedup]
threshold = 0.6
"""
    recipe.write_text(RECIPE.replace("[stage1]", f"{more}\n[stage1]", 1))
    run = tmp_path / "run"
    said = goldilocks("run", recipe, "--out", run, "--set", "export.license=other")
    assert said.status == 0, said.err
    rows = published(run, "data").sort("row")
    assert rows["also_from"].to_list() == [
        [{"source": "web", "row": row, "license": "CC-BY-NC-4.0"} for row in (0, 1, 2)], [], [], []
    ]  # fmt: skip
    told = (run / "curated" / "ATTRIBUTION.md").read_text()
    named = "| web | copies.jsonl | not pinned | CC-BY-NC-4.0 | 0 | 0 | 3 |"
    assert named in told
    card = (run / "curated" / "README.md").read_text()
    assert re.search(r"\| web \| CC-BY-NC-4\.0 \| digest `\w+` \| 3 \| 0 \| 3 \|", card)


def test_a_copys_licence_counts_as_a_rows_own(recipe: Path, tmp_path: Path) -> None:
    rows = [{"question": text, "final": str(value)} for text, value in SUMS.items()]
    write_jsonl(tmp_path / "problems.jsonl", [*rows, {**rows[0], "terms": "CC-BY-NC-4.0"}])
    assert "1 row (4) under CC-BY-NC-4.0" in goldilocks("run", recipe, "--out", tmp_path / "run").err
