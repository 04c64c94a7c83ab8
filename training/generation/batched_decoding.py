"""Decode requests in batches.

Invariants:

- log-probabilities are of the sampling distribution, 0.0 at temperature 0;
- other requests change a request's tokens by rounding only;
- weights change between two steps; cached keys stay (paper, section 2.3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from curation.records import PolicyError
from training.generation.forward import ForwardPass, forward_pass_for
from training.optimisation.model import to_model_names

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@dataclass(slots=True, eq=False)
class DecodingRequest:
    """A generation, running until it has a ``finish``."""

    prompt_ids: tuple[int, ...]
    max_tokens: int
    rng: Random
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)
    finish: str | None = None
    limit: int = 0


class DecodingEngine:
    """A model, its cache and its running requests; not thread-safe."""

    def __init__(
        self,
        model: PreTrainedModel,
        stop_token_ids: Sequence[int],
        *,
        slots: int,
        temperature: float,
        top_p: float,
    ) -> None:
        self.model = model
        self.max_positions = int(model.config.max_position_embeddings)
        self.version = 0
        self.active: list[DecodingRequest] = []
        self._stop_token_ids, self._slots = frozenset(stop_token_ids), slots
        self._temperature, self._top_p = temperature, top_p
        cached_prompts = max(slots // 8, 1)
        self._forward_pass = forward_pass_for(model, slots + cached_prompts)
        self._prompt_cache = _PromptCache(self._forward_pass, slots, cached_prompts)
        self._positions = torch.zeros(slots, dtype=torch.long, device=model.device)
        self._last = torch.zeros(slots, dtype=torch.long, device=model.device)

    def step(
        self, new_requests: Sequence[DecodingRequest] = (), aborted_requests: Sequence[DecodingRequest] = ()
    ) -> list[DecodingRequest]:
        """Decode one token for each request; return the finished ones.

        Raises:
            ValueError: there are more requests than slots.
        """
        if len(self.active) - len(aborted_requests) + len(new_requests) > self._slots:
            raise ValueError(f"{len(new_requests)} requests join, but there are only {self._slots} slots")
        with torch.inference_mode():
            self._release_rows(aborted_requests)
            logits = [self._decode()] if self.active else []
            if new_requests:
                logits.append(self._prefill(new_requests))
            if not logits:
                return []
            finished = self._record_tokens(*self._sample_tokens(torch.cat(logits), self.active))
            self._release_rows(finished)
        return finished

    def load(self, state: Mapping[str, Tensor], version: int | None = None) -> None:
        """Replace the weights by ``state``, under the checkpoint's names.

        Raises:
            PolicyError: names or shapes are not the model's.
        """
        own, state = dict(self.model.named_parameters()), to_model_names(self.model, state)
        unknown = sorted(set(state) - set(self.model.state_dict()))
        missing = sorted(set(own) - set(state))
        misshapen = sorted(name for name in own.keys() & state.keys() if own[name].shape != state[name].shape)
        if unknown or missing or misshapen:
            raise PolicyError(
                f"these weights do not fit the model: unknown {unknown[:3]}, missing {missing[:3]}, of another shape "
                f"{misshapen[:3]}; give weights of the same architecture"
            )
        self._prompt_cache.clear()
        with torch.no_grad():
            for name, parameter in own.items():
                parameter.copy_(state[name])
        self.version = self.version + 1 if version is None else version

    def _decode(self) -> Tensor:
        rows = len(self.active)
        logits = self._forward_pass.decode(self._last[:rows], self._positions[:rows])
        self._positions[:rows] += 1
        return logits

    def _prefill(self, joining: Sequence[DecodingRequest]) -> Tensor:
        start = len(self.active)
        logits: dict[int, Tensor] = {}
        groups: dict[tuple[int, ...], list[int]] = {}
        for index, request in enumerate(joining):
            request.limit = min(request.max_tokens, self.max_positions - len(request.prompt_ids))
            groups.setdefault(request.prompt_ids, []).append(index)
        unique_prompts = list(groups)
        for first in range(0, len(unique_prompts), self._prompt_cache.size):
            prompts = unique_prompts[first : first + self._prompt_cache.size]
            cached = self._prompt_cache.rows_and_logits(prompts, self.model.device)
            copies = [(index, *cached[prompt]) for prompt in prompts for index in groups[prompt]]
            logits |= {index: own for index, _, own in copies}
            targets = [start + index for index, _, _ in copies]
            self._forward_pass.copy_rows([row for _, row, _ in copies], targets, max(map(len, prompts)))
        self.active.extend(joining)
        self._positions[start : len(self.active)] = torch.tensor([len(request.prompt_ids) for request in joining])
        return torch.stack([logits[index] for index in range(len(joining))])

    def _sample_tokens(self, logits: Tensor, requests: Sequence[DecodingRequest]) -> tuple[Tensor, Tensor]:
        if self._temperature == 0:
            return logits.argmax(-1), torch.zeros(len(requests))
        logprobs = sampling_logprobs(logits, self._temperature, self._top_p)
        points = torch.tensor([request.rng.random() for request in requests], device=logits.device)
        running = logprobs.exp().cumsum(-1)
        tokens = torch.searchsorted(running, points[:, None] * running[:, -1:], right=True)
        tokens = tokens.clamp(max=logits.shape[-1] - 1)
        return tokens[:, 0], logprobs.gather(-1, tokens)[:, 0]

    def _record_tokens(self, tokens: Tensor, logprobs: Tensor) -> list[DecodingRequest]:
        self._last[: len(self.active)] = tokens
        for request, token, logprob in zip(self.active, tokens.tolist(), logprobs.tolist(), strict=True):
            request.token_ids.append(token)
            request.logprobs.append(logprob)
            request.versions.append(self.version)
            if token in self._stop_token_ids:
                request.finish = "stop"
            elif len(request.token_ids) >= request.limit:
                request.finish = "length"
        return [request for request in self.active if request.finish is not None]

    def _release_rows(self, requests: Sequence[DecodingRequest]) -> None:
        """Free rows; the others stay contiguous."""
        if not requests:
            return
        released = set(requests)
        remaining = len(self.active) - len(released)
        free = [row for row, request in enumerate(self.active[:remaining]) if request in released]
        tail = [row for row in range(remaining, len(self.active)) if self.active[row] not in released]
        if free:
            length = int(self._positions[tail].max())
            self._forward_pass.copy_rows(tail, free, length)
            self._positions[free], self._last[free] = self._positions[tail], self._last[tail]
            for row, source in zip(free, tail, strict=True):
                self.active[row] = self.active[source]
        del self.active[remaining:]
        if not self.active:
            self._prompt_cache.clear()


class _PromptCache:
    """Recent prompts; cleared when weights change or nothing runs, so synchronous waves are repeatable."""

    def __init__(self, forward_pass: ForwardPass, first: int, size: int) -> None:
        self._forward_pass, self._all_rows, self.size = forward_pass, range(first, first + size), size
        self._cached: dict[tuple[int, ...], tuple[int, Tensor]] = {}  # the most recently used last

    def clear(self) -> None:
        self._cached.clear()

    def rows_and_logits(
        self, prompts: Sequence[tuple[int, ...]], device: torch.device
    ) -> Mapping[tuple[int, ...], tuple[int, Tensor]]:
        """Return rows and last logits of at most ``size`` prompts."""
        known = {prompt: self._cached.pop(prompt) for prompt in prompts if prompt in self._cached}
        new = [prompt for prompt in prompts if prompt not in known]
        self._cached |= known
        if new:
            free = sorted(set(self._all_rows) - {row for row, _ in self._cached.values()})
            while len(free) < len(new):
                free.append(self._cached.pop(next(iter(self._cached)))[0])
            lengths = torch.tensor([len(prompt) for prompt in new])
            ids = torch.zeros(len(new), int(lengths.max()), dtype=torch.long)
            for i, prompt in enumerate(new):
                ids[i, : len(prompt)] = torch.tensor(prompt)
            rows = free[: len(new)]
            logits = self._forward_pass.prefill(ids.to(device), lengths.to(device), torch.tensor(rows, device=device))
            self._cached |= zip(new, zip(rows, logits.unbind(), strict=True), strict=True)
        return self._cached


def sampling_logprobs(logits: Tensor, temperature: float, top_p: float) -> Tensor:
    """Return [request, vocabulary] log-probabilities of sampling; -inf beyond ``top_p``."""
    logprobs = torch.log_softmax(logits.float() / temperature, -1)
    if top_p >= 1:
        return logprobs
    ordered, order = logprobs.sort(-1, descending=True)
    before = ordered.exp().cumsum(-1) - ordered.exp()
    cut = torch.zeros_like(before, dtype=torch.bool).scatter(-1, order, before >= top_p)
    return torch.log_softmax(logprobs.masked_fill(cut, float("-inf")), -1)
