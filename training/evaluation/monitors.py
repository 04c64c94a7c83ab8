"""Show a run in Weights & Biases, imported only if a recipe names a project."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from curation.config.schedule import MonitorSettings
from curation.records import ConfigError


class Monitor:
    """A run in Weights & Biases.

    Args:
        out: the run's folder, which identifies it on resuming.

    Raises:
        ConfigError: the package is not installed.
    """

    def __init__(self, project: str, name: str, out: Path, recipe: Mapping[str, Any]) -> None:
        try:
            self._module: Any = import_module("wandb")
        except ImportError as error:
            raise ConfigError(
                "monitor.wandb needs the package wandb, which is not installed; install it, or remove monitor.wandb "
                "from the recipe."
            ) from error
        digest = hashlib.blake2b(str(out.absolute()).encode(), digest_size=6).hexdigest()
        self._module.init(
            project=project, name=name, config=dict(recipe), resume="allow", id=f"{name}-{digest}", dir=str(out)
        )

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        """Show a step's metrics."""
        self._module.log(dict(numbers), step=step)

    def close(self) -> None:
        """End the run there."""
        self._module.finish()


def open_monitors(settings: MonitorSettings, name: str, out: Path, recipe: Mapping[str, Any]) -> Sequence[Monitor]:
    """Return the recipe's monitors, started; none if it names no project.

    Raises:
        ConfigError: the package is not installed.
    """
    return [Monitor(settings.wandb, name, out, recipe)] if settings.wandb is not None else []
