"""Plans of a recipe: in the run's own folder, and what they say beside what the run took."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from curation.records import ConfigError
from curation.storage.stages import read_manifest
from flows.cli.commands import run_recipe
from flows.cli.plan import plan_recipe, show_plan
from flows.pipelines.planned_costs import compare_with_plan, stored_plan
from flows.run.run_folder import open_run
from flows.stages.attempts import attempts_of
from flows.stages.judging import verifier_version
from tests.flows.conftest import DEMO


def test_a_plan_in_the_runs_folder_and_what_the_run_took(tiny_recipe: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    plans = plan_recipe(tiny_recipe, folder, pilot=64)
    assert [plan.stage for plan in plans] == ["stage1", "stage2"]
    run = open_run(folder)
    assert list(stored_plan(run).values()) == plans
    assert compare_with_plan(run, verifier_version(run)) == []
    run_recipe(tiny_recipe, [], folder)
    assert list(stored_plan(run).values()) == plans
    lines = compare_with_plan(run, verifier_version(run))
    for plan, line in zip(plans, lines, strict=True):
        manifest = read_manifest(attempts_of(plan.stage).folder_in(run, verifier_version(run)))
        assert manifest is not None
        assert plan.attempts.mean == pytest.approx(manifest.notes["counted"], rel=0.15)
        assert f"{plan.stage}: planned {plan.attempts} attempts" in line


def test_a_plan_by_a_live_pilot(tmp_path: Path) -> None:
    plan, grader = plan_recipe(DEMO.with_name("demo_loop.toml"), tmp_path / "run", pilot=24)
    assert (plan.stage, plan.problems, plan.pilot) == ("stage1", 320, 24)
    assert plan.attempts.high < 320 * 16
    assert plan.tokens.low > 0
    assert plan.hours is not None
    assert (grader.stage, grader.policy) == ("stage2", "grader, by the pilot of stage1")
    assert grader.attempts == plan.attempts  # both stages take 16 attempts


def test_a_pilot_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="at least 1"):
        plan_recipe(DEMO, tmp_path / "run", pilot=0)


def test_a_plan_tells_of_training_recipes_that_starve_their_generators(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = DEMO.read_text(encoding="utf-8")
    table = re.sub(r"^\[(grader|schedule)\]\n(?:(?!\[).*\n)*", "", table, flags=re.MULTILINE)
    costs = "[costs]\nproblems = 1\ntokens_per_s = [1.0]\ntokens_per_attempt = [1.0]\n"
    (tmp_path / "recipe.toml").write_text(f'{table}\n{costs}[schedule]\ntrain = "train.toml"\n', encoding="utf-8")
    model = 'model = "student"\n[models.student]\nkind = "torch"\nmodel = "embedded"\n'
    trainer = f'name = "t"\nsteps = 1\n{model}[data]\nkind = "embedded"\n[collector]\nmax_staleness = '
    (tmp_path / "train.toml").write_text(f"{trainer}1\n", encoding="utf-8")
    show_plan(tmp_path / "recipe.toml", [], None, 1, stated=True, as_json=False)
    shown = capsys.readouterr().out
    assert "train.toml: warning: max_staleness = 1: generators will wait for long responses" in shown
    (tmp_path / "train.toml").write_text(f"{trainer}16\n", encoding="utf-8")
    show_plan(tmp_path / "recipe.toml", [], None, 1, stated=True, as_json=False)
    assert "train.toml" not in capsys.readouterr().out
