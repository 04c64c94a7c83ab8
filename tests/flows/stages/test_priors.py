"""Stages that learn priors before they sample: live servers whose pass rates are known, a whole run each."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest

from curation.storage.stages import read_table
from flows.cli.commands import refresh_run
from flows.publish.versions import scan_decisions
from flows.run import sampling_session
from flows.run.progress import read_metrics
from tests.flows.conftest import published
from tests.flows.run.folders import run
from tests.flows.solver import Solver, write_recipe

pytestmark = pytest.mark.slow

PROBLEMS = 240


@pytest.fixture(autouse=True)
def _a_small_anchor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling_session, "ANCHOR_LEAST", 60)


def recipe_of(home: Path, models: Sequence[str], error_rate: float) -> Path:
    parts = ("stage1", "stage2")[: len(models)]
    changes = [f"{part}.{one}" for part in parts for one in ("band.attempts=16", f"sampling.error_rate={error_rate}")]
    return write_recipe(home, PROBLEMS, models, "shard_rows=100", *changes)


def verdicts_folder(folder: Path, part: str) -> Path:
    (verifier,) = (folder / "verdicts" / part).iterdir()
    return verifier


def check_every_figure(folder: Path) -> None:
    """Each published row has the figures of the verdicts on its attempts."""
    verdicts = read_table(verdicts_folder(folder, "stage2"), "verdicts")
    earlier = read_table(next((folder / "decisions" / "stage1").iterdir()), "decisions")
    first = dict(earlier.select("problem", "pass_rate").iter_rows())
    rows = published(folder, "data")
    assert rows.height > 20
    assert (rows["attempts"] < 16).any()
    for row in rows.iter_rows(named=True):
        own = verdicts.filter(pl.col("problem") == row["id"]).sort("index")
        assert row["policy"] == own["policy"][0] == "strong@1"
        assert own["index"].to_list() == list(range(row["attempts"]))
        assert row["correct"] == own["outcome"].to_list().count("correct")
        assert row["judged"] == row["attempts"] == own.height
        assert row["pass_rate"] == pytest.approx(row["correct"] / row["judged"])
        assert row["pass_rate_low"] <= row["pass_rate"] <= row["pass_rate_high"]
        is_whole = row["decided_by"] == "all attempts"
        assert is_whole if row["attempts"] == 16 else row["decided_by"].endswith(f" after {row['attempts']} of 16")
        assert row["first_pass_rate"] == first[row["id"]]
        assert row["informed_by"].startswith(f"strong@1 {row['judged']}")
    assert rows["informed_by"].str.contains(", weak@1 ").any()


def test_stage_1s_attempts_spare_stage_2_attempts(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with Solver(-1.0) as weak, Solver(1.0) as strong:
        recipe = recipe_of(tmp_path, [weak.table("weak"), strong.table("strong")], 0.1)
        run(recipe, folder)
        marks = [json.loads(path.read_text()) for path in (folder / "verdicts").glob("*/*/DONE.json")]
        made = sum(mark["notes"]["made"] for mark in marks)  # the anchor's are among them
        reports = [row for row in read_metrics(folder) if "attempts" in row]
        assert sum(last["attempts"] for last in {row["stage"]: row for row in reports}.values()) == made
        assert made == weak.requests + strong.requests
    priors = read_table(verdicts_folder(folder, "stage2"), "priors")
    assert priors.filter(pl.col("error_rate") == 0).height == 60
    assert priors.height == PROBLEMS
    check_every_figure(folder)


def test_a_refresh_starts_its_policy_once_and_spends_less_than_a_full_judgement(tmp_path: Path) -> None:
    with Solver(-1.0) as weak, Solver(0.5) as strong:
        recipe = recipe_of(tmp_path, [weak.table("weak")], 0.0)
        run(recipe, tmp_path / "run")
        (tmp_path / "strong.toml").write_text(f"[models.newer]\n{strong.table('strong')}")
        result = refresh_run(tmp_path / "run", tmp_path / "strong.toml", None)
        assert strong.starts == 1
        assert result.forecast is not None
        assert result.forecast.replay.holds
        assert strong.requests == result.cost["attempts"]
        assert strong.requests < 0.75 * weak.requests
    foreseen = scan_decisions(tmp_path / "run", 2).collect().filter(pl.col("evidence").str.contains("foreseen at"))
    assert foreseen.height > 20
    assert set(foreseen["policy"]) == {"strong@1"}
