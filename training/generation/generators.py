"""Generate while training runs.

Invariants:

- tokens have their weights' version, and their log-probability as drawn;
- an update keeps running requests and their cache;
- `TorchGenerator` decodes requests of an event-loop turn together, so batches are repeatable.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any, Protocol, Self, TypeVar

from curation.policies.chat_templates import folder_stop_tokens
from curation.policies.completions import TokenCompletion
from curation.records import PolicyError, RequestRefused
from training.generation.batched_decoding import DecodingEngine, DecodingRequest
from training.generation.checkpoint_tensors import Weights
from training.optimisation.model import Dtype, load_model, load_tokenizer

T = TypeVar("T")


class Generator(Protocol):
    """An engine within ``async with`` and one event loop.

    ``capacity`` is the useful number of concurrent requests; ``decoding`` is in slot-seconds.
    """

    @property
    def capacity(self) -> int: ...

    @property
    def decoding(self) -> float: ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *_: object) -> None: ...

    async def generate(self, prompt_ids: Sequence[int], *, seed: int, max_tokens: int) -> TokenCompletion:
        """Generate a response; cancelling aborts it.

        Raises:
            PolicyError: the prompt is too long, or the engine failed or is closed.
        """
        ...

    async def update_weights(self, weights: Weights, version: int) -> float:
        """Replace the weights; return the seconds. Later tokens have ``version``.

        Raises:
            PolicyError: the weights do not fit the model.
        """
        ...


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
        self.capacity, self.decoding = capacity, 0.0
        self._folder, self._temperature, self._top_p = folder, temperature, top_p
        self._dtype: Dtype = dtype
        self._device = device
        self._waiting: list[DecodingRequest] = []
        self._calls: dict[DecodingRequest, asyncio.Future[None]] = {}
        self._ended: str | None = "is not running; use `async with`"

    async def __aenter__(self) -> Self:
        self._wake, self._closing = asyncio.Event(), False
        self._tokenizer = load_tokenizer(self._folder)
        self._thread = ThreadPoolExecutor(1, "generator")
        self._engine = await self._on_thread(self._load)
        self._ended = None
        self._serving = asyncio.create_task(self._serve(self._engine))
        return self

    async def __aexit__(self, *_: object) -> None:
        self._closing = True
        self._wake.set()
        try:
            await self._serving
        finally:
            self._thread.shutdown()

    async def generate(self, prompt_ids: Sequence[int], *, seed: int, max_tokens: int) -> TokenCompletion:
        """See `Generator.generate`."""
        engine = self._running()
        if len(prompt_ids) >= engine.max_positions:
            raise RequestRefused(
                "too_long",
                f"{self._folder.name}: a prompt takes {len(prompt_ids)} tokens, the model's context is "
                f"{engine.max_positions}; drop the problem or take a model with a longer context",
            )
        request = DecodingRequest(tuple(prompt_ids), max_tokens, Random(seed))
        self._calls[request] = asyncio.get_running_loop().create_future()
        self._waiting.append(request)
        self._wake.set()
        try:
            await self._calls[request]
        finally:
            del self._calls[request]  # aborts it, if it is cancelled
        return TokenCompletion(
            request.prompt_ids,
            tuple(request.token_ids),
            tuple(request.logprobs),
            tuple(request.versions),
            str(self._tokenizer.decode(request.token_ids, skip_special_tokens=True)),
            request.finish or "stop",
        )

    async def update_weights(self, weights: Weights, version: int) -> float:
        """See `Generator.update_weights`."""
        started_at = time.perf_counter()
        try:
            await self._on_thread(self._running().load, weights, version)  # runs between two steps
        except RuntimeError as error:  # torch's
            raise PolicyError(f"{self._folder.name}: the generator cannot load new weights: {error}") from error
        return time.perf_counter() - started_at

    def _load(self) -> DecodingEngine:
        model = load_model(self._folder, dtype=self._dtype, device=self._device)
        model.requires_grad_(False)
        return DecodingEngine(
            model,
            folder_stop_tokens(self._folder, self._tokenizer).ids,
            slots=self.capacity,
            temperature=self._temperature,
            top_p=self._top_p,
        )

    async def _serve(self, engine: DecodingEngine) -> None:
        """Decode until closed; then fail waiting calls."""
        why = "ended by an error"
        try:
            while True:
                if not (self._waiting or engine.active):
                    self._wake.clear()
                    if not self._closing:
                        await self._wake.wait()
                if self._closing:
                    why = "was closed"
                    return
                await self._step(engine)
        except RuntimeError as error:  # torch's errors, out of memory among them
            why = f"failed while sampling: {error}"
        finally:
            self._ended = why
            for future in self._calls.values():
                if not future.done():
                    future.set_exception(PolicyError(f"{self._folder.name}: the generator {why}"))

    async def _step(self, engine: DecodingEngine) -> None:
        self._waiting = [request for request in self._waiting if request in self._calls]
        leaving = [request for request in engine.active if request not in self._calls]
        running = len(engine.active) - len(leaving)
        joining = self._waiting[: self.capacity - running]
        del self._waiting[: len(joining)]

        def step() -> tuple[list[DecodingRequest], float]:
            started_at = time.perf_counter()  # on the thread, once a load is done
            return engine.step(joining, leaving), time.perf_counter() - started_at

        finished, seconds = await self._on_thread(step)
        self.decoding += seconds * (running + len(joining))
        for request in finished:
            if request in self._calls and not self._calls[request].done():
                self._calls[request].set_result(None)

    async def _on_thread(self, work: Callable[..., T], *values: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *values)

    def _running(self) -> DecodingEngine:
        if self._ended is not None:
            raise PolicyError(f"{self._folder.name}: the generator {self._ended}")
        return self._engine
