"""`--gpus` and `--batch` of `goldilocks run` and `train`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from curation.policies.vllm.placement import VISIBLE, visible_gpus
from curation.records import ConfigError
from flows.launch.batch_files import BATCH_FILES, Launch
from flows.launch.layout import copies_overrides
from flows.launch.training import is_training_recipe
from flows.run.recipe import load_recipe
from flows.run.training import load_train_recipe, placed


def batch_file(
    kind: str, recipe: Path, overrides: Sequence[str], out: Path | None, gpus: int | None, trainer_gpus: int | None
) -> str:
    """Return a cluster's job file; ``kind`` is ``slurm`` or ``kubernetes``.

    Raises:
        ConfigError: there is no such kind, or the recipe does not fit on these GPUs.
    """
    if kind not in BATCH_FILES:
        raise ConfigError(f"--batch {kind}: the kinds are {' and '.join(BATCH_FILES)}.")
    if gpus is None or gpus < 1:
        raise ConfigError(f"--batch {kind} needs the GPUs of the node, as in --gpus 8.")
    named = [str(number) for number in range(gpus)]
    if training := is_training_recipe(recipe):
        settings = load_train_recipe(recipe, overrides)
        placed(settings, recipe.parent.absolute(), named, trainer_gpus)
        name = settings.name
    else:
        curation = load_recipe(recipe, overrides)
        copies_overrides(curation, gpus)
        name = curation.name
    command = "train" if training else "run"
    return BATCH_FILES[kind](
        Launch(command, name, recipe, out or Path("runs") / name, gpus, tuple(overrides), trainer_gpus)
    )


def copies_on(gpus: int | None, recipe: Path, overrides: Sequence[str]) -> list[str]:
    """Return settings by which a recipe uses that many GPUs, by default all."""
    return copies_overrides(load_recipe(recipe, overrides), len(take_gpus(gpus)))


def take_gpus(gpus: int | None) -> tuple[str, ...]:
    """Hide all GPUs but the first ``gpus``, and return their names.

    Raises:
        ConfigError: there are fewer.
    """
    there = visible_gpus()
    if gpus is None or gpus == len(there):
        return there
    if gpus > len(there):
        raise ConfigError(
            f"--gpus {gpus}: this machine has {len(there)}; give fewer, or --batch slurm or --batch kubernetes for "
            "another machine."
        )
    os.environ[VISIBLE] = ",".join(there[:gpus])
    return there[:gpus]
