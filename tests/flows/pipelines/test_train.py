"""Training by recipe: what is read, changed and refused, its status; ablations and analyses on the embedded model."""

from __future__ import annotations

import json
import tomllib
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import tomli_w
import torch
from safetensors.torch import load_file

import flows
from curation.config.loading import load_settings, set_value
from curation.records import ConfigError, StoreError
from flows.pipelines.ablate import ablate, analyse
from flows.run.benches import FOLDERS, load_bench
from flows.run.run_folder import new_run
from flows.run.training import from_attempts, load_train_recipe, main, read_run, train
from flows.stages.grader import check_grader
from tests.flows.conftest import goldilocks, write_jsonl
from tests.flows.run.folders import contents, times
from tests.places import ROOT
from training.embedded_model.problems import Split, generate_exercises
from training.engines.verl.environment import VARIABLE
from training.evaluation.ablations import Ablation
from training.recipe import EmbeddedData

RECIPES = ROOT / "flows" / "recipes"
RECIPE = RECIPES / "train_embedded.toml"
FEW = (  # changes that make a step small
    *("collector.n_batch=16", "collector.n_async=16", "collector.max_staleness=0", "data.problems=40"),
    *("evaluation={}", "checks=false", "attempt_store='none'"),
)


def begun(folder: Path, *changes: str, **settings: Any) -> Path:
    """A folder in which a training run began; returns it."""
    recipe = {**load_train_recipe(RECIPE, changes).model_dump(mode="json"), **settings}
    run = {"kind": "training", "recipe": recipe, "recipe_folder": str(folder)}
    (folder / "run.json").write_text(json.dumps(run), encoding="utf-8")
    return folder


def test_the_shipped_recipe_is_one_and_can_be_changed() -> None:
    recipe = load_train_recipe(RECIPE)
    assert recipe.name == "train-embedded"
    assert recipe.warnings() == ()
    assert isinstance(recipe.evaluation.data, EmbeddedData)
    changed = load_train_recipe(RECIPE, ["optim.learning_rate=1e-6", "curriculum.stages=[{steps=3},{}]"])
    assert changed.optim.learning_rate == 1e-6
    assert changed.curriculum is not None
    assert changed.curriculum.stages[0].steps == 3


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("data.problemz=4", "unknown key `data.problemz`; did you mean `problems`? Allowed here: kind, "),
        ("models.student.decoding.max_tokens=1", "models.student.decoding.max_tokens is not read in training: "),
        ("collector.group_size=7", "collector: n_batch = 128 is no multiple of group_size = 7; "),
    ],
)
def test_what_cannot_be_meant_is_one_sentence(override: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as of_file:
        load_train_recipe(RECIPE, [override])
    with pytest.raises(ConfigError) as of_run:
        read_run(begun(tmp_path), [override])
    for caught, place in ((of_file, RECIPE), (of_run, tmp_path / "run.json")):
        assert str(caught.value).startswith(f"recipe {place}: {message}")
        assert "\n" not in str(caught.value)


def test_damaged_and_missing_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.toml").write_text("name = ")
    with pytest.raises(ConfigError, match="not TOML"):
        load_train_recipe(tmp_path / "bad.toml")
    (tmp_path / "run.json").write_text(json.dumps({"recipe": {}, "recipe_folder": "."}))
    with pytest.raises(StoreError, match="no training run"):
        read_run(tmp_path)
    with pytest.raises(ConfigError, match="give its folder"):
        train(None, None, resume=True)
    with pytest.raises(ConfigError, match="give a recipe"):
        train(None)
    assert main([str(RECIPE), "--set", "models.student.model=nowhere", "--out", str(tmp_path / "run")]) == 1
    assert "no model here" in capsys.readouterr().err  # the command of torchrun


def test_a_recipe_starts_from_attempts_by_an_objective_that_can_and_keeps_what_it_sets(tmp_path: Path) -> None:
    made = load_train_recipe(RECIPE, from_attempts(RECIPE, ["steps=7"]))
    assert (made.steps, made.objective.kind) == (7, "soft")
    assert made.stored is not None
    assert made.stored.epochs == 1.0
    assert from_attempts(RECIPES / "train_cold_start.toml") == []
    for name in ("train_cold_start", "train_after_cold_start", "train_from_attempts", "train_latent"):
        load_train_recipe(RECIPES / f"{name}.toml")
    for recipe, data, message in ((None, "attempts", "needs a recipe"), (RECIPE, "everything", "--data everything")):
        with pytest.raises(ConfigError, match=message):
            from_attempts(recipe, [], data)


def test_status_of_a_training_run(tmp_path: Path) -> None:
    def status() -> list[str]:
        shown = goldilocks("status", tmp_path)
        assert shown.status == 0
        return shown.out.splitlines()[1:]

    begun(tmp_path, steps=4)
    assert status()[0] == "  step 0 of 4"
    row = {"step": 3, "batch/pass_rate": 0.25, "policy/entropy": 0.5}
    (tmp_path / "metrics.jsonl").write_text(json.dumps(row) + '\n{"step": 4, "bat')  # the last line is being written
    assert status() == [
        "  step 3 of 4",
        "  pass rate 0.250, entropy 0.500",
        f"  not finished; `goldilocks train --resume {tmp_path}` goes on",
    ]
    (tmp_path / "stalled.json").write_text(json.dumps({"step": 3, "message": "step 4 found nothing"}))
    assert "  ended: step 4 found nothing" in status()
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "DONE.json").write_text("{}")
    assert status()[-1] == f"  the trained model: {tmp_path / 'model'}"


