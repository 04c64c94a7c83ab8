"""A training stage as a bare function: its recipe from TOML, or from the folder of a run that is resumed.

Nothing of Prefect here (`flows.serve.schedule` makes a flow of it), so that the processes of torchrun start quickly.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from curation.config.loading import load_settings, parse_settings
from curation.records import ConfigError, StoreError
from training.recipe import TrainRecipe


def train(recipe: Path | None, out: Path | None = None, overrides: Sequence[str] = (), *, resume: bool = False) -> Path:
    """Train, or resume training; return the folder of the trained model.

    Raises:
        ConfigError: the recipe cannot be meant, or is missing where it is needed.
        StoreError: ``out`` holds no run to resume, or a run that was not to be resumed.
    """
    from training.engines.embedded import run

    settings, recipe_folder = _recipe_of(recipe, out, overrides, resume=resume)
    return run.train(settings, recipe_folder, (out or Path("runs") / settings.name).absolute(), resume=resume)


def check(recipe: Path | None, out: Path | None, overrides: Sequence[str] = (), *, resume: bool = False) -> list[str]:
    """Check the model of a recipe or of a run as training would, train nothing; return the table of the results.

    Raises:
        ConfigError, StoreError: as `train`.
        ModelCheckError: a check did not pass; the table is its text.
    """
    from training.checks.results import ModelCheckError, format_results
    from training.engines.embedded import run

    settings, recipe_folder = _recipe_of(recipe, out, overrides, resume=resume)
    results = run.check(settings, recipe_folder)
    table = format_results(results)
    if not all(result.passed for result in results):
        raise ModelCheckError("\n".join([f"model {settings.model} is refused", *table]))
    return table


def _recipe_of(
    recipe: Path | None, out: Path | None, overrides: Sequence[str], *, resume: bool
) -> tuple[TrainRecipe, Path]:
    """Read the recipe, or that of the run to be resumed, and the folder that its paths refer to."""
    if resume:
        if out is None:
            raise ConfigError("to resume a run, say which: give its folder")
        return read_run(out, overrides)
    if recipe is None:
        raise ConfigError("give a recipe to train by, or a run's folder to resume")
    return load_train_recipe(recipe, overrides), recipe.parent.absolute()


def from_attempts(recipe: Path | None, overrides: Sequence[str] = (), data: str = "attempts") -> list[str]:
    """Return the overrides with which a recipe starts from the attempts of its sets' runs.

    A table `[stored]` of the recipe stays as it is. An objective that needs the probabilities under which attempts were
    drawn, which few stores keep, gives way to `soft`.

    Raises:
        ConfigError: there is no recipe to begin a run by, or ``data`` is something else.
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


def load_train_recipe(path: Path, overrides: Sequence[str] = ()) -> TrainRecipe:
    """Read and check a training recipe, with some settings changed (``optim.learning_rate=1e-6``)."""
    return load_settings(TrainRecipe, path, overrides)


def read_run(folder: Path, overrides: Sequence[str] = ()) -> tuple[TrainRecipe, Path]:
    """Read the recipe of a training run's folder, and the folder that its paths refer to.

    Raises:
        ConfigError: the recipe cannot be meant, or not with these settings changed.
        StoreError: the folder holds no training run, or a damaged one.
    """
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
    return parse_settings(TrainRecipe, table, f"recipe {path}", overrides), recipe_folder
