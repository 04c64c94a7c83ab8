"""The ready recipe of made rows: measured and published, and its rows named as made."""

from __future__ import annotations

import json
import re
from pathlib import Path

import polars as pl
import pytest

from tests.flows.conftest import ROOT, goldilocks, published

pytestmark = pytest.mark.slow

RECIPE = ROOT / "flows" / "recipes" / "procedural.toml"
SMALL = ("sources.0.rows_per_level=6", "sources.0.reserve_per_level=2", "shard_rows=6", "stage1.band.attempts=8")
SET = [part for text in SMALL for part in ("--set", text)]
MADE = "`procedural_sums.py:make`, 4 levels of 6 rows and 2 in reserve"

pytest.importorskip("torch")


def test_made_rows_have_level_and_seed_and_the_card_shows_them_apart(tmp_path: Path) -> None:
    assert goldilocks("run", RECIPE, *SET, "--out", tmp_path / "run").status == 0
    rows = published(tmp_path / "run", "data")
    origin = [json.loads(meta) for meta in rows["meta"]]
    assert {"level", "seed"} <= origin[0].keys()
    lengths = {(one["level"], text.count("+")) for one, text in zip(origin, rows["statement"], strict=True)}
    assert lengths <= {(1, 1), (2, 1), (3, 2), (4, 3)}
    card = (tmp_path / "run" / "curated" / "README.md").read_text()
    assert f"**Made, not collected.** sums: {MADE}; in the set level" in card
    by_level = re.search(r"in the set (.*)\.\n", card)
    assert by_level is not None
    assert sum(int(count) for count in re.findall(r": (\d+)", by_level[1])) == rows.height


def test_rows_that_only_their_generator_can_judge_leave_at_the_reference_check(tmp_path: Path) -> None:
    code = RECIPE.with_name("procedural_sums.py").read_text()
    own = '"judged_by": "generator" if seed % 2 else "verifier", "statement"'
    (tmp_path / "procedural_sums.py").write_text(code.replace('"statement"', own))
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(RECIPE.read_text())
    assert goldilocks("run", recipe, *SET, "--set", "sources.0.levels=1", "--out", tmp_path / "run").status == 0
    dropped = published(tmp_path / "run", "dropped").filter(pl.col("stage") == "references")
    assert dropped["reason"].to_list() == ["unverifiable_answer"] * 4
    assert all("by the rules of its generator" in text for text in dropped["evidence"])
