"""Settings of the trainer: rewards, objective, packing, optimiser, and the asynchronous collector.

Every number that the paper (arXiv 2506.10910) does not print says so. Nothing here computes anything but defaults that
follow from other fields. Counts of `CollectorSettings` are rollouts (curation's attempts), as in the paper, not groups
and not tokens.
"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from curation.config import ResponseFormat
from curation.config.base import Settings
from curation.config.engines import HeadDtype
from curation.config.sampling import DEFAULT_MAX_FAILED, MaxFailed
from curation.response_formats import BOXED, MEANING


class RewardSettings(Settings):
    """What a rollout is worth (paper, section 2.2)."""

    format: float = Field(
        0.1, ge=0, description="For keeping the format; without it the reward is 0. 0.1 in the paper."
    )
    correctness: float = Field(0.9, ge=0, description="For a correct final answer. 0.9 in the paper.")
    response_format: ResponseFormat = Field(
        BOXED,
        description=f"How a rollout of math must give its answer: {MEANING}. `boxed` in the paper, and asked for by "
        "the prompt `solve`.",
    )
    language: float = Field(
        0.1, ge=0, description="Where problem, thoughts and answer share one language. 0.1 in the paper; 0 is off."
    )
    length_penalty: float = Field(0.1, ge=0, description="Largest penalty for length. 0.1 in the paper; 0 is off.")
    max_length: int = Field(
        20_480, gt=0, description="l_max, in generated tokens: from here on the penalty is full. Not in the paper."
    )
    length_cache: int | None = Field(
        None,
        gt=0,
        description="l_cache, in tokens: the penalty grows over the last so many before `max_length`. A fifth of "
        "`max_length`, rounded up, where absent. Not in the paper, which prints l_max - l_cache only: 16k, 24k, 32k.",
    )
    code: Literal["all_tests", "proportional"] = Field(
        "all_tests",
        description="`all_tests`: a program counts if it passes every test, as in the paper; `proportional`: by the "
        "share of tests passed, the paper's failed ablation.",
    )
    tests_per_group: int = Field(
        20, ge=1, description="Tests of a program, the same for a whole group. 20 in the paper."
    )

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


class ObjectiveSettings(Settings):
    """The part that every objective's table has; the rest is in the objective's own file (`training.objectives`)."""

    kind: str = Field(description="Which objective.")

    def unsuited(self, _group_size: int, /) -> str | None:
        """Return why groups of so many rollouts do not suit the objective, and what to change; None where they do."""
        return None

    def at_step(self, _step: int, /) -> Self:
        """Return the settings as they are after so many steps of a run."""
        return self


class PackingSettings(Settings):
    """How sequences become micro-batches, and how their log-probabilities are computed."""

    micro_batch_tokens: int = Field(
        32_768, gt=0, description="Room of a micro-batch, in tokens of prompt and response. Not in the paper."
    )
    shared: bool = Field(
        True,
        description="Sequences of one micro-batch that have the same prompt share its one copy; `false`: each has its "
        "own. Not in the paper.",
    )
    single: bool = Field(
        False,
        description="One sequence per micro-batch, nothing is packed: for layers that carry a state from token to "
        "token. Slower. Set by itself for models known to have such layers. Not in the paper.",
    )


ADAM_BETAS = (0.9, 0.95)
"""Decay of AdamW's two moments. Not in the paper."""

ADAM_EPS = 1e-8
"""AdamW's epsilon. Not in the paper."""


class OptimSettings(Settings):
    """The optimiser: AdamW with a constant rate after a warm-up. Only "constant LR" is in the paper (section 6.3)."""

    learning_rate: float = Field(1e-6, gt=0, description="Not in the paper.")
    weight_decay: float = Field(0.0, ge=0, description="Decoupled weight decay. Not in the paper.")
    warmup_steps: int = Field(10, ge=0, description="Steps over which the rate rises linearly. Not in the paper.")
    max_grad_norm: float = Field(1.0, gt=0, description="Gradients are scaled down to this norm. Not in the paper.")

    def learning_rate_at(self, step: int) -> float:
        """Return the learning rate of the optimiser step number ``step``, counted from 0."""
        if step >= self.warmup_steps:
            return self.learning_rate
        return self.learning_rate * (step + 1) / self.warmup_steps


