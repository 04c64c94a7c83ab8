"""Claim a training run's folder for one recipe, for any engine."""

from __future__ import annotations

import json
from pathlib import Path

from curation.records import StoreError
from training.optimisation.checkpoint import write_run_file
from training.recipe import TrainRecipe
from training.rollouts.stall_monitor import STALLED


def claim_folder(recipe: TrainRecipe, recipe_folder: Path, out: Path, *, resume: bool) -> None:
    """Claim the folder by writing ``run.json``.

    Raises:
        StoreError: its content does not fit the recipe and ``resume``.
    """
    run_file = out / "run.json"
    if run_file.exists():
        name = json.loads(run_file.read_text(encoding="utf-8"))["recipe"]["name"]
        if name != recipe.name:
            raise StoreError(f"{out} holds a run of recipe `{name}`, not `{recipe.name}`; give another folder")
        if not resume:
            raise StoreError(f"{out} holds a run already; resume it, or give another folder")
    elif resume:
        raise StoreError(f"{out} holds no run to resume (no run.json); start one with its recipe")
    (out / STALLED).unlink(missing_ok=True)
    table = {"recipe_folder": str(recipe_folder.absolute()), "recipe": recipe.model_dump(mode="json")}
    write_run_file(out, {"kind": "training", **table})
