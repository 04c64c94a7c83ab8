"""Generators on servers: vLLM on this machine or on others, which read new weights in a folder or fetch them by HTTP.

`training.generation.vllm_client.TrainingVllmClient` sends the requests. Here tokens become texts, and weights are
written: each
version is written aside and renamed as ``vNNNNNNNN``, the last two stay, and all is removed on leaving. What a killed
run left in this machine's memory goes when the next one starts, an hour later at the earliest; in a shared folder it
stays.

Not here: starting servers (`curation.policies.vllm.serving`).
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from curation.policies.chat_templates import folder_stop_tokens
from curation.policies.checkpoints import fitting, require_same_shape, weight_files, write_weights
from curation.policies.completions import TokenCompletion
from curation.records import PolicyError, RequestRefused
from curation.storage.scratch import memory_folder, sweep
from training.generation.decoding_meter import DecodingTotals, RequestMeter
from training.generation.generators import Weights
from training.generation.vllm_client import TrainingVllmClient
from training.generation.vllm_settings import EndpointGeneratorSettings
from training.generation.weight_server import WeightServer, address_towards
from training.optimisation.model import load_tokenizer, require_model

_PREFIX = "goldilocks-vllm-weights-"


class EndpointGenerator:
    """One or more vLLM servers as a `training.generation.generators.Generator`.

    Args:
        folder: the model that the run starts from, with its tokenizer; servers hold one of its shape.
        settings: where the servers are.
        temperature: of sampling; nothing is cut from the distribution (top_p = 1), as training needs.

    Raises:
        PolicyError: there is no such folder; on entering: no server answers, or one was not started as needed.
    """

    def __init__(self, folder: Path, settings: EndpointGeneratorSettings, *, temperature: float = 1.0) -> None:
        require_model(folder)
        self._model, self._settings, self._temperature = folder, settings, temperature
        self._servers: TrainingVllmClient | None = None
        self._meter = RequestMeter(self.capacity)

    @property
    def capacity(self) -> int:
        """Return how many requests the servers may have at once."""
        return self._settings.most_per_server * len(self._settings.urls)

    @property
    def decoding(self) -> DecodingTotals:
        """Return the slot-seconds of requests at servers that are not paused."""
        return self._meter.totals

    async def __aenter__(self) -> Self:
        self._tokenizer = load_tokenizer(self._model)
        self._ends = folder_stop_tokens(self._model, self._tokenizer).ids
        async with AsyncExitStack() as stack:
            self._shared = await asyncio.to_thread(self._make_shared)
            stack.callback(shutil.rmtree, self._shared, ignore_errors=True)
            if self._settings.folder is None:
                lock_fd = os.open(self._shared, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
                stack.callback(os.close, lock_fd)
                fcntl.flock(lock_fd, fcntl.LOCK_SH | fcntl.LOCK_NB)  # so that no other run sweeps it away
            initial_folder = self._shared / _version_name(0)
            await asyncio.to_thread(_copy_weights, self._model, initial_folder)
            handed_out = None
            if self._settings.way == "http":
                address = self._settings.address or address_towards(self._settings.urls[0])
                handed_out = WeightServer(self._shared, address)
                stack.callback(handed_out.close)
            self._servers = await stack.enter_async_context(
                TrainingVllmClient(self._settings, initial_folder, meter=self._meter, handed_out=handed_out)
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
        """Exchange the weights, see `Generator.update_weights`. Servers that are away get the weights when they are
        back.
        """
        servers, started_at = self._running(), time.perf_counter()
        folder = self._shared / _version_name(version)
        await asyncio.to_thread(self._write, weights, folder)
        await servers.update(folder, version)
        for old in sorted(self._shared.glob("v*"))[:-2]:
            if old != folder:
                shutil.rmtree(old, ignore_errors=True)
        return time.perf_counter() - started_at

    def _write(self, weights: Weights, folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(weights, Path):
            require_same_shape(self._model, weights)
            _copy_weights(weights, folder)
            return
        aside = folder.parent / f".aside-{folder.name}"
        shutil.rmtree(aside, ignore_errors=True)
        write_weights(fitting(self._model, weights), aside)
        aside.rename(folder)

    def _make_shared(self) -> Path:
        parent = memory_folder()
        try:
            if self._settings.folder:
                parent = Path(self._settings.folder).expanduser()
                parent.mkdir(parents=True, exist_ok=True)
            else:  # a killed run's weights would fill the memory; a folder of several machines is its owner's to tidy
                sweep(parent, _PREFIX)
            shared = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
            shared.chmod(0o755)  # servers may run as somebody else
        except OSError as error:
            raise PolicyError(f"generator.folder: nothing can be written in {parent} ({error.strerror}).") from error
        return shared

    def _running(self) -> TrainingVllmClient:
        if self._servers is None:
            raise PolicyError(f"{self._model.name}: the generator is not running; use `async with`")
        return self._servers


def _version_name(version: int) -> str:
    return f"v{version:08}"


def _copy_weights(model: Path, folder: Path) -> None:
    aside = folder.parent / f".aside-{folder.name}"
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir()
    for path in weight_files(model):
        if path.suffix != ".safetensors":
            raise PolicyError(f"{model}: {path.name} is no safetensors file, which servers need; convert the model")
        shutil.copyfile(path, aside / path.name)
    aside.rename(folder)
