"""Several engines as one: vLLM servers on this machine's GPUs, asked over HTTP in tokens.

It has the face of `curation.policies.vllm.engine.VllmEngine`, so that whoever measures need not know how many there
are. Prompts are made into tokens here, by vLLM's own tokenizer of the model, and the servers get the same arguments as
an engine of this process: where rounding does not depend on the company in a batch, so do attempts not depend on the
number of engines.

Invariants:
  - the attempts at one problem go to one server where they can, which has their prompt's keys and values
    (`curation.policies.servers`);
  - what a server that died had not answered is asked again of the others, with the same seeds.

Not here: the servers' processes (`server_processes`), which server is asked (`curation.policies.servers`).
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from curation.config import EngineSettings
from curation.config.engines import ServerSettings
from curation.policies.client import ServerClient, message
from curation.policies.completions import FINISHED, TokenCompletion, choice_logprobs, choice_token_ids
from curation.policies.connection import ServerResponse
from curation.policies.servers import EVEN, Server, TemporaryFailure
from curation.policies.vllm.engine import end_tokens_of
from curation.policies.vllm.placement import gpu_shares, visible_gpus
from curation.policies.vllm.server_processes import ServerProcesses
from curation.policies.vllm.startup import Launch, load_model_config, vllm_version
from curation.records import PolicyError

_GIVE_UP_S = 3600.0
"""Seconds without any server after which requests fail; loading a large model anew takes minutes."""

_REQUEST_S = 4 * 3600.0


class ReplicatedEngine:
    """Several vLLM servers with one model. Lives inside its ``async with`` block, in one event loop.

    Args:
        count: how many.
        command: makes the command of a server from its port; vLLM's own where absent.

    Raises:
        PolicyError: on entering: vLLM is not installed, cannot load the model, or there are too few GPUs.
    """

    def __init__(
        self,
        launch: Launch,
        settings: EngineSettings,
        count: int,
        command: Callable[[int], Sequence[str]] | None = None,
    ) -> None:
        self.launch, self.settings, self.count = launch, settings, count
        self.servers: ServerProcesses | None = None
        self._command = command
        self._client: ServerClient | None = None
        self._model_config: Any = None
        self._tokenizer: Any = None
        self._asking = 0
        self._unasked = asyncio.Event()
        self._gate = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._model_config, self._tokenizer = load_model_config(self.launch, self.settings)
        await self._open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    @property
    def tokenizer(self) -> Any:
        """Return the model's tokenizer, vLLM's own."""
        return self._tokenizer

    @property
    def end_tokens(self) -> tuple[int, ...]:
        """Return the tokens at which the servers end a response by themselves."""
        return end_tokens_of(self._model_config)

    @property
    def context(self) -> int:
        """Return the most tokens of prompt and answer together: the least of all servers."""
        context = int(self._model_config.max_model_len)
        return min(context, self._running().context or context)

    @property
    def client(self) -> ServerClient:
        """Return the client of the servers, which counts their requests."""
        return self._running()

    @staticmethod
    def sampling(
        *,
        temperature: float,
        top_p: float,
        max_tokens: int,
        seed: int,
        logprobs: bool,
        stop: Sequence[str] = (),
        stop_token_ids: Sequence[int] = (),
    ) -> dict[str, Any]:
        """Return what `generate` takes as ``sampling``; see `curation.policies.vllm.engine.sampling_params`."""
        return {
            "temperature": temperature,
            "top_p": top_p,
            "max_tokens": max_tokens,
            "seed": seed,
            **({"logprobs": 0} if logprobs else {}),
            **({"stop": list(stop)} if stop else {}),
            **({"stop_token_ids": list(stop_token_ids)} if stop_token_ids else {}),
        }

    async def generate(self, prompt_ids: Sequence[int], sampling: dict[str, Any], label: str) -> TokenCompletion:
        """Return one response; see `VllmEngine.generate`.

        Raises:
            RequestRefused: the servers live, and refuse the request or fail at every try.
            PolicyError: no server can be kept running, or they were left.
        """
        await self._gate.wait()
        prompt = tuple(prompt_ids)

        def body() -> dict[str, Any]:
            return {"prompt": prompt, **sampling, "return_token_ids": True}

        def read(server: Server, response: ServerResponse) -> TokenCompletion:
            return self._read(server, response, prompt)

        self._asking += 1
        self._unasked.clear()
        try:
            return await self._running().ask("/v1/completions", body, read, label, home=str(hash(prompt)))
        finally:
            self._asking -= 1
            if not self._asking:
                self._unasked.set()

    async def reload(self, folder: Path) -> None:
        """Go on with the weights of another folder: when all requests are answered, the servers are started again.

        Raises:
            PolicyError: they cannot be, after which nothing is answered any more.
        """
        self._running()
        self._gate.clear()
        if self._asking:
            await self._unasked.wait()
        await self._close()
        self.launch = replace(self.launch, model=str(folder), revision=None)
        await self._open()

    async def stop(self) -> None:
        """End the servers; a second call does nothing."""
        self._gate.set()
        await self._close()

    async def _open(self) -> None:
        shares = gpu_shares(visible_gpus(), self.count, self.settings.tensor_parallel * self.launch.data_parallel)
        on_cpu = "cpu" in (vllm_version() or "")
        processes = ServerProcesses(
            self.launch, self.settings, shares, on_cpu=on_cpu, lost=self._lose, command=self._command
        )
        self.servers = processes
        has_opened = False
        try:
            await processes.start()
            urls = tuple(replica.url for replica in processes.replicas)
            client = ServerClient(
                ServerSettings(
                    urls=urls,
                    per_server=math.ceil(EVEN * self.launch.in_flight),
                    request_s=_REQUEST_S,
                    give_up_s=_GIVE_UP_S,
                ),
                None,
                welcome=_welcome,
                models="/v1/models",
            )
            self._client = await client.__aenter__()
            has_opened = True
        finally:
            if not has_opened:
                await self._close()
        self._gate.set()

    async def _close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()
        processes, self.servers = self.servers, None
        if processes is not None:
            await processes.stop()

    def _lose(self, why: str) -> None:
        if self._client is not None:
            self._client.servers.give_up(why)

    def _read(self, server: Server, response: ServerResponse, prompt: tuple[int, ...]) -> TokenCompletion:
        """Read a response.

        Raises:
            RequestRefused: the server refuses the request.
            TemporaryFailure: the answer is unusable.
        """
        self._running().require_ok(response, server.url)
        try:
            choice = response.json()["choices"][0]
            token_ids, logprobs = choice_token_ids(choice) or (), choice_logprobs(choice) or ()
            finish, text = choice["finish_reason"], str(choice["text"])
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise TemporaryFailure(f"200, but no completion: {message(response)}", "unusable") from error
        if finish not in FINISHED:
            raise TemporaryFailure(f"the generation ended as {finish!r}", "unusable")
        return TokenCompletion(prompt, token_ids, logprobs, (), text, finish)

    def _running(self) -> ServerClient:
        if self._client is None:
            raise PolicyError(f"vLLM, model {self.launch.name}: is not running; use `async with`.")
        return self._client


async def _welcome(url: str, context: int | None) -> None:
    """Take every server as it is: it was started here."""
