"""`goldilocks plan`: by a pilot in the run's own folder, by stated figures, and of training."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from curation.records import ConfigError
from curation.storage.stages import read_manifest
from flows.cli.gpus import is_training_recipe
from flows.cli.plan import plan_recipe, show_plan, show_training_plan, stated_plan
from flows.pipelines.run_tables import compare_with_plan, stored_plan
from flows.run.recipe import load_recipe, recipe_warnings
from flows.run.run_folder import open_run
from flows.run.training import load_train_recipe
from flows.stages.attempts import attempts_of
from flows.stages.judging import verifier_version
from tests.flows.conftest import DEMO, Tiny, goldilocks, refusal
from training.engines.placement import model_shape, stated_gpus, trainer_memory

RECIPES = DEMO.parent
MAGISTRAL, CODE = RECIPES / "magistral_math.toml", RECIPES / "magistral_code.toml"


def stated(path: Path, capsys: pytest.CaptureFixture[str], *overrides: str) -> str:
    show_plan(path, overrides, None, 1, stated=True, as_json=False)
    return capsys.readouterr().out


def without(recipe: Path, tables: str) -> str:
    """A recipe's text without some of its tables."""
    return re.sub(rf"^\[({tables})\].*\n(?:(?!\[).*\n)*", "", recipe.read_text(), flags=re.MULTILINE)


def test_a_plan_by_a_finished_runs_attempts_and_what_the_run_took(tiny_copy: Tiny) -> None:
    run = open_run(tiny_copy.folder)
    assert compare_with_plan(run, verifier_version(run)) == []
    plans = plan_recipe(tiny_copy.recipe, tiny_copy.folder, pilot=64)
    assert [plan.stage for plan in plans] == ["stage1", "stage2"]
    assert list(stored_plan(run).values()) == plans
    lines = compare_with_plan(run, verifier_version(run))
    for plan, line in zip(plans, lines, strict=True):
        manifest = read_manifest(attempts_of(plan.stage).folder_in(run, verifier_version(run)))
        assert manifest is not None
        assert plan.attempts.mean == pytest.approx(manifest.notes["counted"], rel=0.15)
        assert f"{plan.stage}: planned {plan.attempts} attempts" in line


@pytest.mark.slow
def test_a_plan_by_a_live_pilot(tmp_path: Path) -> None:
    plan, grader = plan_recipe(RECIPES / "demo_loop.toml", tmp_path / "run", pilot=24)
    assert (plan.stage, plan.problems, plan.pilot) == ("stage1", 160, 24)
    assert plan.attempts.high < 160 * 16
    assert plan.tokens.low > 0
    assert plan.hours is not None
    assert (grader.stage, grader.policy) == ("stage2", "grader, by the pilot of stage1")
    assert grader.attempts == plan.attempts  # both stages take 16 attempts


def test_the_plan_of_the_large_recipe_by_its_stated_figures(capsys: pytest.CaptureFixture[str]) -> None:
    first, second = stated_plan(MAGISTRAL)
    assert (first.stage, second.stage, first.pilot) == ("stage1", "stage2", 0)
    assert (first.attempts.mean, second.tokens.mean) == (545_000 * 16 * 0.75, second.attempts.mean * 4000)
    assert second.hours is not None
    assert second.hours.mean == pytest.approx(second.tokens.mean / 5000 / 3600)
    assert "1,708 GPU hours: 213 hours on 8 GPUs" in stated(MAGISTRAL, capsys)
    asked = ["costs.tokens_per_s=[100]", "stage1.sampling.early_stopping=false"]  # of the grader's stage 2 too
    first, second = stated_plan(MAGISTRAL, asked)
    assert (first.tokens_per_s, second.tokens_per_s) == (800, 800)
    assert second.attempts.mean == 545_000 * 16
    printed = stated(MAGISTRAL, capsys, "questions.variants={ model = 'student' }")
    assert "not counted: variants: 16 attempts of " in printed.replace("\n", " ")
    assert "not counted: translation: 0.1 of the kept problems" in printed


