"""Open the policy of a model's settings.

A new kind is one file with its class and one line in `POLICIES`; packages above curation pass a longer table.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from curation.prompts import Prompt
from curation.records import Policy, PolicyError

if TYPE_CHECKING:
    from curation.config.policies import ModelSettings

POLICIES: Mapping[str, str] = {
    "recorded": "curation.policies.recorded:Recorded",
    "vllm": "curation.policies.vllm:Vllm",
    "endpoint": "curation.policies.endpoint:Endpoint",
}
"""Module and class by kind of settings; imported when one is opened, for some are heavy.

Every class is called with the settings, the folder that their paths are relative to, and the prompt, where it is not
the one that the settings name."""


def open_policy(
    settings: ModelSettings,
    recipe_folder: Path,
    prompt: Prompt | None = None,
    *,
    policies: Mapping[str, str] = POLICIES,
) -> Policy:
    """Return the policy that a recipe names. Nothing is started or read in full yet: that happens on entering it.

    Args:
        recipe_folder: what paths in the settings are relative to.
        prompt: what is asked, where it is not the prompt that the settings name; recorded attempts have theirs.
        policies: module and class by kind, as in `POLICIES`.

    Raises:
        SourceError, PolicyError: what the settings name is not there, or nothing here opens their kind.
    """
    if settings.kind not in policies:
        raise PolicyError(f"policy kind {settings.kind!r} cannot be opened here; kinds are {', '.join(policies)}.")
    module, _, name = policies[settings.kind].partition(":")
    policy: Policy = getattr(import_module(module), name)(settings, recipe_folder, prompt)
    return policy
