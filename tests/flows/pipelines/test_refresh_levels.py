"""Level control: a refresh measures new rows of the levels that have the right difficulty for the new policy."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from random import Random

import polars as pl
import pytest

from curation.plugins import load_plugin
from curation.storage.stages import read_json
from flows.cli.commands import refresh_run
from flows.pipelines.refresh import DRAWN, LEVELS, RETIRED, WAITS
from flows.publish.versions import scan_decisions
from tests.flows.conftest import ROOT, goldilocks, published, write_jsonl

ROWS, ATTEMPTS = 30, 8
OLD = {1: 0.95, 2: 0.5, 3: 0.1, 4: 0.0}
NEW = {1: 1.0, 2: 0.95, 3: 0.5, 4: 0.0}
"""Shares of correct attempts of two policies, by level."""

RECIPE = f"""
name = "levels"
[[sources]]
kind = "procedural"
name = "sums"
generator = "sums.py:make"
levels = 4
rows_per_level = {ROWS}
reserve_per_level = {2 * ROWS}
[near_dedup]
enabled = false
[stage1]
model = "student"
band = {{ attempts = {ATTEMPTS} }}
sampling = {{ error_rate = 0.0 }}
[labels]
rule = "votes"
"""


def policy(folder: Path, name: str, rates: Mapping[int, float]) -> str:
    """Write the attempts of a policy at all rows, reserve included; returns its table of a recipe."""
    make, draw, rows = load_plugin("sums.py:make", folder).value, Random(name), []
    for level in rates:
        for seed in range(3 * ROWS):
            row = make(level=level, seed=seed)
            wrong = (str(int(row["answer"]) + draw.randrange(1, 99)) for _ in range(ATTEMPTS))
            finals = [row["answer"] if draw.random() < rates[level] else other for other in wrong]
            texts = [{"text": f"\\boxed{{{final}}}"} for final in finals]
            rows.append({"question": row["statement"], "tries": texts})
    write_jsonl(folder / f"{name}.jsonl", rows)
    columns = 'columns = { problem = "question", attempts = "tries", text = "text" }'
    return f'[models.{name}]\nkind = "recorded"\nname = "{name}@1"\npath = "{name}.jsonl"\n{columns}\n'


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recipe with its generator and its model, and the file of a newer policy."""
    folder = tmp_path_factory.mktemp("levels")
    code = (ROOT / "flows" / "recipes" / "procedural_sums.py").read_text()
    (folder / "sums.py").write_text(code.replace("11, 90", "1001, 9000"))  # too many for copies
    (folder / "recipe.toml").write_text(RECIPE + policy(folder, "student", OLD))
    (folder / "newer.toml").write_text(policy(folder, "newer", NEW))
    return folder


@pytest.fixture(scope="module")
def run(inputs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run; do not write into it."""
    folder = tmp_path_factory.mktemp("run") / "run"
    assert goldilocks("run", inputs / "recipe.toml", "--out", folder).status == 0
    return folder


@pytest.fixture(scope="module")
def refreshed(inputs: Path, run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = shutil.copytree(run, tmp_path_factory.mktemp("refreshed") / "run")
    result = refresh_run(folder, inputs / "newer.toml")
    assert result.is_new
    assert result.chosen["drawn"] == ROWS
    return folder


def levels_of(rows: pl.DataFrame) -> pl.Series:
    return rows["meta"].str.json_path_match("$.level").cast(pl.Int64)


def test_rows_in_reserve_are_not_measured_and_are_accounted_for(run: Path) -> None:
    dropped = published(run, "dropped")
    reserved = dropped.filter(pl.col("reason") == "reserved")
    assert reserved.height == 4 * 2 * ROWS
    assert all(json.loads(meta)["seed"] >= ROWS for meta in reserved["meta"])
    assert dropped.height + published(run, "data").height == 4 * 3 * ROWS
    decisions = scan_decisions(run, 1).collect()
    assert decisions.filter(pl.col("reason") == "reserved")["attempts"].to_list() == [0] * (4 * 2 * ROWS)


def test_new_rows_come_from_the_levels_in_the_band(refreshed: Path) -> None:
    choices = (read_json(refreshed / "versions" / "0002" / LEVELS) or {})["levels"]
    assert [one["status"] for one in choices] == [RETIRED, RETIRED, DRAWN, WAITS]
    assert [one["drawn"] for one in choices] == [0, 0, ROWS, 0]
    rows = published(refreshed, "data")
    new = rows.filter(pl.col("meta").str.json_path_match("$.seed").cast(pl.Int64) >= ROWS)
    assert new.height > ROWS / 2
    assert set(levels_of(new)) == {3}
    assert set(new["policy"]) == {"newer@1"}
    assert max(json.loads(meta)["seed"] for meta in new["meta"]) < 2 * ROWS


def test_rows_of_a_retired_level_leave(run: Path, refreshed: Path) -> None:
    before, after = levels_of(published(run, "data")), levels_of(published(refreshed, "data"))
    assert (after == 2).sum() < (before == 2).sum()