def test_a_training_run_keeps_the_text_of_its_prompt(tmp_path: Path) -> None:
    """A run that is resumed is asked as it was begun, whatever the file holds by then."""
    change = "models.student.prompt={ file = '../ablations/terse_prompt.txt' }"
    prompt = load_train_recipe(RECIPE, [change]).trained.prompt
    assert "without digressions" in prompt.text  # type: ignore[union-attr]
    assert read_run(begun(tmp_path, change))[0].trained.prompt == prompt


BENCH = Path(__file__).with_name("few.toml").read_text(encoding="utf-8")
ABLATION = f"""
name = "clip"
recipe = {json.dumps(str(RECIPE))}
set = {json.dumps(["steps=1", *FEW])}
seeds = [1]
benches = ["bench.toml"]
[[axes]]
name = "clip"
values = [{{ name = "high" }}, {{ name = "low", set = ["objective.eps_high=0.2"] }}]
"""


@pytest.fixture
def ablation(tmp_path: Path) -> Path:
    exercises = islice(generate_exercises(31, Split.HELD_OUT, kinds=("larger",)), 4)
    write_jsonl(tmp_path / "sums.jsonl", [{"problem": one.statement, "answer": str(one.answer)} for one in exercises])
    (tmp_path / "bench.toml").write_text(BENCH, encoding="utf-8")
    (tmp_path / "ablation.toml").write_text(ABLATION, encoding="utf-8")
    return tmp_path / "ablation.toml"


