"""Generate on vLLM servers, and update their weights while requests run.

Invariants: a returning server gets the newest weights before a request; a failed request goes to another server with
the same seed.
"""

from __future__ import annotations

import asyncio
import secrets
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any, Self

import orjson
import torch
from torch import Tensor

from curation.config import EndpointModel
from curation.policies.chat_templates import folder_stop_tokens
from curation.policies.client import ServerClient, ServerResponse, message
from curation.policies.completions import FINISHED, TokenCompletion
from curation.policies.servers import Server, TemporaryFailure
from curation.policies.vllm.engine import require_vllm, vllm_version
from curation.records import PolicyError, RequestRefused
from curation.storage.scratch import ScratchFolder, memory_folder
from training.generation.checkpoint_tensors import WeightVersion, version_name
from training.generation.weight_broadcast import WeightBroadcast
from training.generation.weight_transfer import Way, address_towards, weights_way
from training.optimisation.model import load_tokenizer, require_model

UPDATE_S = 600.0
"""Max seconds for a call of a weight update."""

_MIXED = "mixed"
"""Label of tokens generated during a failed exchange."""

_START_HINT = "start it with `python -m training.generation.serving`"


class EndpointGenerator(ServerClient):
    """vLLM servers as a `training.generation.generators.Generator`.

    Args:
        lasting: an update's tensors never change, so a folder is written on demand.
        way: how weights reach the servers; chosen if missing.
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
        urls = [url.rstrip("/").removesuffix("/v1") for url in settings.urls]
        super().__init__(settings, None, welcome=self._welcome, urls=urls, models="/v1/models")
        self.capacity = settings.in_flight * len(urls)
        """Max concurrent requests."""
        self._folder, self._temperature, self._device, self._lasting = folder, temperature, device, lasting
        self.way: Way = way or weights_way(urls, device, vllm_version())
        self._tokenizer = load_tokenizer(folder)
        self._ends = list(folder_stop_tokens(folder, self._tokenizer).ids)
        self._meter = RequestMeter(self.capacity)
        self._run = secrets.token_hex(4)
        self._locks = {server.url: asyncio.Lock() for server in self.servers.all}
        self._exchanges: set[asyncio.Task[None]] = set()
        self._broadcast: WeightBroadcast | None = None
        self._resources = ExitStack()

    @property
    def decoding(self) -> float:
        """Return the slot-seconds of unpaused servers."""
        return self._meter.change()

    async def __aenter__(self) -> Self:
        with ExitStack() as stack:
            scratch = await asyncio.to_thread(weights_folder)
            stack.callback(scratch.remove)
            self._shared = Path(scratch.path)
            self._newest = WeightVersion(self._folder, None, 0, self._shared)
            if self.way != "folder":
                require_vllm()
                own = address_towards(self.servers.all[0].url)
                device = torch.device("cpu" if self.way == "gloo" else self._device)
                if device.type == "cuda" and device.index is None:
                    device = torch.device("cuda", torch.cuda.current_device())
                self._broadcast = WeightBroadcast(self.way, own, device, self._workers, self._command)
                stack.callback(self._broadcast.close)
            await super().__aenter__()
            self._resources = stack.pop_all()
        return self

    async def close(self) -> None:
        """Finish exchanges, and close connections."""
        with self._resources:
            await self.servers.close()
            await asyncio.gather(*self._exchanges, return_exceptions=True)
            await super().close()

    async def generate(self, prompt_ids: Sequence[int], *, seed: int, max_tokens: int) -> TokenCompletion:
        """See `Generator.generate`."""
        prompt = tuple(prompt_ids)
        room = max_tokens if self.context is None else self.context - len(prompt)
        if room <= 0:
            raise RequestRefused(
                "too_long",
                f"{self._folder.name}: a prompt takes {len(prompt)} tokens, the servers' context is "
                f"{self.context}; drop the problem or raise their --max-model-len.",
            )
        sampling = {
            "temperature": self._temperature,
            "top_p": 1.0,
            "max_tokens": min(max_tokens, room),
            "stop_token_ids": self._ends,
            "seed": seed % 2**63,
            "logprobs": 0,
            "detokenize": False,
        }

        def body() -> dict[str, Any]:  # cached keys are shared within a version only
            return {
                "token_ids": prompt,
                "sampling_params": sampling,
                "cache_salt": self._label(self._newest.version),
            }

        self._meter.change(running=1)
        try:
            return await self.ask("/inference/v1/generate", body, partial(self._read, prompt), "a request")
        finally:
            self._meter.change(running=-1)

    async def update_weights(self, weights: Mapping[str, Tensor], version: int) -> float:
        """See `Generator.update_weights`."""
        started_at = time.perf_counter()
        self._newest = newest = await asyncio.to_thread(WeightVersion, self._folder, weights, version, self._shared)
        writing = [] if self._lasting else [asyncio.to_thread(newest.folder)]  # for servers that return later
        await asyncio.gather(*(self._renew(server) for server in self.servers.all if server.alive), *writing)
        for old in sorted(self._shared.glob("v*"))[:-2]:
            if old.name != version_name(version):
                shutil.rmtree(old, ignore_errors=True)
        return time.perf_counter() - started_at

    def _read(self, prompt: tuple[int, ...], server: Server, response: ServerResponse) -> TokenCompletion:
        if response.status != 200:
            if response.status in (401, 403, 404):
                raise PolicyError(f"{server.url}: {response.status} {message(response)}; {_START_HINT}.")
            self.require_ok(response, server.url)
        try:
            tokens, logprobs, spans, finish = read_answer(response.content)
        except ValueError as error:
            raise TemporaryFailure(f"200, but no tokens: {response.text!r:.120}") from error
        versions: list[int] = []
        for label, count in spans:
            run, _, version = label.partition("-")
            if run != self._run or version == _MIXED:
                reason = f"it answered with weights {label!r} not of this run"
                self.servers.suspect(server, reason)
                raise TemporaryFailure(reason)
            versions += [int(version)] * count
        if finish not in FINISHED or not len(tokens) == len(logprobs) == len(versions):
            raise TemporaryFailure(f"the generation ended as {finish!r}")
        text = str(self._tokenizer.decode(list(tokens), skip_special_tokens=True))
        return TokenCompletion(prompt, tokens, logprobs, tuple(versions), text, finish)

    async def _renew(self, server: Server) -> None:
        try:
            await self._bring_up_to_date(server.url)
        except (TemporaryFailure, PolicyError) as failure:  # also if restarted with other options
            self.servers.suspect(server, str(failure))

    async def _welcome(self, url: str, context: int | None) -> None:  # noqa: ARG002 - prompts are measured later
        if self._broadcast is not None:
            self._broadcast.leave(url)
        await self._bring_up_to_date(url)

    async def _bring_up_to_date(self, url: str) -> None:
        while True:
            newest = self._newest
            exchange = asyncio.create_task(self._exchange(url, newest))
            self._exchanges.add(exchange)
            exchange.add_done_callback(self._exchanges.discard)
            await asyncio.shield(exchange)
            if newest is self._newest:
                return

    async def _exchange(self, url: str, weights: WeightVersion) -> None:
        label = self._label(weights.version)
        async with self._locks[url]:
            current = await self.get(f"{url}/weight_info")
            _require_weight_updates(current, url)
            if current.status == 200 and current.json().get("weight_version") == label:
                return
            broadcast = self._broadcast if self._broadcast and await self._broadcast.join(url) else None
            folder = await asyncio.to_thread(weights.folder) if broadcast is None else None
            await self._command(url, "pause?mode=keep&clear_cache=false", {})
            share = 1 / len(self.servers.all)
            self._meter.change(paused=share)
            try:
                await self._command(url, "update_weight_version", {"new_version": self._label(_MIXED)})
                await self._command(url, "start_weight_update", {})
                if broadcast is not None:
                    await broadcast.send(url, weights)
                else:
                    await self._command(url, "update_weights", {"update_info": {"folder": str(folder)}})
                await self._command(url, "finish_weight_update", {"weight_version": label})
            except (TemporaryFailure, PolicyError):
                with suppress(TemporaryFailure, PolicyError):  # the first failure is the one reported
                    await self._command(url, "resume", {})
                raise
            else:
                await self._command(url, "resume", {})
            finally:
                self._meter.change(paused=-share)

    async def _workers(self, url: str) -> int:
        response = await self.get(f"{url}/get_world_size")
        try:
            return int(response.json()["world_size"])
        except (ValueError, LookupError, TypeError) as error:
            raise TemporaryFailure(f"/get_world_size: {response.status} {message(response)}") from error

    async def _command(self, url: str, path: str, body: Mapping[str, Any]) -> None:
        response = await self.post(f"{url}/{path}", body, UPDATE_S)
        _require_weight_updates(response, url)
        if response.status != 200:
            raise TemporaryFailure(f"/{path.partition('?')[0]}: {response.status} {message(response)}")

    def _label(self, version: int | str) -> str:
        return f"{self._run}-{version}"


def weights_folder() -> ScratchFolder:
    """Make a folder in memory; leftovers of killed runs are removed."""
    parent = memory_folder()
    try:
        folder = ScratchFolder("vllm-weights", parent)
        Path(folder.path).chmod(0o755)  # servers may run as another user
    except OSError as error:
        raise PolicyError(f"new weights: nothing can be written in {parent} ({error.strerror}).") from error
    return folder


def _require_weight_updates(response: ServerResponse, url: str) -> None:
    if response.status in (401, 403):
        raise PolicyError(f"{url}: refuses a weight update ({response.status} {message(response)}); {_START_HINT}.")
    if response.status == 404:
        raise PolicyError(f"{url}: knows no weight updates (404); {_START_HINT}, or set VLLM_SERVER_DEV_MODE=1.")


class RequestMeter:
    """Counts slot-seconds of requests in an engine of ``slots`` slots."""

    def __init__(self, slots: int) -> None:
        self._slots, self._running, self._paused_share, self._decoding = slots, 0, 0.0, 0.0
        self._since = time.perf_counter()

    def change(self, running: int = 0, paused: float = 0.0) -> float:
        """Add requests and the share of paused slots, or remove them; return the slot-seconds until now."""
        now = time.perf_counter()
        free = 1 - min(max(self._paused_share, 0.0), 1.0)
        self._decoding += min(self._running, self._slots) * free * (now - self._since)
        self._since = now
        self._running += running
        self._paused_share += paused
        return self._decoding


def read_answer(content: bytes) -> tuple[tuple[int, ...], tuple[float, ...], list[tuple[str, int]], str]:
    """Return a body's first response: tokens, log-probabilities, (version, tokens) in order, and finish.

    Raises:
        ValueError: there is none.
    """
    try:
        choice = orjson.loads(content)["choices"][0]
        drawn = (choice.get("logprobs") or {}).get("content") or ()
        return (
            tuple(choice.get("token_ids") or ()),
            tuple([float(token["logprob"]) for token in drawn]),
            [(str(span["version"]), span["end"] - span["start"]) for span in choice["weight_versions"]],
            str(choice["finish_reason"]),
        )
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(f"no response: {error}") from error
