"""Shard a policy over ranks with FSDP2, sending rank 0's weights a module at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from training.optimisation.distributed import DistributedContext
from training.optimisation.logprobs import PackedPolicy


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
    for layer in causal.get_decoder().layers:
        if receiver is not None:
            receiver.receive(layer)
        fully_shard(layer, **options)
    if receiver is not None:
        receiver.receive(policy)
    fully_shard(policy, **options, reshard_after_forward=None if keep_ends else True)


class WeightReceiver:
    """Sends rank 0's tensors to the others, which are on ``meta``; all ranks call it together."""

    def __init__(self, root: nn.Module, ranks: DistributedContext) -> None:
        self._ranks = ranks
        self._names = {id(module): name for name, module in root.named_modules()}
        numbers: dict[int, int] = {}
        own = {
            name: (numbers.setdefault(id(holder[key]), len(numbers)), holder[key].dtype)
            for name, holder, key in _places(root)
        }
        message: list[Any] = [own if ranks.is_rank_zero else None]
        dist.broadcast_object_list(message, src=0)
        self._announced: dict[str, tuple[int, torch.dtype]] = message[0]  # tied tensors share a number

    def receive(self, module: nn.Module) -> None:
        """Send a module's unsharded tensors from rank 0, still tied."""
        given: dict[int, Tensor] = {}
        for name, holder, key in _places(module, self._names[id(module)]):
            if isinstance(holder[key], DTensor):
                continue
            number, dtype = self._announced[name]
            if number not in given:
                given[number] = self._sent(holder[key], dtype)
            holder[key] = given[number]

    def _sent(self, value: Tensor, dtype: torch.dtype) -> Tensor:
        if self._ranks.is_rank_zero:
            value.data = value.detach().to(self._ranks.device).contiguous()
        else:
            own = torch.empty(value.shape, dtype=dtype, device=self._ranks.device)
            value = nn.Parameter(own, value.requires_grad) if isinstance(value, nn.Parameter) else own
        dist.broadcast(value.detach(), src=0)
        return value


def _places(root: nn.Module, prefix: str = "") -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield each tensor's name, holder and key, plain attributes included."""
    for module_name, module in root.named_modules(prefix=prefix):
        for holder in (module._parameters, module._buffers, vars(module)):
            for key in [key for key, value in holder.items() if isinstance(value, Tensor)]:
                yield f"{module_name}.{key}", holder, key
