"""Shard a policy over ranks with FSDP2."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
        received: only rank 0 has the weights, and sends them layer by layer.
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    mesh = init_device_mesh(ranks.device.type, (ranks.world_size,))
    precision = MixedPrecisionPolicy(param_dtype=dtype, reduce_dtype=torch.float32)
    options: dict[str, Any] = {"mesh": mesh, "mp_policy": precision}
    causal: Any = policy.model
    receive = _receiver(policy, ranks) if received and ranks.world_size > 1 else lambda _: None
    for layer in causal.get_decoder().layers:
        receive(layer)
        fully_shard(layer, **options)
    receive(policy)
    fully_shard(policy, **options, reshard_after_forward=None if keep_ends else True)


def _receiver(root: nn.Module, ranks: DistributedContext) -> Callable[[nn.Module], None]:
    """Return a function of all ranks that sends a module's tensors from rank 0 to ``meta`` ones, still tied."""
    names = {id(module): name for name, module in root.named_modules()}
    numbers: dict[int, int] = {}  # tied tensors share one
    own = {
        name: (numbers.setdefault(id(holder[key]), len(numbers)), holder[key].dtype)
        for name, holder, key in _tensor_slots(root)
    }
    message: list[Any] = [own if ranks.is_rank_zero else None]
    dist.broadcast_object_list(message, src=0)

    def receive(module: nn.Module) -> None:
        sent: dict[int, Tensor] = {}
        for name, holder, key in _tensor_slots(module, names[id(module)]):
            if isinstance(value := holder[key], DTensor):
                continue
            number, dtype = message[0][name]
            if number not in sent:
                if ranks.is_rank_zero:
                    value.data = value.detach().to(ranks.device).contiguous()
                else:
                    empty = torch.empty(value.shape, dtype=dtype, device=ranks.device)
                    value = nn.Parameter(empty, value.requires_grad) if isinstance(value, nn.Parameter) else empty
                dist.broadcast(value.detach(), src=0)
                sent[number] = value
            holder[key] = sent[number]

    return receive


def _tensor_slots(root: nn.Module, prefix: str = "") -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield each tensor's name, holder and key, plain attributes included."""
    for module_name, module in root.named_modules(prefix=prefix):
        for holder in (module._parameters, module._buffers, vars(module)):
            for key in [key for key, value in holder.items() if isinstance(value, Tensor)]:
                yield f"{module_name}.{key}", holder, key
