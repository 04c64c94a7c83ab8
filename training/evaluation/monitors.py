"""Where else a run's numbers are shown: Weights & Biases, or trackio, which takes the same calls and runs locally.

Both are packages of the user's; none is imported unless a recipe asks for it. A run that goes on after a kill goes on
under the same name there.

Not here: `metrics.jsonl` and TensorBoard, which every run has (`training.evaluation.metrics`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from curation.config.monitoring import MonitorSettings
from curation.records import ConfigError


class Monitor:
    """A run as one of these packages shows it.

    Args:
        package: ``wandb`` or ``trackio``.
        out: the run's folder; by it the run is known again.
        recipe: what is shown as the run's configuration.

    Raises:
        ConfigError: the package is not installed.
    """

    def __init__(self, package: str, project: str, name: str, out: Path, recipe: Mapping[str, Any]) -> None:
        try:
            self._module: Any = import_module(package)
        except ImportError as error:
            raise ConfigError(
                f"monitor.{package} needs the package {package}, which is not installed; install it, or remove "
                f"monitor.{package} from the recipe."
            ) from error
        options: dict[str, Any] = {"project": project, "name": name, "config": dict(recipe), "resume": "allow"}
        if package == "wandb":  # trackio knows a run by its name
            digest = hashlib.blake2b(str(out.absolute()).encode(), digest_size=6).hexdigest()
            options |= {"id": f"{name}-{digest}", "dir": str(out)}
        self._module.init(**options)

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        """Show one step's numbers."""
        self._module.log(dict(numbers), step=step)

    def close(self) -> None:
        """End the run there."""
        self._module.finish()


def open_monitors(settings: MonitorSettings, name: str, out: Path, recipe: Mapping[str, Any]) -> Sequence[Monitor]:
    """Return the monitors that a recipe asks for, begun.

    Raises:
        ConfigError: a package is not installed.
    """
    wanted = (("wandb", settings.wandb), ("trackio", settings.trackio))
    return [Monitor(package, project, name, out, recipe) for package, project in wanted if project is not None]
