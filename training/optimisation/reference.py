"""The reference policy of an objective that needs one: log-probabilities of the tokens that are trained on.

It scores the same packed micro-batches with the same code (`PackedPolicy`), at the sampler's temperature, without
gradient: its logits exist in chunks only, and it keeps no activations. Over several ranks its weights are sharded as
the policy's are, in the computing type; a layer is gathered while it computes and let go after.

It is frozen, or with ``ema`` follows the policy: after every optimiser step its weights are ema · its own and
(1 - ema) · the policy's, in fp32, and every checkpoint holds them.

Invariants: frozen weights never change; a run that is resumed has the same reference (`ReferencePolicy.revision`, held
in every checkpoint). Before the first step of a run whose reference is its initial model, both give exactly the same.

Where the objective needs none (`training.objectives.base.ObjectiveNeeds`), as in the paper, there is no such model, and
nothing here is called. Not here: what an objective makes of it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from curation.policies.checkpoints import folder_revision
from curation.records import ConfigError
from training.optimisation.distributed import DistributedContext
from training.optimisation.logprobs import PackedPolicy
from training.optimisation.model import load_model, require_model
from training.optimisation.packing import MicroBatch
from training.optimisation.sharding import shard
from training.recipe import TrainRecipe


class ReferencePolicy:
    """A frozen model, or a mean of the policy's past, on every rank.

    Args:
        folder: where it is.
        recipe: temperature, packing, precision.
        ranks: the processes over which it is sharded.
        vocabulary: tokens that the policy knows; the reference must know the same. None: a teacher's, whose
            tokenizer was compared.
        ema: how much of itself it keeps after a step; None: all, for ever.

    Raises:
        PolicyError: there is no model in the folder.
        ConfigError: it has another vocabulary.
    """

    def __init__(
        self,
        folder: Path,
        recipe: TrainRecipe,
        ranks: DistributedContext,
        vocabulary: int | None,
        ema: float | None = None,
    ) -> None:
        require_model(folder)
        dtype = recipe.compute.dtype if ema is None else "float32"  # a small step is lost in bf16
        model = load_model(folder, dtype=dtype, device=ranks.loading_device).requires_grad_(False)
        config: Any = model.config
        if vocabulary is not None and config.vocab_size != vocabulary:
            raise ConfigError(
                f"reference: the model in {folder} has {config.vocab_size} tokens, the policy {vocabulary}; "
                "take one of the policy's family, or leave `reference` out"
            )
        self.revision = folder_revision(folder) if ranks.is_rank_zero else ""
        self.ema = ema
        self.policy = PackedPolicy(model, recipe.temperature)
        if ranks.sharded:
            shard(self.policy, ranks, getattr(torch, recipe.compute.dtype), keep_ends=False, received=True)

    @torch.no_grad()
    def follow(self, policy: torch.nn.Module) -> None:
        """Take a step towards the policy; all ranks call it together, after the optimiser's."""
        if self.ema is None:
            return
        own = dict(self.policy.named_parameters())
        for name, value in policy.named_parameters():
            own[name].lerp_(value.detach(), 1 - self.ema)

    @torch.no_grad()
    def logprobs(self, micro_batch: MicroBatch) -> Tensor:
        """Return [targets] fp32 log-probabilities of the micro-batch's targets; all ranks call it together."""
        scored: Tensor = self.policy(micro_batch).logprobs
        return scored
