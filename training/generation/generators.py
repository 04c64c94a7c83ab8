"""Generate while training runs.

Invariants:
  - tokens carry their weights' version and their log-probability as drawn;
  - an update, between two tokens, keeps running requests and their cache;
  - a prompt and seed always draw the same random numbers;
  - requests of one event-loop turn reach `TorchGenerator` together, for equal batches.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from torch import Tensor

from curation.policies.chat_templates import folder_stop_tokens
from curation.policies.completions import TokenCompletion
from curation.records import PolicyError, RequestRefused
from training.generation.batched_decoding import DecodingEngine, DecodingRequest
from training.generation.decoding_meter import DecodingTotals
from training.optimisation.model import Dtype, load_model, load_tokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Weights = Path | Mapping[str, Tensor]
"""A published folder (`training.optimisation.model.save_model`), or a full state dict under Hugging Face names, on the
CPU or on the trainer's device. Tensors of a state dict may be changed again once `Generator.update_weights` has
returned, not before."""


class Generator(Protocol):
    """An engine inside its ``async with`` block and one event loop.

    ``capacity`` is the useful number of concurrent requests; ``decoding`` has slot-seconds.
    """

    @property
    def capacity(self) -> int: ...

    @property
    def decoding(self) -> DecodingTotals: ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    async def generate(self, prompt_ids: Sequence[int], *, seed: int, max_tokens: int) -> TokenCompletion:
        """Generate one response; cancelling the call aborts it.

        Raises:
            PolicyError: the prompt does not fit, or the engine failed or is closed.
        """
        ...

    async def update_weights(self, weights: Weights, version: int) -> float:
        """Replace the weights between two tokens, keeping requests; return the seconds; later tokens carry ``version``.

        Raises:
            PolicyError: the weights do not fit the model.
        """
        ...


@dataclass(slots=True, eq=False)
class _PendingRequest:
    request: DecodingRequest
    future: asyncio.Future[DecodingRequest]


class TorchGenerator:
    """A model folder sampled with torch on a thread; training needs top_p = 1."""

    def __init__(
        self,
        folder: Path,
        *,
        capacity: int = 128,
        temperature: float = 1.0,
        top_p: float = 1.0,
        dtype: Dtype = "float32",
        device: str = "cpu",
    ) -> None:
        self._folder, self._capacity, self._temperature, self._top_p = folder, capacity, temperature, top_p
        self._dtype: Dtype = dtype
        self._device = device
        self._condition = threading.Condition()
        self._inbox: deque[_PendingRequest] = deque()
        self._unsubmitted: list[_PendingRequest] = []
        self._leaving: list[_PendingRequest] = []
        self._updates: deque[tuple[Mapping[str, Tensor], int, Future[float]]] = deque()
        self._closing = False
        self._failed: str | None = None
        self._engine: DecodingEngine | None = None
        self._tokenizer: PreTrainedTokenizerBase | None = None
        self._decoding_s = self._held_s = 0.0

    @property
    def capacity(self) -> int:
        """Return how many requests are decoded together."""
        return self._capacity

    @property
    def decoding(self) -> DecodingTotals:
        """Return the slot-seconds of decoding and of weight exchanges."""
        return DecodingTotals(self._decoding_s, self._held_s * self._capacity)

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._tokenizer = load_tokenizer(self._folder)
        self._engine = await asyncio.to_thread(self._load)
        self._thread = threading.Thread(target=self._run, args=(self._engine,), name="generator", daemon=True)
        self._thread.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._condition:
            self._closing = True
            self._condition.notify()
        await asyncio.to_thread(self._thread.join)
        self._engine = None

    async def generate(self, prompt_ids: Sequence[int], *, seed: int, max_tokens: int) -> TokenCompletion:
        """Generate one response, see `Generator.generate`."""
        engine = self._running()
        if len(prompt_ids) >= engine.max_positions:
            raise RequestRefused(
                "too_long",
                f"{self._folder.name}: a prompt takes {len(prompt_ids)} tokens, the model's context is "
                f"{engine.max_positions}; drop the problem or take a model with a longer context",
            )
        request = DecodingRequest(tuple(prompt_ids), max_tokens, Random(seed))
        pending = _PendingRequest(request, self._loop.create_future())
        if not self._unsubmitted:
            self._loop.call_soon(self._submit_new)
        self._unsubmitted.append(pending)
        try:
            finished = await pending.future
        except asyncio.CancelledError:
            with self._condition:
                self._leaving.append(pending)
            raise
        assert self._tokenizer is not None
        return TokenCompletion(
            finished.prompt_ids,
            tuple(finished.token_ids),
            tuple(finished.logprobs),
            tuple(finished.versions),
            str(self._tokenizer.decode(finished.token_ids, skip_special_tokens=True)),
            finished.finish or "stop",
        )

    async def update_weights(self, weights: Weights, version: int) -> float:
        """Replace the weights, see `Generator.update_weights`."""
        started_at = time.perf_counter()
        self._running()
        state = await asyncio.to_thread(read_weights, weights) if isinstance(weights, Path) else weights
        future: Future[float] = Future()
        with self._condition:
            self._updates.append((state, version, future))
            self._condition.notify()
        await asyncio.wrap_future(future)
        return time.perf_counter() - started_at

    def _submit_new(self) -> None:
        """Give the thread all requests of this event-loop turn."""
        with self._condition:
            self._inbox.extend(pending for pending in self._unsubmitted if not pending.future.done())
            self._condition.notify()
        self._unsubmitted.clear()

    def _load(self) -> DecodingEngine:
        model = load_model(self._folder, dtype=self._dtype, device=self._device)
        model.requires_grad_(False)
        tokenizer = self._tokenizer
        assert tokenizer is not None
        return DecodingEngine(
            model,
            folder_stop_tokens(self._folder, tokenizer).ids,
            slots=self._capacity,
            temperature=self._temperature,
            top_p=self._top_p,
        )

    def _run(self, engine: DecodingEngine) -> None:
        """Run the thread; an unexpected error fails all waiting calls."""
        opened: dict[DecodingRequest, _PendingRequest] = {}
        try:
            self._serve(engine, opened)
        finally:
            if not self._closing and self._failed is None:
                self._fail_all(opened, f"{self._folder.name}: the generator ended by the error printed above")

    def _serve(self, engine: DecodingEngine, opened: dict[DecodingRequest, _PendingRequest]) -> None:
        """Replace weights and decode until closed; sleep when idle."""
        while True:
            with self._condition:
                self._condition.wait_for(lambda: bool(self._closing or self._inbox or self._updates or opened))
                if self._closing:
                    return self._fail_all(opened, f"{self._folder.name}: the generator was closed")
                updates, aborted = list(self._updates), {pending.request for pending in self._leaving}
                self._updates.clear()
                self._leaving.clear()
                self._inbox = deque(pending for pending in self._inbox if pending.request not in aborted)
                leaving = [request for request in opened if request in aborted]
                free = self._capacity - len(opened) + len(leaving)
                joining = [self._inbox.popleft() for _ in range(min(free, len(self._inbox)))]
            for state, version, future in updates:
                self._exchange(engine, state, version, future)
            for request in leaving:
                del opened[request]
            opened.update({pending.request: pending for pending in joining})
            if not (opened or leaving):
                continue
            started_at = time.perf_counter()
            try:
                finished = engine.step([pending.request for pending in joining], leaving)
            except RuntimeError as error:  # torch's errors, out of memory among them
                return self._fail_all(opened, f"{self._folder.name}: torch failed while sampling: {error}")
            seconds = time.perf_counter() - started_at
            self._decoding_s += seconds * len(opened)
            if finished:
                self._loop.call_soon_threadsafe(_settle, [(opened.pop(request), request) for request in finished])

    def _exchange(self, engine: DecodingEngine, state: Mapping[str, Tensor], version: int, done: Future[float]) -> None:
        started_at, error = time.perf_counter(), None
        try:
            engine.load(state, version)
        except PolicyError as unfit:
            error = unfit
        seconds = time.perf_counter() - started_at
        self._held_s += seconds  # before anybody hears of the exchange, and looks
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(seconds)

    def _fail_all(self, opened: Mapping[DecodingRequest, _PendingRequest], why: str) -> None:
        """Fail all waiting requests and updates with the reason."""
        with self._condition:
            self._failed = why
            waiting = [*opened.values(), *self._inbox]
            updates = [future for _, _, future in self._updates]
        for future in updates:
            future.set_exception(PolicyError(why))
        self._loop.call_soon_threadsafe(_fail, waiting, why)

    def _running(self) -> DecodingEngine:
        if self._engine is None or self._closing or self._failed is not None:
            raise PolicyError(self._failed or f"{self._folder.name}: the generator is not running; use `async with`")
        return self._engine


def read_weights(folder: Path) -> dict[str, Tensor]:
    """Read the state dict of a folder's safetensors.

    Raises:
        PolicyError: the folder has none.
    """
    from safetensors.torch import load_file

    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise PolicyError(f"{folder}: no weights here (no *.safetensors); publish them again")
    state: dict[str, Tensor] = {}
    for path in files:
        state.update(load_file(path))
    return state


def _settle(finished: Sequence[tuple[_PendingRequest, DecodingRequest]]) -> None:
    for pending, request in finished:
        if not pending.future.done():
            pending.future.set_result(request)


def _fail(waiting: Sequence[_PendingRequest], why: str) -> None:
    for pending in waiting:
        if not pending.future.done():
            pending.future.set_exception(PolicyError(why))
