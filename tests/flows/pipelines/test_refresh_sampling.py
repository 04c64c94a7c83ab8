"""Policies of known pass rates: what a refresh judges again, new rows of the right levels, and priors of a stage."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random

import numpy as np
import polars as pl
import pytest

from curation.plugins import load_plugin
from curation.records import PolicyError
from curation.storage.stages import read_json, read_table
from flows.cli.commands import refresh_run
from flows.pipelines.refresh import DRAWN, LEVELS, RETIRED, WAITS
from flows.publish.versions import scan_decisions, stored_versions
from flows.run import sampling_session
from flows.run.progress import read_metrics
from tests.curation.difficulty.simulated import simulated_rates
from tests.flows.conftest import ROOT, Tiny, published, tries, write_jsonl
from tests.flows.run.folders import run
from tests.flows.solver import Solver, answer, statement, write_recipe

pytestmark = pytest.mark.slow

PROBLEMS, ATTEMPTS = 240, 16


def model(name: str) -> str:
    """The table of a model whose attempts are recorded in a file of its name."""
    columns = 'columns = { problem = "question", attempts = "tries", text = "text" }'
    return f'kind = "recorded"\nname = "{name}@1"\npath = "{name}.jsonl"\n{columns}\n'


def write_tier(folder: Path, name: str, finals: list[list[int]]) -> None:
    """The attempts of a policy at all sums, and its file."""
    rows = [tries(statement(at), str(answer(at)), " ".join(map(str, made))) for at, made in enumerate(finals)]
    write_jsonl(folder / f"{name}.jsonl", rows)
    (folder / f"{name}.toml").write_text(f"[models.newer]\n{model(name)}")


@pytest.fixture(scope="module")
def tiers(tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    """A run judged by one policy, with the attempts of one that is 2 logits better next to it."""
    home = tmp_path_factory.mktemp("tiers")
    rates = simulated_rates(PROBLEMS, {"weak": 0.0, "strong": 2.0}, 20.0, seed=1)
    for seed, (name, of_problems) in enumerate(rates.items(), 1):
        rng = np.random.default_rng(seed)  # a wrong answer is far from every other
        rights = [rng.random(ATTEMPTS) < rate for rate in of_problems]
        finals = [[answer(at) if ok else -1 - n for n, ok in enumerate(right)] for at, right in enumerate(rights)]
        write_tier(home, name, finals)
    recipe = write_recipe(
        home, PROBLEMS, [model("weak")], f"stage1.band={{attempts={ATTEMPTS}, wrong_label_share=1.0}}", "shard_rows=100"
    )
    run(recipe, home / "run")
    return Tiny(recipe, home / "run")


def test_a_collapsed_checkpoint_publishes_nothing_unless_it_is_accepted(tiers: Tiny, tmp_path: Path) -> None:
    """It answers one problem of a hundred, and has one slip at all others."""
    folder, before = tiers.copy(tmp_path).folder, tiers.table("data")
    finals = [[answer(at) - (at % 100 > 0)] * ATTEMPTS for at in range(PROBLEMS)]
    write_tier(tmp_path / "inputs", "collapsed", finals)
    for message in ("is far weaker than the policy before it, so no version was published", "logits against weak@1"):
        with pytest.raises(PolicyError, match=message):
            refresh_run(folder, tmp_path / "inputs" / "collapsed.toml")
    assert [version.number for version in stored_versions(folder)] == [1]
    assert published(folder, "data").equals(before)
    assert refresh_run(folder, tmp_path / "inputs" / "collapsed.toml", accept=True).is_new
    assert "suspected_wrong_label" not in scan_decisions(folder, 2).collect()["reason"].to_list()


def reasons(folder: Path, version: int) -> dict[str, str | None]:
    return dict(scan_decisions(folder, version).collect().select("problem", "reason").iter_rows())


def test_what_was_never_solved_comes_back_without_a_share_for_it(tiers: Tiny, tmp_path: Path) -> None:
    folder = tiers.copy(tmp_path).folder
    refreshed = refresh_run(folder, tiers.recipe.parent / "strong.toml", None)
    assert refreshed.forecast is not None
    assert refreshed.forecast.anchor.problems == refreshed.chosen["anchor"] == 50  # the least, above the share
    assert refreshed.forecast.anchor.shift == pytest.approx(2.0, abs=0.6)
    assert refreshed.chosen.keys() == {"anchor", "shifted"}
    assert refreshed.cost["problems"] < 0.95 * PROBLEMS
    recipe = tiers.recipe.with_name("full.toml")
    recipe.write_text(tiers.recipe.read_text().replace("weak", "strong"))
    run(recipe, tmp_path / "full", "stage1.band.max_pass_rate=0.99")  # a refresh's band
    full, before, made = reasons(tmp_path / "full", 1), reasons(folder, 1), reasons(folder, 2)
    inside = {name for name, reason in full.items() if reason is None}
    assert sum(made[name] is not None for name in inside) <= 0.03 * len(inside)
    assert sum(full[name] != reason for name, reason in made.items()) <= 0.04 * PROBLEMS
    assert sum(before[name] == "never_solved" for name in inside) > 10


# --- levels of made rows ---------------------------------------------------------------------------------------------

ROWS = 30  # per level, and twice as many in reserve
OLD = {1: 0.95, 2: 0.5, 3: 0.1, 4: 0.0}
NEW = {1: 1.0, 2: 0.95, 3: 0.5, 4: 0.0}
"""Shares of correct attempts of two policies, by level."""

RECIPE = Path(__file__).with_name("levels.toml").read_text(encoding="utf-8")


def policy(folder: Path, name: str, rates: Mapping[int, float]) -> str:
    """Write the attempts of a policy at all rows, reserve included; returns its table of a recipe."""
    make, draw, rows = load_plugin("sums.py:make", folder).value, Random(name), []
    for level, rate in rates.items():
        for seed in range(3 * ROWS):
            row = make(level=level, seed=seed)
            wrong = (str(int(row["answer"]) + draw.randrange(1, 99)) for _ in range(8))
            finals = " ".join(row["answer"] if draw.random() < rate else other for other in wrong)
            rows.append(tries(row["statement"], None, finals))
    write_jsonl(folder / f"{name}.jsonl", rows)
    return f"[models.{name}]\n{model(name)}"


@pytest.fixture(scope="module")
def levels(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A finished run of made rows, and a copy of it refreshed by a newer policy; do not write into them."""
    home = tmp_path_factory.mktemp("levels")
    code = (ROOT / "flows" / "recipes" / "procedural_sums.py").read_text()
    (home / "sums.py").write_text(code.replace("11, 90", "1001, 9000"))  # too many for copies
    (home / "recipe.toml").write_text(RECIPE + policy(home, "student", OLD))
    (home / "newer.toml").write_text(policy(home, "newer", NEW))
    run(home / "recipe.toml", home / "run")
    folder = shutil.copytree(home / "run", home / "refreshed")
    result = refresh_run(folder, home / "newer.toml")
    assert result.is_new
    assert result.chosen["drawn"] == ROWS
    return home / "run", folder


