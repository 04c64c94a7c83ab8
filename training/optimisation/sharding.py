"""Shard a policy over ranks with FSDP2."""

from __future__ import annotations

from typing import Any

import torch

from training.optimisation.distributed import DistributedContext
from training.optimisation.logprobs import PackedPolicy
from training.optimisation.receiving import WeightReceiver
from training.optimisation.text_part import decoder_of


def shard(
    policy: PackedPolicy,
    ranks: DistributedContext,
    dtype: torch.dtype,
    *,
    keep_ends: bool = True,
    received: bool = False,
) -> None:
    """Shard each layer, and the policy as root, to compute in ``dtype``.

    Args:
        keep_ends: keep embedding and output layer gathered for the backward pass.
        received: only rank 0 has the weights; the others get them layer by layer.
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    mesh = init_device_mesh(ranks.device.type, (ranks.world_size,))
    precision = MixedPrecisionPolicy(param_dtype=dtype, reduce_dtype=torch.float32)
    options: dict[str, Any] = {"mesh": mesh, "mp_policy": precision}
    causal: Any = policy.model
    receiver = WeightReceiver(policy, ranks) if received and ranks.world_size > 1 else None
    for layer in decoder_of(causal).layers:
        if receiver is not None:
            receiver.receive(layer)
        fully_shard(layer, **options)
    if receiver is not None:
        receiver.receive(policy)
    fully_shard(policy, **options, reshard_after_forward=None if keep_ends else True)
