"""Show a run in Weights & Biases, imported only if a recipe names a project."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from curation.config.schedule import MonitorSettings
from curation.records import ConfigError

Monitor = ModuleType
"""The package, with a run open in it."""


def open_monitors(settings: MonitorSettings, name: str, out: Path, recipe: Mapping[str, Any]) -> Sequence[Monitor]:
    """Return the recipe's monitors, started; none if it names no project."""
    if settings.wandb is None:
        return []
    try:
        wandb = import_module("wandb")
    except ImportError as error:
        raise ConfigError(
            "monitor.wandb needs the package wandb, which is not installed; install it, or remove monitor.wandb from "
            "the recipe."
        ) from error
    digest = hashlib.blake2b(str(out.absolute()).encode(), digest_size=6).hexdigest()
    options: dict[str, Any] = {"config": dict(recipe), "resume": "allow", "id": f"{name}-{digest}", "dir": str(out)}
    wandb.init(project=settings.wandb, name=name, **options)
    return [wandb]
