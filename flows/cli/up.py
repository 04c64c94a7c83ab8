"""`goldilocks up`: a recipe on the GPUs of this machine, or the file with which a cluster starts it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from curation.policies.vllm.placement import VISIBLE, visible_gpus
from curation.records import ConfigError
from flows.launch.batch_files import Launch, kubernetes_manifest, slurm_script
from flows.launch.layout import copies_overrides
from flows.launch.training import is_training_recipe
from flows.run.recipe import load_recipe
from flows.run.training import default_folder, load_train_recipe, placed, train_apart


def batch_file(
    recipe: Path,
    overrides: Sequence[str],
    out: Path | None,
    gpus: int | None,
    trainer_gpus: int | None,
    kind: str,
    image: str,
    claim: str,
) -> str:
    """Return what a cluster starts the recipe with; ``kind`` is ``slurm`` or ``kubernetes``.

    Raises:
        ConfigError: the recipe cannot be meant, or not on so many GPUs.
    """
    if gpus is None or gpus < 1:
        raise ConfigError(f"--{kind}: say how many GPUs the node has, as in --gpus 8.")
    named = [str(number) for number in range(gpus)]
    if is_training_recipe(recipe):
        settings = load_train_recipe(recipe, overrides)
        placed(settings, recipe.parent.absolute(), named, trainer_gpus)
        name = settings.name
    else:
        curation = load_recipe(recipe, overrides)
        copies_overrides(curation, gpus)
        name = curation.name
    launch = Launch(name, recipe, out or Path("runs") / name, gpus, tuple(overrides), trainer_gpus)
    return slurm_script(launch) if kind == "slurm" else kubernetes_manifest(launch, image, claim)


def up(
    recipe: Path, overrides: Sequence[str], out: Path | None, gpus: int | None, trainer_gpus: int | None = None
) -> Path | None:
    """Run a recipe on so many GPUs of this machine, all if missing; return what it made."""
    names = _take_gpus(gpus)
    if is_training_recipe(recipe):
        folder = out or default_folder(recipe, overrides)
        resume = (folder / "run.json").exists()
        return train_apart(recipe, folder, overrides, resume=resume, gpus=names, trainers=trainer_gpus)
    from flows.cli.commands import run_recipe

    changes = copies_overrides(load_recipe(recipe, overrides), len(names))
    return run_recipe(recipe, [*overrides, *changes], out)


def _take_gpus(gpus: int | None) -> tuple[str, ...]:
    """Hide all GPUs of this machine but the first so many, and return their names.

    Raises:
        ConfigError: it has fewer.
    """
    there = visible_gpus()
    if gpus is None or gpus == len(there):
        return there
    if gpus > len(there):
        raise ConfigError(
            f"--gpus {gpus}: this machine has {len(there)}; give fewer, or --slurm or --kubernetes for another machine."
        )
    os.environ[VISIBLE] = ",".join(there[:gpus])
    return there[:gpus]
