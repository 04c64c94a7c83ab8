"""Stages of a run by verl, one process after another, over a double of verl's trainer: sizes, pools, kills, resumes."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.training.engines.test_mirroring import marked, own
from tests.training.students import student
from training.engines.processes import EngineError
from training.engines.verl.environment import VARIABLE
from training.engines.verl.run import train
from training.engines.verl.stages import LATEST, STATE, last_step, present_stage, remove_old
from training.recipe import TrainRecipe
from training.rollouts import curriculum as rules
from training.rollouts.curriculum import CurriculumController, StepMeans

STAGES = (
    {"until": "reward", "steps": 50, "lengths": 80, "n_batch": 16, "n_async": 16},
    {"lengths": 120, "n_batch": 8, "hard": True},
)


def recipe(folder: Path, **changes: Any) -> TrainRecipe:
    python = folder / "bin" / "python"
    python.parent.mkdir(exist_ok=True)
    os.environ[VARIABLE] = str(folder)
    double = f'exec "{sys.executable}" -m tests.training.engines.verl.double "$@"'
    python.write_text(f'#!/bin/sh\ncase "$*" in *--check) exit 0;; esac\n{double}\n')
    python.chmod(0o755)
    table = {
        "name": "stages",
        "steps": 8,
        **student(kind="vllm"),
        "engine": "verl",
        "data": {"kind": "embedded", "problems": 9},
        "verl": {"gpus_per_node": 8},
        "collector": {"group_size": 4, "n_async": 16, "n_batch": 16},
        "rewards": {"max_length": 100, "length_cache": 20, "language": 0.0},
        "curriculum": {"stages": STAGES},
        "checkpoints": {"every": 2},
        **changes,
    }
    return TrainRecipe.model_validate(table)


def seen(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "verl" / "seen.jsonl").read_text().splitlines()]


def stage_changes(out: Path) -> list[tuple[int, float, str]]:
    rows = [json.loads(line) for line in (out / "changes.jsonl").read_text().splitlines()]
    return [(row["step"], row["new"], row["reason"]) for row in rows if row.get("subject") == "stage"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nothing disturbed."""
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, "")  # `recipe` sets it, and no later test may see it
        model = train(recipe(folder), folder, folder / "run")
    assert (model / "DONE.json").is_file()
    return folder / "run"


@pytest.mark.slow
def test_each_stage_is_a_process_with_its_own_sizes_over_one_folder(whole: Path) -> None:
    told = seen(whole)
    assert [(one["begun"], one["response_length"], one["groups"]) for one in told] == [
        (0, 100, 4),
        (4, 140, 2),  # flat over four steps, seen at the checkpoint of step 4
    ]
    assert not any(one["queue"] for one in told)
    assert [row[:2] for row in stage_changes(whole)] == [(4, 2)]
    rows = [json.loads(line) for line in (whole / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == list(range(1, 9))
    assert all("sampled/reward" in row for row in rows[1:])  # also of the steps that a stage ended with
    rows = [json.loads(line) for line in (whole / "attempts.jsonl").read_text().splitlines()]
    assert len(rows) == 4 * (4 * 4 + 4 * 2)  # four rollouts a group; four steps of four groups, four of two
    assert [row["group"] for row in rows[::4]] == list(range(24))


@pytest.mark.slow
def test_a_run_that_is_killed_within_and_between_stages_is_the_undisturbed_one(whole: Path, tmp_path: Path) -> None:
    """Its mirror is completed too."""
    there, out = tmp_path / "there", tmp_path / "run"
    made = recipe(tmp_path, storage={"mirror": str(there)})
    (out / "verl").mkdir(parents=True)
    for number, kill in enumerate(("4 marked", "7 before")):
        (out / "verl" / "kill").write_text(kill)
        with pytest.raises(EngineError):
            train(made, tmp_path, out, resume=number > 0)
    train(made, tmp_path, out, resume=True)
    for name in ("attempts.jsonl", "changes.jsonl"):
        assert (out / name).read_bytes() == (whole / name).read_bytes()
    assert [(one["begun"], one["queue"]) for one in seen(out)] == [
        (0, False),
        (2, True),  # within a stage what is in flight goes on
        (4, False),
        (6, True),
    ]
    assert (last_step(out), seen(out)[-1]["response_length"]) == (8, 140)
    assert marked(there, "model") == {"last": own(out / "model")}
    for name in ("run.json", "metrics.jsonl", "changes.jsonl", "summary.json"):
        assert (there / name).read_bytes() == (out / name).read_bytes()


def checkpoint(out: Path, step: int, curriculum: CurriculumController | None) -> Path:
    """A checkpoint as verl leaves it, with our state where there is one."""
    folder = out / "verl" / "checkpoints" / f"global_step_{step}"
    for part in ("actor", "transfer_queue"):
        (folder / part).mkdir(parents=True)
    if curriculum is not None:
        (folder / STATE).write_text(json.dumps({"curriculum": curriculum.state()}))
    (folder.parent / LATEST).write_text(str(step))
    return folder


def test_a_folder_tells_its_stage_and_an_unfinished_checkpoint_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "PLATEAU_WINDOW", 4)
    made, out = recipe(tmp_path, checkpoints={"every": 2, "keep": 3}), tmp_path / "run"
    curriculum = CurriculumController(made, {})
    first = checkpoint(out, 2, curriculum)
    for step in range(1, 5):
        curriculum.after_step(step, StepMeans(0.5, 25.0))
    second, third = checkpoint(out, 4, curriculum), checkpoint(out, 6, None)
    stage = present_stage(made, out)
    assert (stage.number, stage.begun_at, stage.ends_at) == (1, 4, 8)
    assert (stage.recipe.rewards.max_length, stage.recipe.collector.n_batch) == (140, 8)
    assert not third.exists()
    assert not (second / "transfer_queue").exists()  # of the stage before: other lengths
    assert last_step(out) == 4
    (second / STATE).unlink()
    stage = present_stage(made, out)
    assert (stage.number, stage.begun_at, stage.ends_at) == (0, 2, 8)
    assert (first / "transfer_queue").exists()
    (first / STATE).unlink()
    assert present_stage(made, out).begun_at == 0
    assert last_step(out) == 0


def test_as_many_checkpoints_stay_as_the_recipe_keeps_and_none_that_a_resume_may_need(tmp_path: Path) -> None:
    out = tmp_path / "run"
    curriculum = CurriculumController(recipe(tmp_path, curriculum=None), {})
    folders = {step: checkpoint(out, step, curriculum) for step in (2, 4, 6, 8, 10)}
    shutil.rmtree(folders[2] / "actor")  # what verl removes of an old one
    (folders[10] / STATE).unlink()  # killed before our state was written
    checkpoints = out / "verl" / "checkpoints"
    remove_old(checkpoints, 2)
    assert sorted(folder.name for folder in checkpoints.glob("*step_*")) == [f"global_step_{n}" for n in (10, 6, 8)]
    made = recipe(tmp_path, curriculum=None, checkpoints={"every": 2, "keep": 1})
    assert present_stage(made, out).begun_at == 8
    assert [folder.name for folder in checkpoints.glob("*step_*")] == ["global_step_8"]
    shutil.rmtree(folders[8] / "actor")  # weights are gone: it is none
    assert present_stage(made, out).begun_at == 0
