"""Batched decoding with a key-value cache in slots: requests join and leave while the others go on.

One `Engine` holds a causal language model and a static cache of ``slots`` rows. `Engine.step` takes in new requests
(their prompts run through the model once, equal prompts once for all) and then makes one more token for every request.
A finished request's row is given to the next one; nothing waits for a batch to end.

Invariants:
  - a token's log-probability is the natural logarithm of its probability under the distribution it was drawn from:
    softmax(logits / temperature), cut to the likeliest tokens that hold ``top_p`` and normalised again. At temperature
    0 the likeliest token is certain: 0.0;
  - tokens are drawn by one uniform number each, from the request's own generator: what a request says does not depend
    on what runs beside it, up to rounding of the logits;
  - weights are exchanged between two steps; each token carries the version that made it, and keys and values made by
    older weights stay (paper, section 2.3: no recomputation).

Only models with full attention in every layer. No thread and no event loop here: `training.generate` has them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

import torch

from curation.records import PolicyError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

FIRST_CAPACITY = 128
"""Positions a slot holds at first; doubled when a request needs more."""

_BLOCK = 16


@dataclass(slots=True, eq=False)
class Request:
    """One generation under way: what was asked, and what was said so far.

    ``logprobs`` and ``versions`` have one entry per token of ``tokens``; ``finish`` is ``stop`` (an end token, which
    is among the tokens) or ``length``.
    """

    prompt: tuple[int, ...]
    max_tokens: int
    random: Random
    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)
    finish: str | None = None


class Engine:
    """A model, its cache, and the requests under way. Not thread-safe.

    ``ends`` are the ids of tokens that end a response; ``stopped`` may end one by what was said so far.

    Raises:
        PolicyError: the model has layers with another attention than full, whose cache this is not.
    """

    def __init__(
        self,
        model: PreTrainedModel,
        ends: Sequence[int],
        *,
        slots: int,
        temperature: float,
        top_p: float,
        stopped: Callable[[Sequence[int]], bool] | None = None,
    ) -> None:
        kinds = set(getattr(model.config, "layer_types", None) or ["full_attention"]) - {"full_attention"}
        if kinds:
            raise PolicyError(f"{model.config.model_type}: layers of {', '.join(sorted(kinds))}; sample it with vLLM")
        self.model = model
        self.longest = int(model.config.max_position_embeddings)
        self.version = 0
        self.active: list[Request] = []
        self._ends, self._slots = frozenset(ends), slots
        self._temperature, self._top_p, self._stopped = temperature, top_p, stopped
        self._cache = _Cache(slots)
        self._positions = torch.zeros(slots, dtype=torch.long, device=model.device)
        self._last = torch.zeros(slots, dtype=torch.long, device=model.device)

    def step(self, joining: Sequence[Request] = (), leaving: Sequence[Request] = ()) -> list[Request]:
        """One token for every request, those that join included; returns the requests that are finished by it.

        ``leaving`` are given up: their rows are free at once. Raises ValueError where there are more requests than
        slots.
        """
        if len(self.active) - len(leaving) + len(joining) > self._slots:
            raise ValueError(f"{len(joining)} requests join, but only {self._slots} slots are there")
        with torch.inference_mode():
            self._retire(leaving)
            going = len(self.active)
            if going:
                self._note(0, *self._decode())
            if joining:
                first = self._prefill(joining)
                self.active.extend(joining)
                self._note(going, *first)
            finished = [request for request in self.active if request.finish]
            self._retire(finished)
        return finished

    def load(self, state: Mapping[str, torch.Tensor], version: int | None = None) -> None:
        """Exchange the weights; requests under way go on with the new ones and keep their cache.

        Raises:
            PolicyError: names or shapes are not the model's.
        """
        own = dict(self.model.named_parameters())
        strange = sorted(set(state) - set(self.model.state_dict()))
        missing = sorted(set(own) - set(state))
        odd = sorted(name for name in own.keys() & state.keys() if own[name].shape != state[name].shape)
        if strange or missing or odd:
            raise PolicyError(
                f"these weights do not fit the model: unknown {strange[:3]}, missing {missing[:3]}, of another shape "
                f"{odd[:3]}; give weights of the same architecture"
            )
        with torch.no_grad():
            for name, parameter in own.items():
                parameter.copy_(state[name])
        self.version = self.version + 1 if version is None else version

    def _decode(self) -> tuple[list[int], list[float]]:
        rows = len(self.active)
        positions = self._positions[:rows]
        seen = int(positions.max()) + 1
        span = min(-(-seen // _BLOCK) * _BLOCK, self.longest)
        self._cache.begin(positions, span, self.longest)
        allowed = torch.arange(span, device=positions.device) <= positions[:, None]
        out = self.model(
            input_ids=self._last[:rows, None],
            position_ids=positions[:, None],
            attention_mask=_additive(allowed[:, None, None], self.model.dtype),
            past_key_values=self._cache,
            use_cache=True,
        )
        self._positions[:rows] += 1
        return self._draw(out.logits[:, -1], self.active)

    def _prefill(self, joining: Sequence[Request]) -> tuple[list[int], list[float]]:
        """Run the prompts, each different one once, right-padded; the padding is behind every token that counts."""
        places = {prompt: at for at, prompt in enumerate(dict.fromkeys(request.prompt for request in joining))}
        lengths = torch.tensor([len(prompt) for prompt in places], device=self.model.device)
        ids = torch.zeros(len(places), int(lengths.max()), dtype=torch.long)
        for prompt, at in places.items():
            ids[at, : len(prompt)] = torch.tensor(prompt)
        ends, end_of = torch.unique(lengths - 1, return_inverse=True)
        out = self.model(input_ids=ids.to(self.model.device), use_cache=True, logits_to_keep=ends)
        logits = out.logits[torch.arange(len(places), device=self.model.device), end_of]
        which = torch.tensor([places[request.prompt] for request in joining], device=self.model.device)
        start, stop = len(self.active), len(self.active) + len(joining)
        self._cache.put([(layer.keys, layer.values) for layer in out.past_key_values.layers], which, start)
        self._positions[start:stop] = lengths[which]
        return self._draw(logits[which], joining)

    def _draw(self, logits: torch.Tensor, requests: Sequence[Request]) -> tuple[list[int], list[float]]:
        """Token and log-probability for each row of ``logits`` [request, vocabulary]."""
        if self._temperature == 0:
            return logits.argmax(-1).tolist(), [0.0] * len(requests)
        logprobs = distribution(logits, self._temperature, self._top_p)
        points = torch.tensor([request.random.random() for request in requests], device=logits.device)
        running = logprobs.exp().cumsum(-1)
        tokens = torch.searchsorted(running, points[:, None] * running[:, -1:], right=True)
        tokens = tokens.clamp(max=logits.shape[-1] - 1)
        return tokens[:, 0].tolist(), logprobs.gather(-1, tokens)[:, 0].tolist()

    def _note(self, start: int, tokens: list[int], logprobs: list[float]) -> None:
        for request, token, logprob in zip(self.active[start:], tokens, logprobs, strict=False):
            request.tokens.append(token)
            request.logprobs.append(logprob)
            request.versions.append(self.version)
            if token in self._ends or (self._stopped is not None and self._stopped(request.tokens)):
                request.finish = "stop"
            elif len(request.tokens) >= min(request.max_tokens, self.longest - len(request.prompt)):
                request.finish = "length"
        self._last[start : start + len(tokens)] = torch.tensor(tokens, device=self._last.device)

    def _retire(self, requests: Sequence[Request]) -> None:
        """Free the rows, filling each with the last one in use, so that the rows in use stay together."""
        for request in requests:
            row, last = self.active.index(request), len(self.active) - 1
            if row != last:
                self._cache.move(last, row)
                self._positions[row], self._last[row] = self._positions[last].clone(), self._last[last].clone()
                self.active[row] = self.active[last]
            self.active.pop()


def distribution(logits: torch.Tensor, temperature: float, top_p: float) -> torch.Tensor:
    """Log-probabilities that tokens are drawn with: [request, vocabulary], -inf where ``top_p`` cuts off."""
    logprobs = torch.log_softmax(logits.float() / temperature, -1)
    if top_p >= 1:
        return logprobs
    ordered, order = logprobs.sort(-1, descending=True)
    before = ordered.exp().cumsum(-1) - ordered.exp()
    cut = torch.zeros_like(before, dtype=torch.bool).scatter(-1, order, before >= top_p)
    return torch.log_softmax(logprobs.masked_fill(cut, float("-inf")), -1)


def _additive(allowed: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """A mask to be added to attention scores: every implementation of attention in transformers takes this form."""
    mask = torch.zeros(allowed.shape, dtype=dtype, device=allowed.device)
    return mask.masked_fill_(~allowed, torch.finfo(dtype).min)


class _Cache:
    """Keys and values of all slots, one pair of tensors [slot, head, position, feature] a layer.

    A model's forward pass calls `update` once a layer, as it does with the caches of transformers.
    """

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._layers: list[tuple[torch.Tensor, torch.Tensor]] = []
        self._rows = self._positions = torch.zeros(0, dtype=torch.long)
        self._span = 0

    def begin(self, positions: torch.Tensor, span: int, longest: int) -> None:
        """The next updates write at these positions of the first rows and read the first ``span`` positions."""
        self._grow(span, longest)
        self._rows = torch.arange(len(positions), device=positions.device)
        self._positions, self._span = positions, span

    def update(
        self, keys: torch.Tensor, values: torch.Tensor, layer: int, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Store one position's keys and values [row, head, 1, feature]; returns those of the whole span."""
        rows = len(self._rows)
        held_keys, held_values = self._layers[layer]
        held_keys[self._rows, :, self._positions] = keys[:, :, 0]
        held_values[self._rows, :, self._positions] = values[:, :, 0]
        return held_keys[:rows, :, : self._span], held_values[:rows, :, : self._span]

    def put(self, layers: Sequence[tuple[torch.Tensor, torch.Tensor]], which: torch.Tensor, start: int) -> None:
        """Copy the prompts' keys and values, row ``which[i]`` to slot ``start + i``."""
        if not self._layers:
            for keys, values in layers:
                shape = (self._slots, keys.shape[1], FIRST_CAPACITY)
                self._layers.append((keys.new_zeros(*shape, keys.shape[3]), values.new_zeros(*shape, values.shape[3])))
        length = layers[0][0].shape[2]
        self._grow(length, length)
        for (held_keys, held_values), (keys, values) in zip(self._layers, layers, strict=True):
            held_keys[start : start + len(which), :, :length] = keys[which]
            held_values[start : start + len(which), :, :length] = values[which]

    def move(self, source: int, target: int) -> None:
        """Copy a slot over another."""
        for keys, values in self._layers:
            keys[target] = keys[source]
            values[target] = values[source]

    def _grow(self, needed: int, longest: int) -> None:
        capacity = self._layers[0][0].shape[2]
        if needed <= capacity:
            return
        more = max(needed, min(2 * capacity, longest)) - capacity
        self._layers = [
            (torch.nn.functional.pad(keys, (0, 0, 0, more)), torch.nn.functional.pad(values, (0, 0, 0, more)))
            for keys, values in self._layers
        ]
