"""Compute log-probabilities of responses, by the policy in training and by frozen ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor import DTensor

from curation.policies.checkpoints import folder_revision
from curation.records import ConfigError
from training.config import PackingSettings
from training.optimisation.attention import packing_for
from training.optimisation.distributed import DistributedContext, RankTask
from training.optimisation.logprobs import PackedPolicy
from training.optimisation.model import load_model, load_tokenizer
from training.optimisation.packing import Collation, MicroBatch, TrainingSample
from training.optimisation.sharding import shard
from training.recipe import TrainRecipe

_FLIPPED = 53
"""Every 53rd column is flipped."""


class PolicyScorer:
    """Scores responses without gradient; rank 0 calls it, other ranks run its `tasks`."""

    def __init__(
        self, policy: PackedPolicy, ranks: DistributedContext, packing: PackingSettings, name: str = "policy"
    ) -> None:
        self.packing = packing
        self._policy, self._ranks, self._name = policy, ranks, name
        self.tasks: Mapping[str, RankTask] = {
            f"{name}_logprobs": self._logprobs,
            f"{name}_flip_weights": self._flip_weights,
        }

    def logprobs(
        self, samples: Sequence[TrainingSample], *, packing: PackingSettings | None = None, plain: bool = False
    ) -> list[Tensor]:
        """Return [response] fp32 log-probabilities of each sample; ``plain``: alone, by transformers' forward pass."""
        settings = packing or self.packing
        room = max([settings.micro_batch_tokens, *(sample.length for sample in samples)])
        changes = {"micro_batch_tokens": room, "single": settings.single or plain}
        settings = settings.model_copy(update=changes)
        collation = Collation(samples, settings, self._ranks.world_size)
        task = f"{self._name}_logprobs"
        logprobs: dict[int, Tensor] = self._ranks.run_on_all_ranks(task, self.tasks, collation, plain)
        return [logprobs[index] for index in range(len(samples))]

    def flip_weights(self) -> None:
        """Flip the sign of some columns of every weight; a second call restores them."""
        self._ranks.run_on_all_ranks(f"{self._name}_flip_weights", self.tasks, None, None)

    @torch.no_grad()
    def _logprobs(self, shares: Iterator[MicroBatch], plain: bool) -> dict[int, Tensor]:
        logprobs: dict[int, Tensor] = {}
        try:
            for share in shares:
                values = self._policy(share.to(self._ranks.device), plain=plain).logprobs.cpu()
                own = values.split(share.sequence_index.bincount().tolist())  # cloned, as a slice is sent as the whole
                logprobs |= {index: row.clone() for index, row in zip(share.sample_indices, own, strict=False)}
        finally:
            if isinstance(self._policy, FSDPModule):  # else it keeps gathered weights for a backward pass
                self._policy.reshard()
        return {index: row for rows in self._ranks.gather(logprobs) for index, row in rows.items()}

    @torch.no_grad()
    def _flip_weights(self, _: None, __: None) -> None:
        for number, parameter in enumerate(self._policy.parameters()):
            own = parameter.to_local() if isinstance(parameter, DTensor) else parameter
            if own.numel() and own.ndim:
                step = min(_FLIPPED, own.shape[-1])
                own[..., number % step :: step].neg_()


class ReferencePolicy:
    """A frozen reference or teacher on every rank."""

    def __init__(
        self,
        folder: Path,
        recipe: TrainRecipe,
        ranks: DistributedContext,
        vocabulary: int | None,
        name: str = "reference",
    ) -> None:
        model = load_model(folder, dtype=recipe.compute.dtype, device=ranks.loading_device).requires_grad_(False)
        config: Any = model.config
        if vocabulary is not None and config.vocab_size != vocabulary:
            raise ConfigError(
                f"reference: the model in {folder} has {config.vocab_size} tokens, the policy {vocabulary}; "
                "take one of the policy's family, or leave `reference` out"
            )
        self.revision = folder_revision(folder) if ranks.is_rank_zero else ""
        packing, _ = packing_for(model, recipe.packing)
        self.policy = PackedPolicy(model, recipe.temperature)
        self.scorer = PolicyScorer(self.policy, ranks, packing, name)
        if ranks.sharded:
            shard(self.policy, ranks, getattr(torch, recipe.compute.dtype), keep_ends=False, received=True)


def with_teacher_scores(samples: Sequence[TrainingSample], teacher: PolicyScorer) -> list[TrainingSample]:
    """Return the samples, with the teacher's log-probabilities if they have its prompt."""
    made = list(samples)
    asked = [index for index, sample in enumerate(samples) if sample.teacher_prompt_ids is not None]
    posed = [replace(samples[index], prompt_ids=samples[index].teacher_prompt_ids or ()) for index in asked]
    for index, scores in zip(asked, teacher.logprobs(posed) if posed else (), strict=True):
        made[index] = replace(samples[index], teacher_logprobs=scores.tolist())
    return made


def require_same_tokens(teacher: Path, student: Path) -> None:
    """Raise ConfigError if the vocabularies differ."""
    own, other = load_tokenizer(student), load_tokenizer(teacher)
    if own.get_vocab() != other.get_vocab():
        raise ConfigError(
            f"teacher: the tokenizer in {teacher} has other tokens than that in {student}, so it cannot score the "
            "student's tokens; take a teacher of the same family"
        )