@pytest.mark.slow
def test_an_ablation_trains_evaluates_and_goes_on(ablation: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert ablate(ablation, out) == out
    results = json.loads((out / "ablation.json").read_text())["results"]
    assert [(result["arm"], result["seeds"]) for result in results] == [("high", 1), ("low", 1)]
    assert results[0]["sampled_tokens"] > 0
    assert read_run(out / "runs" / "low-seed-1")[0].objective.model_dump()["eps_high"] == 0.2
    files = contents(out, "ablation.json"), contents(out, "report.md")
    models = times(out / "runs", "*.safetensors")
    ablate(ablation, out)
    assert (contents(out, "ablation.json"), contents(out, "report.md")) == files
    assert times(out / "runs", "*.safetensors") == models
    with pytest.raises(StoreError, match="holds another ablation"):
        ablate(ablation, out, ["benches=['demo']"])


def test_an_arm_that_cannot_be_meant_is_refused_before_training(ablation: Path, tmp_path: Path) -> None:
    ablation.write_text(ABLATION.replace("objective.eps_high=0.2", "objective.eps_hihg=0.2"), encoding="utf-8")
    with pytest.raises(ConfigError, match="eps_high"):
        ablate(ablation, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_ready_ablations_can_be_meant() -> None:
    for path in FOLDERS["ablation"].glob("*.toml"):
        ablation = load_settings(Ablation, path)
        assert ablation.name == path.stem.replace("_", "-")
        for arm in ablation.arms():
            load_train_recipe(path.parent / arm.recipe(ablation.recipe), arm.changes(ablation.set, 1))
        assert all(load_bench(name, folder=path.parent) for name in ablation.benches)


@pytest.mark.slow
def test_a_run_is_analysed_and_what_is_measured_is_not_asked_again(tmp_path: Path) -> None:
    run, length = tmp_path / "run", ("rewards.max_length=48", "optim.warmup_steps=0", "checkpoints.trajectory=1")
    train(RECIPE, run, ["steps=3", *FEW, *length])
    assert sorted(path.name for path in (run / "trajectory").iterdir()) == ["v00000001", "v00000002", "v00000003"]
    last, trained = (load_file(run / path / "model.safetensors") for path in ("trajectory/v00000003", "model"))
    assert {name: value.dtype for name, value in last.items()} == {name: value.dtype for name, value in trained.items()}
    assert all(torch.equal(value, trained[name]) for name, value in last.items())  # no step is lost to rounding
    analysis = analyse(run, size=2, problems=3, attempts=1)
    assert len(analysis.points) == 4
    assert len(analysis.directions.states) == 5
    assert all(0 <= point.reward <= 1 and point.tokens > 0 for point in analysis.points)
    assert analysis.plots.exists()
    log = run / "analysis" / "points.jsonl"
    points = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    write_jsonl(log, [{**point, "reward": 0.25} for point in points[:-1]])  # a kill before the last point
    again = analyse(run, size=2, problems=3, attempts=1)
    assert [point.reward for point in again.points[:-1]] == [0.25] * 3  # kept, not asked again
    assert again.points[-1] == analysis.points[-1]
    with pytest.raises(StoreError, match="begun with other sizes"):
        analyse(run, size=5, problems=3, attempts=1)


def test_a_run_without_its_trajectory_is_not_analysed(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"checkpoints\.trajectory = 10"):
        analyse(begun(tmp_path))


# --- a grader's recipe, read before a run begins ---------------------------------------------------------------------

LOOP = Path(flows.__file__).parent / "recipes" / "demo_loop.toml"


@pytest.mark.slow
def test_the_shipped_recipe_of_a_grader_is_one(tmp_path: Path) -> None:
    for name, has_grader in (("demo_loop", True), ("demo_math", False)):
        run = new_run(LOOP.with_name(f"{name}.toml"), [], tmp_path)
        assert (run.recipe.grader is not None) == has_grader
        check_grader(run)


VERL = ("engine=verl", "models.student.kind='vllm'")


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        ("none.toml", r"there is no file .*none\.toml; name a training recipe"),
        ("demo_math.toml", r"demo_math\.toml: .*`steps` is missing"),
        (("optim.rate=1",), r"grader\.toml: unknown key `optim\.rate`; allowed here: learning_rate"),
        (VERL, "/none: there is no environment of verl; make it with"),
        ((*VERL, "objective={ kind = 'soft' }"), "objective.kind = 'soft' needs a second pass or has no groups"),
    ],
)
def test_a_recipe_that_cannot_be_meant_is_refused_before_the_run(
    recipe: str | tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "/none")
    if not isinstance(recipe, str):
        table = tomllib.loads(LOOP.with_name("train_demo_grader.toml").read_text())
        for change in recipe:
            set_value(table, change)
        recipe = str(tmp_path / "grader.toml")
        Path(recipe).write_text(tomli_w.dumps(table))
    with pytest.raises(ConfigError, match=f"(?s){message}"):
        check_grader(new_run(LOOP, [f"grader.recipe={recipe}"], tmp_path))
