"""`--gpus` and `--batch` of `goldilocks run` and `train`: a machine's GPUs, or a cluster's job file."""

from __future__ import annotations

import json
import os
import re
import shlex
import tomllib
from collections.abc import Sequence
from pathlib import Path

from curation.config import Recipe, VllmModel
from curation.policies.vllm.engine import VISIBLE, visible_gpus
from curation.records import ConfigError
from flows.run.recipe import load_recipe
from flows.run.training import load_train_recipe

MOUNT = "/workspace"
"""The volume of a Kubernetes job, with all files."""

JOBS = {"slurm": "slurm.sbatch", "kubernetes": "kubernetes.yaml"}
"""Templates, in ``jobs``. A Slurm job has 120 s between the signal to end and the kill; a JobSet has one pod."""


def is_training_recipe(path: Path) -> bool:
    """Return whether a file's tables are of a training recipe."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return "data" in table and "model" in table


def batch_file(
    kind: str, recipe: Path, overrides: Sequence[str], out: Path | None, gpus: int | None, trainer_gpus: int | None
) -> str:
    """Return a cluster's job file, which restarts a run after a lost node; ``kind`` is ``slurm`` or ``kubernetes``.

    Raises:
        ConfigError: there is no such kind, the recipe does not fit on these GPUs, or a path is outside the volume.
    """
    if kind not in JOBS:
        raise ConfigError(f"--batch {kind}: the kinds are {' and '.join(JOBS)}.")
    if gpus is None or gpus < 1:
        raise ConfigError(f"--batch {kind} needs the GPUs of the node, as in --gpus 8.")
    if is_training_recipe(recipe):
        from training.engines.placement import place_embedded

        settings, command = load_train_recipe(recipe, overrides), "train"
        named = [str(number) for number in range(gpus)]
        place_embedded(settings, named, recipe.parent.absolute(), trainers=trainer_gpus)
        name = settings.name
    else:
        curation, command = load_recipe(recipe, overrides), "run"
        copies_overrides(curation, gpus)
        name = curation.name
    out = out or Path("runs") / name
    words = ["goldilocks", command, str(recipe), "--gpus", str(gpus), "--out", str(out)]
    words += ["--trainer-gpus", str(trainer_gpus)] if trainer_gpus is not None else []
    words += [word for override in overrides for word in ("--set", override)]
    shown = shlex.join(words)
    if kind == "kubernetes":
        for path in (recipe, out):
            if path.is_absolute() and not path.is_relative_to(MOUNT):
                raise ConfigError(
                    f"--batch kubernetes: {path} is outside of the volume; give a path relative to its root, {MOUNT}."
                )
        name = f"goldilocks-{re.sub(r'[^a-z0-9]+', '-', name.lower()).strip('-')}"[:50].rstrip("-")
        shown = json.dumps(words, ensure_ascii=False)
    template = (Path(__file__).parent / "jobs" / JOBS[kind]).read_text("utf-8")
    return template.format(name=name, gpus=gpus, command=shown, mount=MOUNT)


def copies_overrides(recipe: Recipe, gpus: int) -> list[str]:
    """Return settings by which each vLLM model uses all GPUs, as engines run in turn; a given `data_parallel` stays.

    Raises:
        ConfigError: the GPUs are too few.
    """
    changes = []
    for name, model in recipe.models.items():
        if not isinstance(model, VllmModel):
            continue
        copies = model.copies(gpus)
        if 0 < gpus < model.tensor_parallel * copies:
            wide = f"models.{name}: tensor_parallel = {model.tensor_parallel} times data_parallel = {copies}"
            raise ConfigError(f"{wide} is more than the {gpus} GPUs; lower it, or give more GPUs.")
        if model.data_parallel == 1 and gpus >= 2 * model.tensor_parallel:
            changes.append(f"models.{name}.data_parallel=auto")
    return changes


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
