"""Reward components of the user's own: `[rewards] components = ["brief.py:BRIEF"]`.

They run with the user's rights and without a time limit, for rollouts with a kept format and a verdict.

Invariant: settings name a component with its file's digest, so that a run is not resumed with another file.
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
    """A part of the reward, of a rollout's own texts and verdict alone.

    Example, in `brief.py` next to the recipe::

        class Brief:
            def reward(self, problem, response, correct):
                return 0.1 if correct and len(response) < 2000 else 0.0

        BRIEF = Brief()
    """

    def reward(self, problem: str, response: str, correct: bool) -> float:
        """Return what is added to the reward; the response includes its thoughts."""
        ...


class RewardError(GoldilocksError):
    """A user's own reward component failed."""


_FOUND: dict[str, PluginRef] = {}
"""Loaded components by name@digest."""


def pinned(name: str, folder: Path) -> str:
    """Return a component's name, such as `brief.py:BRIEF`, with the digest of its file after `@`."""
    if name in _FOUND:
        return name
    needed = "an object with the method `reward`"
    found = pinned_plugin(name, folder, "rewards.components", RewardComponent, needed)
    _FOUND[label := f"{found.name}@{found.digest}"] = found
    return label


def pinned_plugin(name: str, folder: Path, setting: str, kind: type, needed: str) -> PluginRef:
    """Return a setting's plug-in, whose name may have its file's digest after `@`; see `find_plugin`."""
    plain, _, digest = name.partition("@")
    found = find_plugin(plain, folder, setting, kind, needed)
    if digest and digest != found.digest:
        raise ConfigError(f"{setting}: the file of {plain} has changed since the run began; put it back.")
    return found


def own_reward(components: Sequence[str], problem: str, response: str, correct: bool, row: str) -> float:
    """Return the sum of the user's components for a rollout; errors name the problem's id, ``row``."""
    total = 0.0
    for name in components:
        plugin = _FOUND[name].load()
        try:
            value = float(plugin.value.reward(problem, response, correct))
        except Exception as error:
            raise RewardError(f"rewards.components: {plugin.failure(error)} (problem {row}).") from error
        if not math.isfinite(value):
            raise RewardError(f"rewards.components: {_FOUND[name].label} returned {value} (problem {row}).")
        total += value
    return total
