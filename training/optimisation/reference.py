"""Score with frozen policies, a reference or a teacher, by the policy's own code.

Invariant: a resumed run has the same ones (`ReferencePolicy.revision`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from curation.policies.checkpoints import folder_revision
from curation.records import ConfigError
from training.optimisation.distributed import DistributedContext
from training.optimisation.logprobs import PackedPolicy
from training.optimisation.model import load_model, load_tokenizer
from training.optimisation.packing import MicroBatch, TrainingSample
from training.optimisation.scoring import PolicyScorer
from training.optimisation.sharding import shard
from training.recipe import TrainRecipe


class ReferencePolicy:
    """A frozen model on every rank.

    Raises:
        PolicyError: there is no model in the folder.
        ConfigError: its size of vocabulary differs from ``vocabulary``, if given.
    """

    def __init__(self, folder: Path, recipe: TrainRecipe, ranks: DistributedContext, vocabulary: int | None) -> None:
        model = load_model(folder, dtype=recipe.compute.dtype, device=ranks.loading_device).requires_grad_(False)
        config: Any = model.config
        if vocabulary is not None and config.vocab_size != vocabulary:
            raise ConfigError(
                f"reference: the model in {folder} has {config.vocab_size} tokens, the policy {vocabulary}; "
                "take one of the policy's family, or leave `reference` out"
            )
        self.revision = folder_revision(folder) if ranks.is_rank_zero else ""
        self.policy = PackedPolicy(model, recipe.temperature)
        if ranks.sharded:
            shard(self.policy, ranks, getattr(torch, recipe.compute.dtype), keep_ends=False, received=True)

    @torch.no_grad()
    def logprobs(self, micro_batch: MicroBatch) -> Tensor:
        """Return [targets] fp32 log-probabilities; all ranks call it together."""
        scored: Tensor = self.policy(micro_batch).logprobs
        return scored


def with_teacher_scores(samples: Sequence[TrainingSample], teacher: PolicyScorer) -> list[TrainingSample]:
    """Return the samples, with the teacher's log-probabilities for those with a teacher's prompt."""
    made = list(samples)
    asked = [place for place, one in enumerate(samples) if one.teacher_prompt_ids is not None]
    posed = [replace(samples[place], prompt_ids=samples[place].teacher_prompt_ids or ()) for place in asked]
    for place, scores in zip(asked, teacher.logprobs(posed) if posed else (), strict=True):
        made[place] = replace(samples[place], teacher_logprobs=scores.tolist())
    return made


def require_same_tokens(teacher: Path, student: Path) -> None:
    """Refuse a teacher with other tokens than the student's.

    Raises:
        ConfigError: the tokenizers differ.
    """
    own, other = load_tokenizer(student), load_tokenizer(teacher)
    if own.get_vocab() != other.get_vocab():
        raise ConfigError(
            f"teacher: the tokenizer in {teacher} has other tokens than that in {student}, so it cannot score the "
            "student's tokens; take a teacher of the same family"
        )
