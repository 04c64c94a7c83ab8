"""Gather the whole tensors of a model in training.

Invariant: all ranks gather the same tensors in the same order.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor

from training.optimisation.checkpoint_names import to_checkpoint_names
from training.optimisation.distributed import DistributedContext
from training.optimisation.lora import Adapters, is_adapter, plain_name

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def plain_state(
    model: PreTrainedModel, adapters: Adapters | None, ranks: DistributedContext, dtype: torch.dtype
) -> dict[str, Tensor]:
    """Return on rank 0 the state dict with adapters merged in fp32, under its names on disk.

    Sharded weights are copied in ``dtype``, with several ranks to the host; others may be the tensors in training.
    """
    own = model.state_dict()
    state: dict[str, Tensor] = {}
    first = {id(value): name for name, value in model.named_parameters()}
    tied = {name: first[id(value)] for name, value in model.named_parameters(remove_duplicate=False)}
    for name in own:
        if is_adapter(name):
            continue
        if ranks.sharded and tied.get(name, name) != name:  # gathered already
            if ranks.is_rank_zero:
                state[plain_name(name)] = state[plain_name(tied[name])]
            continue
        full = adapters.merged(name, own, _whole) if adapters is not None else _whole(own[name])
        if not ranks.sharded:
            state[plain_name(name)] = full.detach()
        elif ranks.is_rank_zero:
            kept = full.detach().to(dtype if full.is_floating_point() else full.dtype, copy=True)
            state[plain_name(name)] = kept.cpu() if ranks.world_size > 1 else kept
    return to_checkpoint_names(model, state) if ranks.is_rank_zero else state


def adapter_state(model: PreTrainedModel) -> dict[str, Tensor]:
    """Return host copies of the adapters' whole tensors, in fp32."""
    own = model.state_dict()
    return {name: _whole(value).detach().to("cpu", copy=True) for name, value in own.items() if is_adapter(name)}


def _whole(value: Tensor) -> Tensor:
    """Return the tensor that this one is a shard of; all ranks take part."""
    full: Tensor = value.full_tensor() if isinstance(value, DTensor) else value
    return full


def ignore_saving_alone() -> None:
    """Silence torch's warning about saving without process groups, on all threads."""
    warnings.filterwarnings("ignore", message="torch.distributed is disabled")
