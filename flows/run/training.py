"""Run a training stage with either engine, and report its progress.

torchrun starts this module in each process, so Prefect, which would slow them, is not imported:

``torchrun --nproc-per-node N -m flows.run.training RECIPE.toml --out DIR``
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from curation.config.loading import load_settings, parse_settings
from curation.records import ConfigError, GoldilocksError, StoreError
from flows.run.progress import print_line, read_metrics

if TYPE_CHECKING:
    from training.recipe import TrainRecipe

RANK_MODULE = "flows.run.training"  # what each process of the embedded engine runs


def train(
    recipe: Path | None,
    out: Path | None = None,
    overrides: Sequence[str] = (),
    *,
    resume: bool = False,
    servers: Sequence[str] = (),
) -> Path:
    """Train or resume in this process; return the model's folder.

    Args:
        servers: addresses of generating vLLM servers.
    """
    settings, recipe_folder, folder = _opened(recipe, out, overrides, resume=resume)
    if settings.engine == "verl":
        from training.engines.verl.run import train as train_by_verl

        return train_by_verl(settings, recipe_folder, folder, resume=resume)
    from training.engines.embedded import run

    return run.train(settings, recipe_folder, folder, resume=resume, servers=servers)


def train_apart(
    recipe: Path | None,
    out: Path | None = None,
    overrides: Sequence[str] = (),
    *,
    resume: bool = False,
    gpus: Sequence[str] | None = None,
    trainers: int | None = None,
) -> Path:
    """Train in child processes on placed GPUs; with verl as `train`.

    They and their servers end with this process.

    Args:
        gpus: by default all visible ones.
    """
    from curation.policies.vllm.engine import visible_gpus
    from training.engines.embedded.servers import generator_servers
    from training.engines.placement import place_embedded
    from training.engines.processes import train_in_ranks

    settings, recipe_folder, folder = _opened(recipe, out, overrides, resume=resume)
    if settings.engine == "verl":
        return train(recipe, folder, overrides, resume=resume)
    named = visible_gpus() if gpus is None else gpus
    placement = place_embedded(settings, named, recipe_folder, trainers=trainers)
    arguments = ["--resume", str(folder)] if resume else [str(recipe), "--out", str(folder)]
    changes = [part for override in overrides for part in ("--set", override)]
    folder.mkdir(parents=True, exist_ok=True)
    if placement.why:
        print_line(placement.why)
    with generator_servers(settings, recipe_folder, placement.generators) as urls:
        asked = [part for url in urls for part in ("--server", url)]
        train_in_ranks(placement, RANK_MODULE, [*arguments, *changes, *asked], folder, print_line)
    return folder / "model"


def training_warnings(recipe: Path, overrides: Sequence[str] = ()) -> tuple[str, ...]:
    """Return warnings about collector sizes."""
    settings = load_train_recipe(recipe, overrides)
    return settings.warnings() if settings.engine == "embedded" else ()


def needs_ranks(recipe: Path | None, out: Path | None, overrides: Sequence[str], *, resume: bool) -> bool:
    """Return whether several processes must still be started."""
    from curation.policies.vllm.engine import visible_gpus
    from training.engines.placement import place_embedded

    settings, recipe_folder, _ = _opened(recipe, out, overrides, resume=resume)
    if settings.engine != "embedded" or "WORLD_SIZE" in os.environ or not settings.compute.device.startswith("cuda"):
        return False
    placement = place_embedded(settings, visible_gpus(), recipe_folder)
    return placement.processes > 1 or bool(placement.generators)


def check(recipe: Path | None, out: Path | None, overrides: Sequence[str] = (), *, resume: bool = False) -> list[str]:
    """Check a model without training; return a table of results, or raise `ModelCheckError`."""
    from training.checks import ModelCheckError, format_results
    from training.engines.embedded import run

    settings, recipe_folder, _ = _opened(recipe, out, overrides, resume=resume)
    if settings.engine == "verl":
        return _check_verl(settings, recipe_folder)
    results = run.check(settings, recipe_folder)
    table = format_results(results)
    if not all(result.passed for result in results):
        raise ModelCheckError("\n".join([f"model {settings.trained.model} is refused", *table]))
    return table


def _check_verl(settings: TrainRecipe, recipe_folder: Path) -> list[str]:
    import tempfile

    from training.engines.verl.configuration import replacements
    from training.engines.verl.run import check_configuration, prepare, write_job
    from training.engines.verl.stages import all_stages

    interpreter = _require_verl(settings)
    with tempfile.TemporaryDirectory() as name:
        out = Path(name)
        prepare(settings, recipe_folder, out)
        for stage in all_stages(settings):
            write_job(settings, stage, recipe_folder, out)
            check_configuration(out, interpreter)
    return ["verl accepts the configuration; it differs from the embedded engine:"] + [
        f"  {line}" for line in replacements(settings)
    ]


def _require_verl(settings: TrainRecipe) -> Path:
    from training.engines.verl.configuration import refuse_what_differs
    from training.engines.verl.environment import require_interpreter

    refuse_what_differs(settings)
    return require_interpreter()


def _opened(
    recipe: Path | None, out: Path | None, overrides: Sequence[str], *, resume: bool
) -> tuple[TrainRecipe, Path, Path]:
    """Return settings, the base of their paths, and the run's folder."""
    if resume:
        if out is None:
            raise ConfigError("to resume a run, give its folder")
        settings, home = read_run(out, overrides)
    elif recipe is None:
        raise ConfigError("give a recipe to train by, or a run's folder to resume")
    else:
        settings, home = load_train_recipe(recipe, overrides), recipe.parent.absolute()
    return settings, home, (out or Path("runs") / settings.name).absolute()


