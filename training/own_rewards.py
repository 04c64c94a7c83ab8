"""Reward components of the user's own: `[rewards] components = ["brief.py:BRIEF"]`.

They run with the user's rights and without a time limit, for well-formed rollouts with a verdict.

Invariant: settings include the digest of a component's file, so a run is not resumed with another.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from curation.plugins import PluginRef, find_plugin
from curation.records import ConfigError, GoldilocksError


@runtime_checkable
class RewardComponent(Protocol):
    """A part of the reward, computed from a rollout's texts and verdict.

    Example, in `brief.py` next to the recipe::

        class Brief:
            def reward(self, problem, response, correct):
                return 0.1 if correct and len(response) < 2000 else 0.0

        BRIEF = Brief()
    """

    def reward(self, problem: str, response: str, correct: bool) -> float:
        """Return the amount to add; ``response`` includes thoughts."""
        ...


class RewardError(GoldilocksError):
    """A user's own reward component failed."""


_LOADED: dict[str, PluginRef] = {}
"""Loaded components by name@digest."""


def pinned(name: str, folder: Path) -> str:
    """Return a component's name, such as `brief.py:BRIEF`, with `@` and its file's digest."""
    if name in _LOADED:
        return name
    needed = "an object with the method `reward`"
    plugin = pinned_plugin(name, folder, "rewards.components", RewardComponent, needed)
    _LOADED[label := f"{plugin.name}@{plugin.digest}"] = plugin
    return label


def pinned_plugin(name: str, folder: Path, setting: str, kind: type, needed: str) -> PluginRef:
    """Return a setting's plug-in (see `find_plugin`); its name may end with `@` and its file's digest."""
    plain, _, digest = name.partition("@")
    plugin = find_plugin(plain, folder, setting, kind, needed)
    if digest and digest != plugin.digest:
        raise ConfigError(f"{setting}: the file of {plain} has changed since the run began; put it back.")
    return plugin


def own_reward(components: Sequence[str], problem: str, response: str, correct: bool, row: str) -> float:
    """Return the sum of the components; errors name the problem's id, ``row``."""
    total = 0.0
    for name in components:
        plugin = _LOADED[name].load()
        try:
            value = float(plugin.value.reward(problem, response, correct))
        except Exception as error:
            raise RewardError(f"rewards.components: {plugin.failure(error)} (problem {row}).") from error
        if not math.isfinite(value):
            raise RewardError(f"rewards.components: {_LOADED[name].label} returned {value} (problem {row}).")
        total += value
    return total
