"""Settings of training with verl."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from curation.config.base import Settings

MAX_PROMPT_TOKENS = 4096
"""verl leaves out problems with longer prompts."""


class VerlSettings(Settings):
    """How verl runs a recipe. What is trained, and how, are the recipe's other tables."""

    nodes: int = Field(1, ge=1, description="Machines of the Ray cluster to use.")
    gpus_per_node: Annotated[int, Field(ge=1)] | Literal["auto"] = Field(
        "auto", description="GPUs of each; `auto`: those of this machine."
    )
    ray_address: str | None = Field(
        None,
        description="Address of a Ray cluster, or `auto` on its nodes; Ray is started if missing.",
    )
    sequence_parallel: int = Field(1, ge=1, description="GPUs per sequence in training.")
    overrides: tuple[str, ...] = Field(
        (), description="Keys of verl's configuration, as `actor_rollout_ref.actor.shuffle=true`."
    )
