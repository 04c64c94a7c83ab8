"""Open the models of a recipe: those of curation, and the trainer's own generator.

`curation` knows no torch, so the small generator that runs without vLLM is added here, and the name of the shipped
model.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from curation.config import Recipe, RecordedPolicy
from curation.policies.factory import POLICIES as CURATION_POLICIES
from curation.policies.factory import open_policy as open_by
from curation.policies.recorded import Recorded
from curation.prompts import Prompt
from curation.records import Policy
from training.embedded_model import EMBEDDED, WEIGHTS

if TYPE_CHECKING:
    from curation.config.policies import ModelSettings

POLICIES = {**CURATION_POLICIES, "torch": "training.generation.torch_policy:TorchPolicy"}


def open_policy(settings: ModelSettings, recipe_folder: Path, prompt: Prompt | None = None) -> Policy:
    """Return the policy that a recipe names. Nothing is started yet: that happens on entering it.

    Args:
        recipe_folder: what paths in the settings are relative to; ``model = "embedded"`` is the shipped model, for
            every kind that loads a folder.
        prompt: the prompt to use, where it is not the prompt that the settings name.

    Raises:
        SourceError, PolicyError: what the settings name is not there.
    """
    if settings.kind != "recorded" and settings.loads_folder and settings.model == EMBEDDED:
        settings, recipe_folder = settings.model_copy(update={"model": WEIGHTS.name}), WEIGHTS.parent
    return open_by(settings, recipe_folder, prompt, policies=POLICIES)


def check_models(recipe: Recipe, recipe_folder: Path) -> None:
    """Refuse a file of recorded attempts that is missing or not as the recipe has it, by reading its first rows."""
    for name in dict.fromkeys(recipe.asked.values()):
        settings = recipe.models[name]
        if isinstance(settings, RecordedPolicy):
            Recorded(settings, recipe_folder).check()


def model_title(recipe: Recipe, name: str | None) -> str:
    """Return what a recipe's model is called on the terminal."""
    return policy_name(recipe.models[name]) if name is not None else "no model"


def policy_name(settings: ModelSettings) -> str:
    """Return a policy's name as the recipe has it; a live one's revision is known once it has answered."""
    return settings.name if isinstance(settings, RecordedPolicy) else settings.model
