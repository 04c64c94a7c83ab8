"""Weights over ranks with FSDP2: the policy in training and the frozen reference are sharded by the same rule.

Not here: the processes themselves (`training.optimisation.distributed`).
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from training.optimisation.distributed import DistributedContext
from training.optimisation.logprobs import PackedPolicy
from training.optimisation.text_part import decoder_of


def shard(
    policy: PackedPolicy,
    ranks: DistributedContext,
    dtype: torch.dtype,
    *,
    keep_ends: bool = True,
    received: bool = False,
) -> None:
    """Shard each layer, and the policy as root, with FSDP2; fp32 weights, computing in ``dtype``.

    Over all ranks, or with `compute.replicas` over those of a group. ``keep_ends``: embedding and output layer stay
    gathered after the forward pass, for the backward pass. ``received``: rank 0 alone has the weights, and the others
    get them layer by layer, so that none of them ever holds more than a layer, or embedding and output layer, in whole.
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy, fully_shard

    if ranks.replicas > 1:
        shape = (ranks.replicas, ranks.world_size // ranks.replicas)
        mesh = init_device_mesh(ranks.device.type, shape, mesh_dim_names=("replicas", "shards"))
    else:
        mesh = init_device_mesh(ranks.device.type, (ranks.world_size,))
    precision = MixedPrecisionPolicy(param_dtype=dtype, reduce_dtype=torch.float32)
    pinned = ranks.device.type == "cuda"
    offload = CPUOffloadPolicy(pin_memory=pinned) if ranks.cpu_offload else OffloadPolicy()
    options: dict[str, Any] = {"mesh": mesh, "mp_policy": precision, "offload_policy": offload}
    causal: Any = policy.model
    received &= ranks.world_size > 1
    for layer in decoder_of(causal).layers:
        if received:
            _receive(layer, ranks)
        fully_shard(layer, **options)
    if received:
        _receive(policy, ranks)
    fully_shard(policy, **options, reshard_after_forward=None if keep_ends else True)


def _receive(module: nn.Module, ranks: DistributedContext) -> None:
    """Give all ranks rank 0's parameters and buffers of a module, except those that are sharded already.

    Tied parameters stay tied. All ranks call it for the same module at the same time.
    """
    given: dict[int, tuple[Tensor, Tensor]] = {}  # by identity, which lasts while the tensor does
    for part in module.modules():
        tables: tuple[dict[str, Any], ...] = (part._parameters, part._buffers)
        for tensors in tables:
            for name, value in tensors.items():
                if value is None or isinstance(value, DTensor):
                    continue
                if id(value) not in given:
                    given[id(value)] = value, _received(value, ranks)
                tensors[name] = given[id(value)][1]


def _received(value: Tensor, ranks: DistributedContext) -> Tensor:
    """Return rank 0's tensor, on the host; there it is ``value`` itself."""
    if ranks.is_rank_zero:
        dist.broadcast(value.detach().contiguous(), src=0)
        return value
    own = torch.empty(value.shape, dtype=value.dtype)
    dist.broadcast(own, src=0)
    return nn.Parameter(own, requires_grad=value.requires_grad) if isinstance(value, nn.Parameter) else own
