"""Finds a recipe's objective by its `kind`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from curation.config.mistakes import sentences
from curation.records import ConfigError
from training.config import ObjectiveSettings
from training.objectives.aipo import AIPO
from training.objectives.base import ObjectiveNeeds
from training.objectives.credit import AnyObjective, Objective
from training.objectives.distil import DISTIL
from training.objectives.dppo import DPPO
from training.objectives.grpo import GRPO
from training.objectives.jepo import JEPO
from training.objectives.sft import SFT
from training.objectives.soft import SOFT
from training.own_rewards import pinned_plugin

OBJECTIVES: dict[str, AnyObjective] = {one.kind: one for one in (AIPO, DISTIL, DPPO, GRPO, JEPO, SFT, SOFT)}

OWN: dict[str, AnyObjective] = {}
"""The user's loaded objectives, by kind@digest."""


def own_settings(table: Mapping[str, Any], folder: Path) -> ObjectiveSettings:
    """Return the settings of a user's own objective, whose kind includes its file's digest."""
    kind = table["kind"]
    if kind not in OWN:
        found = pinned_plugin(kind, folder, "objective.kind", Objective, "an Objective")
        kind = f"{found.name}@{found.digest}"
        OWN[kind] = found.load().value
    objective, table = OWN[kind], {**table, "kind": kind}
    try:
        settings: ObjectiveSettings = objective.settings.model_validate(table)
    except ValidationError as error:
        raise ConfigError(
            f"objective {kind.partition('@')[0]}: " + "\n  ".join(sentences(objective.settings, table, error))
        ) from error
    return settings


def objective_of(settings: ObjectiveSettings) -> AnyObjective:
    """Return the objective of these settings."""
    return OBJECTIVES[settings.kind] if settings.kind in OBJECTIVES else OWN[settings.kind]


def needs_of(settings: ObjectiveSettings) -> ObjectiveNeeds:
    """Return what the objective needs with these settings."""
    return objective_of(settings).needs(settings)
