"""From the settings of a recipe to whoever answers."""

from __future__ import annotations

from pathlib import Path

from curation.config import EndpointPolicy, RecordedPolicy, VllmPolicy
from curation.prompts import Prompt
from curation.records import Policy


def open_policy(
    settings: RecordedPolicy | VllmPolicy | EndpointPolicy, recipe_folder: Path, prompt: Prompt | None = None
) -> Policy:
    """The policy that a recipe names. Nothing is started or read in full yet: that happens on entering it.

    Args:
        recipe_folder: what paths in the settings are relative to.
        prompt: what is asked, where it is not the prompt that the settings name; recorded attempts have theirs.

    Raises:
        SourceError, PolicyError: what the settings name is not there.
    """
    if isinstance(settings, VllmPolicy):
        from curation.policies.vllm import Vllm

        return Vllm(settings, recipe_folder, prompt)
    if isinstance(settings, EndpointPolicy):
        from curation.policies.endpoint import Endpoint

        return Endpoint(settings, recipe_folder, prompt)
    from curation.policies.recorded import Recorded

    return Recorded(settings, recipe_folder)
