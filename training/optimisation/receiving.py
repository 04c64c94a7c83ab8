"""Send rank 0's weights to all ranks, a module at a time, while a model is sharded.

Invariants: all ranks take part in rank 0's order; different models fail before the first tensor is sent.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from curation.records import PolicyError
from training.optimisation.distributed import DistributedContext


@dataclass(frozen=True, slots=True)
class _Announced:
    """A tensor of rank 0's; tied tensors share a ``number``."""

    number: int
    shape: tuple[int, ...]
    dtype: torch.dtype
    parameter: bool
    trained: bool


class WeightReceiver:
    """Sends rank 0's tensors to all ranks; all ranks create one together.

    Args:
        root: the whole model, on ``meta`` except on rank 0.

    Raises:
        PolicyError: this rank's model has other tensors.
    """

    def __init__(self, root: nn.Module, ranks: DistributedContext) -> None:
        self._ranks = ranks
        self._names = {id(module): name for name, module in root.named_modules()}
        message: list[Any] = [_announcement(root) if ranks.is_rank_zero else None]
        dist.broadcast_object_list(message, src=0)
        self._announced: dict[str, _Announced] = message[0]
        own = {name: tuple(holder[key].shape) for name, holder, key in _places(root)}
        wanted = {name: one.shape for name, one in self._announced.items()}
        if own != wanted:
            different = min(name for name in own.keys() | wanted.keys() if own.get(name) != wanted.get(name))
            raise PolicyError(
                f"rank {ranks.rank} builds another model than rank 0 has read: {different} is of shape "
                f"{wanted.get(different)} there and {own.get(different)} here (None: it is not there); every machine "
                "needs the same model folder and the same version of transformers"
            )

    def receive(self, module: nn.Module) -> None:
        """Send a module's unsharded tensors from rank 0, still tied; all ranks call it together."""
        given: dict[int, Tensor] = {}
        for name, holder, key in _places(module, self._names[id(module)]):
            if isinstance(holder[key], DTensor):
                continue
            one = self._announced[name]
            if one.number not in given:
                given[one.number] = self._travelled(holder[key], one)
            holder[key] = given[one.number]

    def _travelled(self, value: Tensor, announced: _Announced) -> Tensor:
        """Return rank 0's tensor on the computing device."""
        if self._ranks.is_rank_zero:
            value.data = value.detach().to(self._ranks.device).contiguous()
            dist.broadcast(value.detach(), src=0)
            return value
        own = torch.empty(announced.shape, dtype=announced.dtype, device=self._ranks.device)
        dist.broadcast(own, src=0)
        return nn.Parameter(own, requires_grad=announced.trained) if announced.parameter else own


def _announcement(root: nn.Module) -> dict[str, _Announced]:
    numbers: dict[int, int] = {}
    return {
        name: _Announced(
            numbers.setdefault(id(value), len(numbers)),
            tuple(value.shape),
            value.dtype,
            isinstance(value, nn.Parameter),
            value.requires_grad,
        )
        for name, holder, key in _places(root)
        for value in (holder[key],)
    }


def _places(root: nn.Module, prefix: str = "") -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield the name, holding dictionary and key of each tensor, plain attributes included."""
    for module_name, module in root.named_modules(prefix=prefix):
        for holder in (module._parameters, module._buffers, vars(module)):
            for key in [key for key, value in holder.items() if isinstance(value, Tensor)]:
                yield f"{module_name}.{key}", holder, key