class ComputeSettings(Settings):
    """Where the trainer computes, and in which precision. Weights and optimiser state are always fp32."""

    device: str = Field("cpu", min_length=1, description="`cpu`, or `cuda`: one GPU for each process of torchrun.")
    dtype: Literal["float32", "bfloat16"] = Field(
        "float32",
        description="Type of activations and of the weights that compute; gradients are reduced in fp32. Not in the "
        "paper.",
    )
    head_dtype: HeadDtype = Field(
        "model",
        description="Type in which trainer and generators (`torch`, `vllm`) compute logits: the model's, or `float32`, "
        "as in arXiv 2506.13585. How a server does it: `curation.policies.vllm.serving`. Not in the paper.",
    )
    activation_checkpointing: bool = Field(
        False, description="Keep each layer's input only and compute the rest again in the backward pass."
    )
    cpu_offload: bool = Field(
        False,
        description="Weights, gradients and optimiser lie in the host's memory, and AdamW steps there; a GPU holds "
        "what it computes with. Slower. With several ranks, or bfloat16. Not in the paper.",
    )
    threads: int = Field(1, ge=1, description="Threads of torch on a CPU; set for the whole process.")


class LoraSettings(Settings):
    """Adapters of low rank beside frozen weights, by peft (`pip install 'goldilocks-rl[lora]'`). Not in the paper."""

    rank: int = Field(16, ge=1, description="Width of the two matrices beside each linear layer.")
    alpha: int = Field(32, gt=0, description="What they add is multiplied by alpha / rank.")
    target_modules: tuple[str, ...] = Field(
        (),
        description='Linear layers that get one, as in `["q_proj", "v_proj"]`; all inside the decoder\'s layers where '
        "empty. Experts, routers, embedding and output layer stay frozen.",
    )


class CollectorSettings(Settings):
    """The asynchronous collector (paper, sections 3 and 6.3)."""

    group_size: int = Field(16, ge=2, description="G, rollouts per problem. Not in the paper.")
    n_async: int = Field(4096, ge=1, description="Rollouts generated at once. 4096 in the paper's 3B ablation.")
    n_batch: int = Field(
        2048, ge=1, description="Rollouts between two updates of the generators. 8k, 4k, 2k in the paper."
    )
    n_minibatch: int | None = Field(
        None, ge=1, description="Rollouts per optimiser step; `n_batch`, as in the paper's final runs, where absent."
    )
    queue_size: int | None = Field(
        None,
        ge=0,
        description="Rollouts that may be admitted beyond `n_async` and wait for their group, for a verdict or for the "
        "trainer; then admission stops. `n_async` + 2 `n_batch` where absent. The paper has a limit, not its size.",
    )
    max_staleness: int = Field(
        16,
        ge=0,
        description="A group is trained on at most so many updates after its first rollout was admitted: admission "
        "stops, or a batch waits, but nothing is dropped for its age. A response of k times the mean length takes "
        "k `n_async` / `n_batch` updates; 16 lets those of 8 times the mean end while others go on. Not in the paper.",
    )
    max_failed: MaxFailed = DEFAULT_MAX_FAILED

    @property
    def minibatch_size(self) -> int:
        """Return `n_minibatch`, or its default."""
        return self.n_minibatch if self.n_minibatch is not None else self.n_batch

    @property
    def max_outstanding(self) -> int:
        """Return how many rollouts may be admitted and not yet handed to the trainer or dropped."""
        return self.n_async + (self.queue_size if self.queue_size is not None else self.n_async + 2 * self.n_batch)

    @model_validator(mode="after")
    def _possible(self) -> Self:
        for name, count in (("n_batch", self.n_batch), ("n_minibatch", self.minibatch_size)):
            if count % self.group_size:
                raise ValueError(
                    f"{name} = {count} holds no whole number of groups of {self.group_size}; change one of them"
                )
        if self.n_batch % self.minibatch_size:
            raise ValueError(f"n_minibatch = {self.minibatch_size} does not divide n_batch = {self.n_batch}")
        if self.max_outstanding < self.n_batch:
            raise ValueError(
                f"n_async + queue_size = {self.max_outstanding} can never fill n_batch = {self.n_batch}; "
                "raise `queue_size`"
            )
        return self

    def warnings(self) -> tuple[str, ...]:
        """Return what the paper's ablation (section 6.3) advises against, one sentence each.

        That generators will starve is found by simulation (`training.rollouts.starvation`).
        """
        messages = []
        if self.n_async > 2 * self.n_batch:
            messages.append(
                f"n_async / n_batch = {self.n_async / self.n_batch:.3g} is more than 2: a rollout is made by about so "
                "many policies, and the paper saw training suffer; lower n_async or raise n_batch."
            )
        if self.minibatch_size != self.n_batch:
            messages.append(
                f"n_minibatch = {self.minibatch_size} is not n_batch = {self.n_batch}: the paper kept them equal and "
                "saw more than two minibatches per batch do worse."
            )
        return tuple(messages)


