"""What verl's processes know of their run: the recipe and the run's folder, from the environment.

Read by the plugin, in verl's processes; written by `training.engines.verl.configuration`.
"""

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
    """The run that this process is a part of."""

    recipe: TrainRecipe
    out: Path

    @property
    def max_tokens(self) -> int:
        """Return the most generated tokens of a rollout."""
        return self.recipe.rewards.max_length


@cache
def run_facts() -> RunFacts:
    """Return the run of this process.

    Raises:
        ConfigError: it was not started by a run of verl.
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