def test_a_hub_set_that_is_not_pinned_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = stated(CODE, capsys)
    assert said.count("is not pinned") == 1
    assert "source codeforces, joined table: open-r1/codeforces-submissions is not pinned: no revision is named" in said
    said = stated(MAGISTRAL, capsys, "sources.0.revision=main")
    assert "AI-MO/NuminaMath-1.5 is not pinned: `main` is no commit" in said
    recipe = load_recipe(MAGISTRAL, ["sources.0.path=runs/mine", "sources.0.revision=main"])
    assert len(recipe_warnings(recipe, tmp_path)) == 1
    (tmp_path / "runs" / "mine").mkdir(parents=True)  # a data set in a folder of this machine
    assert not recipe_warnings(recipe, tmp_path)


def test_recipes_without_the_figures_are_refused(tmp_path: Path) -> None:
    assert stated_plan(DEMO) == []  # recorded attempts cost nothing
    recipe = tmp_path / "silent.toml"
    recipe.write_text(without(MAGISTRAL, "costs"))
    with pytest.raises(ConfigError, match="states no costs"):
        stated_plan(recipe)
    with pytest.raises(ConfigError, match="attempts_share"):
        stated_plan(MAGISTRAL, ["costs.attempts_share=[]"])


def test_training_recipes_that_starve_their_generators_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    costs = "[costs]\nproblems = 1\ntokens_per_s = [1.0]\ntokens_per_attempt = [1.0]\n"
    recipe = without(DEMO, "grader|schedule")
    (tmp_path / "recipe.toml").write_text(f'{recipe}\n{costs}[schedule]\ntrain = "train.toml"\n')
    model = 'model = "student"\n[models.student]\nkind = "torch"\nmodel = "embedded"\n'
    trainer = f'name = "t"\nsteps = 1\n{model}[data]\nkind = "embedded"\n[collector]\nmax_staleness = '
    (tmp_path / "train.toml").write_text(f"{trainer}1\n")
    shown = stated(tmp_path / "recipe.toml", capsys)
    assert "train.toml: warning: max_staleness = 1: generators will wait for long responses" in shown
    (tmp_path / "train.toml").write_text(f"{trainer}16\n")
    assert "train.toml" not in stated(tmp_path / "recipe.toml", capsys)


TRAINING = sorted(path.stem for path in RECIPES.glob("*.toml") if is_training_recipe(path))
LARGE = ("grader_7b", "rl_24b", "rl_7b")


@pytest.mark.parametrize("name", TRAINING)
def test_a_training_recipes_head_states_its_plan(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = RECIPES / f"{name}.toml"
    head = " ".join(line.strip("# ") for line in path.read_text().partition("\nname = ")[0].splitlines())
    show_training_plan(path, (), stated=True, as_json=False)
    shown = capsys.readouterr().out
    assert f"goldilocks plan flows/recipes/{name}.toml --stated" in head
    taken = r"([\d,]+ GPU hours: [\d,]+ hours on \d+ GPUs)" if name in LARGE else "no GPU: (.+) on one machine"
    for figure in (re.search(r"([\d.,]+ [kMG]) tokens", shown), re.search(taken, shown)):
        assert figure is not None
        assert figure[1] in head
    if name in LARGE:  # they fit their GPUs and starve no generator
        recipe = load_train_recipe(path)
        assert recipe.costs is not None
        shape = model_shape(recipe, recipe.costs, path.parent)
        memory = trainer_memory(recipe, shape, stated_gpus(recipe, path.parent)[0])
        assert memory < 80e9
        assert f"{memory / 2**30:,.0f} GiB" in head
        assert "warning" not in shown


def test_the_command_prints_the_stages_of_training_and_as_json_the_same() -> None:
    path = RECIPES / "rl_7b.toml"
    said = goldilocks("plan", path, "--stated")
    assert "5,006 GPU hours: 626 hours on 8 GPUs, 4 train, 4 generate" in said.out
    assert re.search(r"3 +80 +2,048 +204,800 +163,840", said.out)
    table = json.loads(goldilocks("plan", path, "--stated", "--json").out)
    assert [stage["n_batch"] for stage in table["stages"]] == [8192, 4096, 2048]
    assert round((table["trainers"] + table["generators"]) * table["hours"]) == 5006
    assert "it trains, so there is no pilot to run; plan it with --stated" in refusal("plan", path)
    endless = 'curriculum.stages=[{until="reward"},{}]'
    assert "has no fixed length" in refusal("plan", path, "--stated", "--set", endless)
