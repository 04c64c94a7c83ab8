"""Compute log-probabilities of given responses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor import DTensor

from training.config import PackingSettings
from training.optimisation.distributed import DistributedContext, RankTask
from training.optimisation.logprobs import PackedPolicy
from training.optimisation.look_ahead import Arrivals, Collation
from training.optimisation.packing import MicroBatch, TrainingSample

_FLIPPED = 53
"""Every 53rd column is flipped; a prime varies it between rows."""


class PolicyScorer:
    """Scores responses without gradient; every rank has one, rank 0 calls, the others run its `tasks`."""

    def __init__(
        self,
        policy: PackedPolicy,
        ranks: DistributedContext,
        packing: PackingSettings,
        temperature: float,
        name: str = "policy",
    ) -> None:
        self.packing, self.temperature = packing, temperature
        self._policy, self._ranks, self._name = policy, ranks, name
        self.tasks: Mapping[str, RankTask] = {
            f"{name}_logprobs": self._logprobs,
            f"{name}_flip_weights": self._flip_weights,
        }

    def logprobs(
        self,
        samples: Sequence[TrainingSample],
        *,
        packing: PackingSettings | None = None,
        temperature: float | None = None,
        plain: bool = False,
    ) -> list[Tensor]:
        """Return [response] fp32 log-probabilities of each sample; ``plain`` scores each alone by transformers' own
        forward pass.
        """
        settings = packing or self.packing
        room = max([settings.micro_batch_tokens, *(sample.length for sample in samples)])
        changes = {"micro_batch_tokens": room, "single": settings.single or plain}
        settings = settings.model_copy(update=changes)
        collation = Collation(samples, settings, self._ranks.world_size)
        value = (self.temperature if temperature is None else temperature, plain)
        task = f"{self._name}_logprobs"
        logprobs: dict[int, Tensor] = self._ranks.run_on_all_ranks(task, self.tasks, collation, value)
        return [logprobs[index] for index in range(len(samples))]

    def flip_weights(self) -> None:
        """Flip the sign of some columns of every weight; a second call restores every bit."""
        self._ranks.run_on_all_ranks(f"{self._name}_flip_weights", self.tasks, None, None)

    @torch.no_grad()
    def _logprobs(self, shares: Iterator[MicroBatch], value: tuple[float, bool]) -> dict[int, Tensor]:
        temperature, plain = value
        before, self._policy.temperature = self._policy.temperature, temperature
        logprobs: dict[int, Tensor] = {}
        try:
            for part in Arrivals(shares, self._ranks.device):
                values = self._policy(part, plain=plain).logprobs.cpu()
                for place, index in enumerate(part.sample_indices):
                    logprobs[index] = values[part.sequence_index == place]
        finally:
            self._policy.temperature = before
            if isinstance(self._policy, FSDPModule):  # it keeps what it gathered for a backward pass, which never comes
                self._policy.reshard()
        return {index: values for part in self._ranks.gather(logprobs) for index, values in part.items()}

    @torch.no_grad()
    def _flip_weights(self, _: None, __: None) -> None:
        for number, parameter in enumerate(self._policy.parameters()):
            own = parameter.to_local() if isinstance(parameter, DTensor) else parameter
            if own.numel() and own.ndim:
                step = min(_FLIPPED, own.shape[-1])
                own[..., number % step :: step].neg_()
