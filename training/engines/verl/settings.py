"""Settings of training with verl: where it is installed, on how many GPUs, and how the model is cut over them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from curation.config.base import Settings


class VerlSettings(Settings):
    """How verl runs a recipe. What is trained, and how, are the recipe's other tables."""

    python: str | None = Field(
        None,
        description="verl's own interpreter, on every node under the same path; where absent, $GOLDILOCKS_VERL, then "
        "what `make setup-verl` made. Not in the paper.",
    )
    nodes: int = Field(1, ge=1, description="Machines of the Ray cluster that the run uses. Not in the paper.")
    gpus_per_node: Annotated[int, Field(ge=1)] | Literal["auto"] = Field(
        "auto", description="GPUs of each; `auto`: those of this machine. Not in the paper."
    )
    ray_address: str | None = Field(
        None,
        description="Address of a running Ray cluster, or `auto` on one of its nodes; where absent, Ray is started on "
        "this machine. Not in the paper.",
    )
    rollout_share: Annotated[float, Field(gt=0, lt=1)] | Literal["auto"] = Field(
        "auto",
        description="Share of the GPUs that only generate; the others only train. `auto`: as much as makes the run "
        "shortest by the figures of [costs], of what leaves the trainers memory enough and deals a step's rollouts out "
        "evenly; half where it states none. With max_staleness = 0 all do both, in turns. Not in the paper.",
    )
    rollout_tensor_parallel: int = Field(
        1, ge=1, description="GPUs that hold one copy of the model for generation. Not in the paper."
    )
    sequence_parallel: int = Field(
        1, ge=1, description="GPUs over which one sequence is cut in training. Not in the paper."
    )
    max_prompt_tokens: int = Field(
        4096,
        ge=1,
        description="Room for a prompt, in tokens; problems with a longer one are left out. Not in the paper.",
    )
    overrides: tuple[str, ...] = Field(
        (),
        description="Further keys of verl's configuration, as `actor_rollout_ref.actor.shuffle=true`, set last. Not in "
        "the paper.",
    )
