"""Run a curriculum's stages as successive verl processes over one run folder.

A stage begins at a checkpoint with our state, without the previous queue.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from curation.storage.stages import atomic_write
from training.recipe import TrainRecipe
from training.rollouts.curriculum import CurriculumController

STATE = "goldilocks.json"
"""Our state in a checkpoint of verl."""

LATEST = "latest_checkpointed_iteration.txt"
"""verl's newest step."""

_WEIGHTS = "actor"
"""Weights and optimiser, which verl removes from old checkpoints."""

_STAGE_STATE = ("transfer_queue", "data.pt")
"""Rollouts in flight, and the position in the data."""


@dataclass(frozen=True, slots=True)
class VerlStage:
    """A stage in verl, which ends by step ``ends_at``."""

    recipe: TrainRecipe
    number: int
    begun_at: int
    ends_at: int


def present_stage(recipe: TrainRecipe, out: Path) -> VerlStage:
    """Remove half-written checkpoints and old queues; return the stage."""
    checkpoints = out / "verl" / "checkpoints"
    step = max(_whole_steps(checkpoints), default=0)
    if step:
        atomic_write(checkpoints / LATEST, str(step))
    else:
        (checkpoints / LATEST).unlink(missing_ok=True)
    for number, folder in _folders(checkpoints).items():
        if number > step:
            _remove(folder)
    remove_old(checkpoints, max(recipe.checkpoints.keep - 1, 1))
    state, curriculum = saved_state(checkpoints), CurriculumController(recipe, {})
    if state is not None:
        curriculum.restore(state["curriculum"])
    stage = _stage_of(recipe, curriculum, step)
    if state is not None and stage.number and state["curriculum"]["stage"][1] == step:
        for name in _STAGE_STATE:
            _remove(checkpoints / f"global_step_{step}" / name)
    return stage


def all_stages(recipe: TrainRecipe) -> Iterator[VerlStage]:
    """Yield a recipe's stages as known before a run."""
    curriculum, began = CurriculumController(recipe, {}), 0
    for number in range(max(len(recipe.stages), 1)):
        if number:
            curriculum.begin_stage(number, began)
        stage = _stage_of(recipe, curriculum, began)
        yield stage
        began = stage.ends_at


def remove_old(checkpoints: Path, keep: int) -> None:
    """Keep the ``keep`` newest whole checkpoints."""
    newest = sorted(_whole_steps(checkpoints))[-keep:]
    for step, folder in _folders(checkpoints).items():
        if newest and step < newest[0]:
            _remove(folder)


def saved_state(checkpoints: Path) -> Mapping[str, Any] | None:
    """Return our state in verl's newest checkpoint, if any."""
    step = _marked(checkpoints)
    if not step:
        return None
    state: Mapping[str, Any] = json.loads((_folders(checkpoints)[step] / STATE).read_text(encoding="utf-8"))
    return state


def last_step(out: Path) -> int:
    """Return verl's last checkpoint's step, or 0."""
    return _marked(out / "verl" / "checkpoints")


def _stage_of(recipe: TrainRecipe, curriculum: CurriculumController, step: int) -> VerlStage:
    if not recipe.stages:
        return VerlStage(recipe, 0, step, recipe.steps)
    number, began = curriculum.stage
    steps = recipe.stages[number].steps if number + 1 < len(recipe.stages) else None
    ends_at = recipe.steps if steps is None else min(began + steps, recipe.steps)
    changes = {"rewards": curriculum.rewards, "collector": curriculum.collector}
    return VerlStage(recipe.model_copy(update=changes), number, step, ends_at)


def _marked(checkpoints: Path) -> int:
    mark = checkpoints / LATEST
    return int(mark.read_text(encoding="utf-8")) if mark.exists() else 0


def _folders(checkpoints: Path) -> dict[int, Path]:
    return {int(folder.name.rpartition("_")[2]): folder for folder in checkpoints.glob("global_step_*")}


def _whole_steps(checkpoints: Path) -> list[int]:
    """Return the steps up to verl's mark with weights and our state."""
    marked, folders = _marked(checkpoints), _folders(checkpoints)
    return [
        step
        for step, folder in folders.items()
        if step <= marked and (folder / STATE).exists() and (folder / _WEIGHTS).is_dir()
    ]


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