def default_folder(recipe: Path | None, overrides: Sequence[str] = ()) -> Path:
    """Return the folder runs/NAME."""
    return Path("runs") / _opened(recipe, None, overrides, resume=False)[0].name


def from_attempts(recipe: Path | None, overrides: Sequence[str] = (), data: str = "attempts") -> list[str]:
    """Return the overrides to start from stored attempts.

    An objective that needs log probabilities becomes `soft`.

    Raises:
        ConfigError: there is no recipe, or ``data`` is not `attempts`.
    """
    from training.objectives.registry import objective_of

    if data != "attempts":
        raise ConfigError(f"--data {data} is not known; `--data attempts` starts from stored attempts")
    if recipe is None:
        raise ConfigError("--data attempts needs a recipe: a run that is resumed goes on as it began; leave it out")
    settings = load_train_recipe(recipe, overrides)
    changes = [*overrides, *(["stored={}"] if settings.stored is None else [])]
    if objective_of(settings.objective).needs(settings.objective).generator_logprobs:
        changes.append("objective={ kind = 'soft' }")
    return changes


def start_from(recipe: Path, model: Path, overrides: Sequence[str] = ()) -> str:
    """Return the override to start from this model."""
    return f"models.{load_train_recipe(recipe, overrides).model}.model={json.dumps(str(model))}"


def load_train_recipe(path: Path, overrides: Sequence[str] = ()) -> TrainRecipe:
    """Read and check a training recipe, with changed settings (``optim.learning_rate=1e-6``)."""
    from training.recipe import TrainRecipe

    return load_settings(TrainRecipe, path, overrides)


def check_train_recipe(path: Path, overrides: Sequence[str] = ()) -> None:
    """Check a recipe and its engine, without its data."""
    settings = load_train_recipe(path, overrides)
    if settings.engine == "verl":
        _require_verl(settings)


def read_run(folder: Path, overrides: Sequence[str] = ()) -> tuple[TrainRecipe, Path]:
    """Return a training run's recipe, and the base of its paths.

    Raises:
        ConfigError: the recipe is invalid.
        StoreError: the folder holds no training run, or a damaged one.
    """
    from training.recipe import TrainRecipe

    path = folder / "run.json"
    try:
        mark = json.loads(path.read_text(encoding="utf-8"))
        if mark.get("kind") != "training":
            raise StoreError(f"{folder} holds no training run, but one of a curation recipe; give another folder")
        table, recipe_folder = mark["recipe"], Path(mark["recipe_folder"])
    except OSError as error:
        raise StoreError(f"{folder} holds no run to resume (no run.json); start one with its recipe") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(f"{path} is damaged ({error}); start the run again in another folder") from error
    return parse_settings(TrainRecipe, table, f"recipe {path}", overrides, recipe_folder), recipe_folder


_SHOWN = (
    ("batch/pass_rate", "pass rate", ".3f"),
    ("reward/total", "reward", ".3f"),
    ("length/trained_mean", "tokens an attempt", ".0f"),
    ("policy/entropy", "entropy", ".3f"),
    ("age/token_mean", "age of tokens in versions", ".2f"),
)


def is_training(folder: Path) -> bool:
    """Return whether a folder holds a training run."""
    path = folder / "run.json"
    try:
        return bool(json.loads(path.read_text(encoding="utf-8")).get("kind") == "training")
    except (OSError, ValueError, AttributeError):
        return False


def training_lines(folder: Path) -> list[str]:
    """Return a training run's status as lines."""
    from training.rollouts.attempt_log import count_attempts
    from training.rollouts.stall_monitor import STALLED

    recipe = json.loads((folder / "run.json").read_text(encoding="utf-8"))["recipe"]
    rows = read_metrics(folder)
    lines = [f"{recipe['name']}: {folder}", f"  step {rows[-1]['step'] if rows else 0} of {recipe['steps']}"]
    if rows:
        last = rows[-1]
        lines.append("  " + ", ".join(f"{name} {last[key]:{form}}" for key, name, form in _SHOWN if key in last))
    if counts := count_attempts(folder):
        lines.append(
            f"  attempts kept: {', '.join(f'{purpose} {count:,}' for purpose, count in sorted(counts.items()))}"
        )
    if (folder / "model" / "DONE.json").exists():
        lines.append(f"  the trained model: {folder / 'model'}")
    else:
        if (folder / STALLED).exists():
            lines.append(f"  ended: {json.loads((folder / STALLED).read_text(encoding='utf-8'))['message']}")
        lines.append(f"  not finished; `goldilocks train --resume {folder}` goes on")
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Train as torchrun's command line asks, and return the exit status."""
    parser = argparse.ArgumentParser(prog=f"python -m {RANK_MODULE}", description="Train by a recipe.")
    parser.add_argument("recipe", nargs="?", type=Path, metavar="RECIPE.toml")
    parser.add_argument("--out", type=Path, metavar="DIR")
    parser.add_argument("--resume", type=Path, metavar="DIR")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="overrides")
    parser.add_argument("--server", action="append", default=[], metavar="URL", dest="servers", help="which generates")
    options = parser.parse_args(arguments)
    out, resume = options.resume or options.out, options.resume is not None
    try:
        print(train(options.recipe, out, options.overrides, resume=resume, servers=options.servers))
    except GoldilocksError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    from training.optimisation.distributed import end_process

    end_process(main())
