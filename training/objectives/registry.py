"""The objectives by the `kind` under which a recipe's `[objective]` chooses them."""

from __future__ import annotations

from training.config import ObjectiveSettings
from training.objectives.aipo import AIPO
from training.objectives.base import AnyObjective, ObjectiveNeeds
from training.objectives.grpo import GRPO
from training.objectives.jepo import JEPO
from training.objectives.sft import SFT
from training.objectives.soft import SOFT

OBJECTIVES: dict[str, AnyObjective] = {
    objective.kind: objective
    for objective in (
        AIPO,
        GRPO,  # one line per objective
        JEPO,
        SFT,
        SOFT,
    )
}


def objective_of(settings: ObjectiveSettings) -> AnyObjective:
    """Return the objective that these settings belong to.

    Raises:
        KeyError: none is registered under their kind.
    """
    return OBJECTIVES[settings.kind]


def needs_of(settings: ObjectiveSettings) -> ObjectiveNeeds:
    """Return what must be computed for the objective with these settings."""
    return objective_of(settings).needs(settings)


def objective_settings() -> dict[str, type[ObjectiveSettings]]:
    """Return the settings of every objective by its kind."""
    return {kind: objective.settings for kind, objective in OBJECTIVES.items()}