class StatedTrainingCosts(Settings):
    """What a training run is taken to cost (`goldilocks plan --stated`). Every number is its author's assumption."""

    gpus: int = Field(8, ge=1, description="GPUs of the machine; with verl those of each node, where `auto` is said.")
    trainer_gpus: int | None = Field(
        None,
        ge=1,
        description="Those that train; where absent as many as make the run shortest by these figures, and as their "
        "memory is enough for.",
    )
    gpu_gb: float = Field(80.0, gt=0, description="Memory of one GPU, in GB of 10^9 bytes.")
    shape: Literal["embedded", "1.5B", "7B", "24B"] | None = Field(
        None, description="The model's sizes, by name; those of its folder where absent."
    )
    tokens_per_rollout: tuple[float, ...] = Field(
        min_length=1, strict=False, description="Mean tokens of a response, stage by stage."
    )
    sampled_per_trained: tuple[float, ...] = Field(
        min_length=1,
        strict=False,
        description="Rollouts sampled for one that is trained on, stage by stage: groups of equal rewards are dropped.",
    )
    generated_tokens_per_s: tuple[float, ...] = Field(
        min_length=1,
        strict=False,
        description="Tokens per second of one GPU that generates, or of the machine without GPUs, stage by stage.",
    )
    trained_tokens_per_s: tuple[float, ...] = Field(
        min_length=1,
        strict=False,
        description="Tokens per second of one GPU that trains, or of the machine without GPUs, stage by stage.",
    )
    stored_steps: int | None = Field(
        None, ge=0, description="With `[stored]`: steps on stored attempts alone, which its store's size decides."
    )

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.trainer_gpus is not None and self.trainer_gpus >= self.gpus:
            raise ValueError(
                f"trainer_gpus = {self.trainer_gpus} of gpus = {self.gpus} leaves none to generate; lower it, or leave "
                "it out"
            )
        speeds = {"tokens_per_rollout": self.tokens_per_rollout, "sampled_per_trained": self.sampled_per_trained}
        speeds |= {"generated_tokens_per_s": self.generated_tokens_per_s}
        speeds |= {"trained_tokens_per_s": self.trained_tokens_per_s}
        for name, values in speeds.items():
            least = 1.0 if name == "sampled_per_trained" else 0.0
            if any(value < least or value == 0 for value in values):
                raise ValueError(f"{name} = {list(values)}: give numbers above 0, and of sampled_per_trained from 1")
        return self
