"""A training stage as a bare function: its recipe from TOML, or from the folder of a run that is resumed.

Nothing of Prefect here (its flow is in `flows.pipelines.train_stage`), so that the processes of torchrun start quickly.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from curation.config import plain
from curation.records import ConfigError, StoreError
from flows.run.recipe import set_value

if TYPE_CHECKING:
    from training.recipe import TrainRecipe


def train(recipe: Path | None, out: Path | None = None, overrides: Sequence[str] = (), *, resume: bool = False) -> Path:
    """Train, or go on training; returns the folder of the trained model.

    Raises:
        ConfigError: the recipe cannot be meant, or is missing where it is needed.
        StoreError: ``out`` holds no run to resume, or a run that was not to be resumed.
    """
    from training import run

    if resume:
        if out is None:
            raise ConfigError("to resume a run, say which: give its folder")
        made, where = read_run(out, overrides)
    elif recipe is None:
        raise ConfigError("give a recipe to train by, or a run's folder to resume")
    else:
        made, where = load_train_recipe(recipe, overrides), recipe.parent.absolute()
    return run.train(made, where, (out or Path("runs") / made.name).absolute(), resume=resume)


def load_train_recipe(path: Path, overrides: Sequence[str] = ()) -> TrainRecipe:
    """Read and check a training recipe, with some settings changed (``optim.learning_rate=1e-6``)."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"recipe {path}: cannot be read ({error.strerror}).") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"recipe {path}: not TOML ({error}).") from error
    return _checked(table, overrides, str(path))


def read_run(folder: Path, overrides: Sequence[str] = ()) -> tuple[TrainRecipe, Path]:
    """The recipe of a training run's folder, and the folder that its paths refer to."""
    path = folder / "run.json"
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
        if held.get("kind") != "training":
            raise StoreError(f"{folder} holds no training run, but one of a curation recipe; give another folder")
        return _checked(held["recipe"], overrides, str(path)), Path(held["recipe_folder"])
    except OSError as error:
        raise StoreError(f"{folder} holds no run to resume (no run.json); start one with its recipe") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(f"{path} is damaged ({error}); start the run again in another folder") from error


def _checked(table: dict[str, Any], overrides: Sequence[str], where: str) -> TrainRecipe:
    from training.recipe import TrainRecipe

    for override in overrides:
        set_value(table, override)
    try:
        return TrainRecipe.model_validate(plain(table))
    except ValidationError as error:
        found = [
            f"`{'.'.join(map(str, detail['loc'])) or 'the recipe'}`: {detail['msg'].removeprefix('Value error, ')}."
            for detail in error.errors()
        ]
        raise ConfigError(f"recipe {where}: " + "\n  ".join(found)) from error
