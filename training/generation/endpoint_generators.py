"""Generate on vLLM servers, which get new weights from a folder or by a broadcast."""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

import torch

from curation.config import EndpointModel
from curation.policies.chat_templates import folder_stop_tokens
from curation.policies.completions import TokenCompletion
from curation.policies.vllm.engine import require_vllm, vllm_version
from curation.records import PolicyError, RequestRefused
from curation.storage.scratch import memory_folder, sweep
from training.generation.checkpoint_tensors import Weights, WeightVersion, version_name
from training.generation.decoding_meter import DecodingTotals, RequestMeter
from training.generation.vllm_client import TrainingVllmClient
from training.generation.weight_broadcast import WeightBroadcast
from training.generation.weight_transfer import Way, address_towards, weights_way
from training.optimisation.model import load_tokenizer, require_model

_PREFIX = "goldilocks-vllm-weights-"


class EndpointGenerator:
    """vLLM servers as a `training.generation.generators.Generator`.

    Args:
        lasting: an update's tensors stay unchanged after it; a folder is then written on demand.

    Raises:
        PolicyError: the folder is missing; on entering: no server answers, or one was not started as needed.
    """

    def __init__(
        self,
        folder: Path,
        settings: EndpointModel,
        *,
        temperature: float = 1.0,
        device: str = "cpu",
        lasting: bool = False,
        way: Way | None = None,
    ) -> None:
        require_model(folder)
        self._model, self._settings, self._temperature = folder, settings, temperature
        self._device, self._lasting, self._way = device, lasting, way
        self._servers: TrainingVllmClient | None = None
        self._meter = RequestMeter(self.capacity)

    @property
    def capacity(self) -> int:
        """Return the servers' max concurrent requests."""
        return self._settings.in_flight * len(self._settings.urls)

    @property
    def decoding(self) -> DecodingTotals:
        """Return the slot-seconds at servers that are not paused."""
        return self._meter.totals

    async def __aenter__(self) -> Self:
        self._tokenizer = load_tokenizer(self._model)
        self._ends = folder_stop_tokens(self._model, self._tokenizer).ids
        urls = self._settings.urls
        way = self._way or weights_way(urls, self._device, vllm_version())
        async with AsyncExitStack() as stack:
            self._shared = await asyncio.to_thread(self._make_shared)
            stack.callback(shutil.rmtree, self._shared, ignore_errors=True)
            lock_fd = os.open(self._shared, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            stack.callback(os.close, lock_fd)
            fcntl.flock(lock_fd, fcntl.LOCK_SH | fcntl.LOCK_NB)  # so that no other run sweeps it away
            initial = WeightVersion(self._model, self._model, 0, self._shared)
            broadcast = None
            if way != "folder":
                require_vllm()
                broadcast = WeightBroadcast(way, address_towards(urls[0]), self._sending_device(way), _say)
                stack.callback(broadcast.close)
            self._servers = await stack.enter_async_context(
                TrainingVllmClient(self._settings, initial, meter=self._meter, broadcast=broadcast)
            )
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._servers = None
        await self._stack.__aexit__(kind, error, trace)

    async def generate(self, prompt_ids: Sequence[int], *, seed: int, max_tokens: int) -> TokenCompletion:
        """Generate one response, see `Generator.generate`."""
        servers = self._running()
        room = max_tokens if servers.context is None else servers.context - len(prompt_ids)
        if room <= 0:
            raise RequestRefused(
                "too_long",
                f"{self._model.name}: a prompt takes {len(prompt_ids)} tokens, the servers' context is "
                f"{servers.context}; drop the problem or raise their --max-model-len.",
            )
        sampling = {
            "temperature": self._temperature,
            "top_p": 1.0,
            "max_tokens": min(max_tokens, room),
            "stop_token_ids": list(self._ends),
            "seed": seed % 2**63,
        }
        completion = await servers.generate(prompt_ids, sampling)
        text = str(self._tokenizer.decode(list(completion.token_ids), skip_special_tokens=True))
        return replace(completion, text=text)

    async def update_weights(self, weights: Weights, version: int) -> float:
        """Replace the weights, see `Generator.update_weights`; absent servers get them later."""
        servers, started_at = self._running(), time.perf_counter()
        newest = await asyncio.to_thread(WeightVersion, self._model, weights, version, self._shared)
        stays = self._lasting and not isinstance(weights, Path)
        writing = [] if stays else [asyncio.to_thread(newest.folder)]  # beside the exchange, if that is by another way
        await asyncio.gather(servers.update(newest, version), *writing)
        name = version_name(version)
        for old in sorted(self._shared.glob("v*"))[:-2]:
            if old.name != name:
                shutil.rmtree(old, ignore_errors=True)
        return time.perf_counter() - started_at

    def _sending_device(self, way: Way) -> torch.device:
        if way == "gloo":
            return torch.device("cpu")
        return (
            torch.device("cuda", torch.cuda.current_device()) if self._device == "cuda" else torch.device(self._device)
        )

    def _make_shared(self) -> Path:
        parent = memory_folder()
        try:
            sweep(parent, _PREFIX)  # a killed run's weights would fill the memory
            shared = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
            shared.chmod(0o755)  # servers may run as somebody else
        except OSError as error:
            raise PolicyError(f"new weights: nothing can be written in {parent} ({error.strerror}).") from error
        return shared

    def _running(self) -> TrainingVllmClient:
        if self._servers is None:
            raise PolicyError(f"{self._model.name}: the generator is not running; use `async with`")
        return self._servers


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
