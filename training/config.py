"""Settings of the trainer; "paper" is arXiv 2506.10910.

Counts of `CollectorSettings` are rollouts.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from curation.config.base import Settings
from training.own_rewards import pinned


class RewardSettings(Settings):
    """Rewards in addition to those for format and correctness (paper, section 2.2)."""

    language: float = Field(0.1, ge=0)
    """Bonus if problem, thoughts and answer are in one language; 0: off. Paper: 0.1."""
    length_penalty: float = Field(0.1, ge=0)
    """Max penalty for length; 0: off. Paper: 0.1."""
    max_length: int = Field(20_480, gt=0)
    """l_max, the max tokens of a rollout."""
    length_cache: int | None = Field(None, gt=0)
    """l_cache: tokens before `max_length` over which the penalty grows; a fifth if missing."""
    code: Literal["all_tests", "proportional"] = "all_tests"
    """`all_tests`: a program must pass every test (paper); `proportional`: by the share of tests passed."""

    components: tuple[str, ...] = ()
    """Components of your own, as `brief.py:BRIEF` (docs/how-to/plug-ins.md)."""

    @field_validator("components")
    @classmethod
    def _with_digests(cls, names: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        return tuple(pinned(name, (info.context or {}).get("folder", Path())) for name in names)

    @property
    def effective_length_cache(self) -> int:
        """Return `length_cache`, or its default."""
        return self.length_cache if self.length_cache is not None else -(-self.max_length // 5)

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.effective_length_cache > self.max_length:
            raise ValueError(
                f"length_cache = {self.effective_length_cache} is more than max_length = {self.max_length}; lower it"
            )
        return self


class DoubtSettings(Settings):
    """Judges of the user's own, and a model for doubtful verdicts, asked as by `[questions.doubtful_verdicts]`."""

    judges: tuple[str, ...] = ()
    """Judges of the sets, as `chem.py:FORMULA` (docs/how-to/plug-ins.md)."""

    model: str | None = Field(None, min_length=1)
    """Model for doubtful answers, of the kind `endpoint`; they count as wrong if missing."""


class ObjectiveSettings(Settings):
    """Settings of every objective; its file in `training.objectives` has the others."""

    kind: str
    """Which objective."""

    def unsuited(self, _group_size: int, /) -> str | None:
        """Return why groups of this size do not suit the objective, or None."""
        return None


class PackingSettings(Settings):
    """How sequences become micro-batches."""

    micro_batch_tokens: int = Field(32_768, gt=0)
    """Tokens per micro-batch, at least the longest sequence."""
    single: bool = False
    """One sequence per micro-batch, if packing fails its check."""


ADAM_BETAS, ADAM_EPS, MAX_GRAD_NORM = (0.9, 0.95), 1e-8, 1.0
"""AdamW's decays and epsilon, and the max norm of gradients."""


class OptimSettings(Settings):
    """The optimiser: AdamW without weight decay, with a constant rate after a warm-up (paper, section 6.3)."""

    learning_rate: float = Field(1e-6, gt=0)
    """Learning rate after the warm-up."""
    warmup_steps: int = Field(10, ge=0)
    """Steps over which the rate rises linearly."""

    def learning_rate_at(self, step: int) -> float:
        """Return the learning rate of an optimiser step, from 0."""
        if step >= self.warmup_steps:
            return self.learning_rate
        return self.learning_rate * (step + 1) / self.warmup_steps


class ComputeSettings(Settings):
    """The trainer's device and precision; weights and optimiser state are always fp32."""

    device: str = Field("cpu", min_length=1)
    """`cpu`, or `cuda`: one GPU for each process."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Type of activations and computing weights."""
    activation_checkpointing: bool = False
    """Keep only each layer's input and recompute the rest."""


class LoraSettings(Settings):
    """Adapters of low rank, with frozen weights, by peft (`pip install 'goldilocks-rl[lora]'`)."""

    rank: int = Field(16, ge=1)
    """Rank of the adapters."""


LONGEST = 8
"""Longest response in mean lengths; paper: 40,000 tokens at a mean of 5,000."""


