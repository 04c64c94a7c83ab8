"""Read the run of a verl process from its environment."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from curation.config.loading import parse_settings
from curation.records import ConfigError
from training.engines.verl.configuration import RECIPE_VARIABLE
from training.recipe import TrainRecipe


@dataclass(frozen=True, slots=True)
class RunFacts:
    """The run that this process belongs to."""

    recipe: TrainRecipe
    out: Path


@cache
def run_facts() -> RunFacts:
    """Return the run of this process.

    Raises:
        ConfigError: no run of verl started it.
    """
    text = os.environ.get(RECIPE_VARIABLE)
    if text is None:
        raise ConfigError(
            f"${RECIPE_VARIABLE} is not set: this is no process of a run; start it by `goldilocks train`."
        )
    table = json.loads(text)
    home = Path(table["recipe_folder"])
    recipe = parse_settings(TrainRecipe, table["recipe"], f"${RECIPE_VARIABLE}", folder=home)
    return RunFacts(recipe, Path(table["out"]))