def about(rows: pl.DataFrame, name: str) -> pl.Series:
    return rows["meta"].str.json_path_match(f"$.{name}").cast(pl.Int64)


def test_rows_in_reserve_are_not_measured_and_are_accounted_for(levels: tuple[Path, Path]) -> None:
    folder, _ = levels
    dropped = published(folder, "dropped")
    reserved = dropped.filter(reason="reserved")
    assert reserved.height == 4 * 2 * ROWS
    assert about(reserved, "seed").min() == ROWS
    assert dropped.height + published(folder, "data").height == 4 * 3 * ROWS
    decisions = scan_decisions(folder, 1).filter(reason="reserved").collect()
    assert decisions["attempts"].to_list() == [0] * reserved.height


def test_new_rows_come_from_the_levels_in_the_band_and_those_of_a_retired_level_leave(
    levels: tuple[Path, Path],
) -> None:
    choices = (read_json(levels[1] / "versions" / "0002" / LEVELS) or {})["levels"]
    assert [(one["status"], one["drawn"]) for one in choices] == [(RETIRED, 0), (RETIRED, 0), (DRAWN, ROWS), (WAITS, 0)]
    before, after = (published(folder, "data") for folder in levels)
    new = after.filter(about(after, "seed") >= ROWS)
    assert new.height > ROWS / 2
    assert set(about(new, "level")) == {3}
    assert set(new["policy"]) == {"newer@1"}
    assert about(new, "seed").max() < 2 * ROWS  # type: ignore[operator]
    assert (about(after, "level") == 2).sum() < (about(before, "level") == 2).sum()


# --- priors from earlier attempts: live servers whose pass rates are known -------------------------------------------


@pytest.fixture
def small_anchor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling_session, "ANCHOR_LEAST", 60)


def recipe_of(home: Path, models: Sequence[str], error_rate: float) -> Path:
    parts = ("stage1", "stage2")[: len(models)]
    changes = [f"{part}.{one}" for part in parts for one in ("band.attempts=16", f"sampling.error_rate={error_rate}")]
    return write_recipe(home, PROBLEMS, models, "shard_rows=100", *changes)


@pytest.mark.usefixtures("small_anchor")
def test_stage_1s_attempts_spare_stage_2_attempts_and_rows_have_the_figures_of_their_verdicts(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with Solver(-1.0) as weak, Solver(1.0) as strong:
        recipe = recipe_of(tmp_path, [weak.table("weak"), strong.table("strong")], 0.1)
        run(recipe, folder)
        marks = [json.loads(path.read_text()) for path in (folder / "verdicts").glob("*/*/DONE.json")]
        made = sum(mark["notes"]["made"] for mark in marks)  # the anchor's are among them
        reports = [row for row in read_metrics(folder) if "attempts" in row]
        assert sum(last["attempts"] for last in {row["stage"]: row for row in reports}.values()) == made
        assert made == weak.requests + strong.requests
    (stage2,) = (folder / "verdicts" / "stage2").iterdir()
    priors, verdicts = read_table(stage2, "priors"), read_table(stage2, "verdicts")
    assert priors.filter(pl.col("error_rate") == 0).height == 60
    assert priors.height == PROBLEMS
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


@pytest.mark.usefixtures("small_anchor")
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