class CollectorSettings(Settings):
    """The asynchronous collector (paper, sections 3 and 6.3)."""

    group_size: int = Field(16, ge=2)
    """G, rollouts per problem."""
    n_async: int = Field(4096, ge=1)
    """Rollouts generated at once. Paper: 4096 in its 3B ablation."""
    n_batch: int = Field(2048, ge=1)
    """Rollouts between two updates of the generators. Paper: 8k, 4k, 2k."""
    n_minibatch: int | None = Field(None, ge=1)
    """Rollouts per optimiser step; `n_batch` if missing, as in the paper."""
    max_staleness: int = Field(16, ge=0)
    """Max updates between a group's first rollout and training on it; 0: generators wait."""

    @property
    def minibatch_size(self) -> int:
        """Return `n_minibatch`, or its default."""
        return self.n_minibatch if self.n_minibatch is not None else self.n_batch

    @property
    def max_outstanding(self) -> int:
        """Return the max rollouts admitted, and not yet in a batch or dropped; not in the paper."""
        return 2 * (self.n_async + self.n_batch)

    @model_validator(mode="after")
    def _possible(self) -> Self:
        for name, count in (("n_batch", self.n_batch), ("n_minibatch", self.minibatch_size)):
            if count % self.group_size:
                raise ValueError(
                    f"{name} = {count} is no multiple of group_size = {self.group_size}; change one of them"
                )
        if self.n_batch % self.minibatch_size:
            raise ValueError(f"n_minibatch = {self.minibatch_size} does not divide n_batch = {self.n_batch}")
        return self

    def warnings(self) -> tuple[str, ...]:
        """Return sizes that the paper (section 6.3) advises against, or that make generators wait."""
        messages = []
        enough = math.ceil(LONGEST * self.n_async / self.n_batch)
        if 0 < self.max_staleness < enough:
            messages.append(
                f"max_staleness = {self.max_staleness}: generators will wait for long responses, since one of "
                f"{LONGEST} mean lengths takes {enough} updates with n_async = {self.n_async} and n_batch = "
                f"{self.n_batch}; set it to {enough}, or lower n_async."
            )
        if self.n_async > 2 * self.n_batch:
            messages.append(
                f"n_async / n_batch = {self.n_async / self.n_batch:.3g} is more than 2: about as many policies "
                "make each rollout, and the paper saw training suffer; lower n_async or raise n_batch."
            )
        if self.minibatch_size != self.n_batch:
            messages.append(
                f"n_minibatch = {self.minibatch_size} is not n_batch = {self.n_batch}: the paper kept them equal and "
                "saw more than two minibatches per batch do worse."
            )
        return tuple(messages)


class StageSettings(Settings):
    """A stage of a run; missing settings stay as in the previous stage."""

    until: Literal["steps", "reward", "length"] = "steps"
    """The stage ends when the reward is flat, when the length is flat because of its limit, or after `steps`. Paper: by
    eye."""
    steps: int | None = Field(None, ge=1)
    """Max steps of the stage."""
    lengths: int | None = Field(None, ge=1)
    """Tokens without a penalty, l_max - l_cache; raised only if the limit binds. Paper: 16k, 24k, 32k."""
    n_batch: int | None = Field(None, ge=1)
    """Rollouts per batch. Paper: 8k, 4k, 2k."""
    n_async: int | None = Field(None, ge=1)
    """Rollouts generated at once. Paper: lowered with memory."""
    hard: bool = False
    """Activate all deferred problems, as in the paper."""


class CurriculumSettings(Settings):
    """Changes during training."""

    stages: tuple[StageSettings, ...] = Field((), strict=False)
    """Stages, in order."""

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if any(stage.until == "steps" and stage.steps is None for stage in self.stages[:-1]):
            raise ValueError('a stage before the last never ends; give it steps, or until = "reward" or "length"')
        return self


class StoredSettings(Settings):
    """Training on stored attempts: first alone, then mixed with sampled ones."""

    runs: tuple[str, ...] = ()
    """Run folders, relative to the recipe's; those that made the sets of `data` if missing."""
    epochs: float = Field(1.0, ge=0)
    """Passes over them at the start. Paper: 4 in its cold start."""
    only: bool = False
    """End the run after these passes."""
    share: float = Field(0.25, ge=0, lt=1)
    """Share of stored groups in each later batch."""
    half_life: float | None = Field(None, gt=0)
    """Steps after which that share halves; never if missing."""
    max_distance: float | None = Field(None, gt=0)
    """Max distance to the reference in log-probability, nats per token; needs `soft`."""
    after_step: int = Field(0, ge=0)
    """Leave out attempts of training before this step. Paper: early thoughts are short."""
    per_problem: int | None = Field(None, ge=1)
    """Max attempts per problem; all if missing. The paper has a cap."""
    hardness: float = Field(0.0, ge=0)
    """Draw problems in proportion to (1 - pass rate) ** hardness."""
    general: str | None = None
    """For `sft`: file of instruction data (`messages`, or `prompt` and `response`) for 10 % of each batch, as in the
    paper."""

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.only and self.epochs == 0:
            raise ValueError("only = true with epochs = 0 would train on nothing; raise epochs")
        return self


MAX_PROMPT_TOKENS = 4096
"""verl leaves out problems with longer prompts."""


class VerlSettings(Settings):
    """How verl runs a recipe."""

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
