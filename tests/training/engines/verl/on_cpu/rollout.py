"""A rollout server of verl's that generates with torch, registered under vLLM's name.

As vLLM does, it returns what is generated when new weights come (`aborted`), and takes no request until it may go on.
"""

from __future__ import annotations

import asyncio
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

import ray
import torch
from verl.workers.rollout import base
from verl.workers.rollout.base import BaseRollout
from verl.workers.rollout.replica import RolloutReplica, RolloutReplicaRegistry, TokenOutput
from verl.workers.rollout.utils import ensure_async_iterator

from curation.policies.chat_templates import folder_stop_tokens
from training.generation.batched_decoding import DecodingEngine, DecodingRequest
from training.optimisation.model import load_model, load_tokenizer


class Server:
    def __init__(self, folder: str, slots: int, temperature: float, longest: int, seed: int) -> None:
        torch.set_num_threads(1)
        model = load_model(Path(folder)).requires_grad_(False)
        stops = folder_stop_tokens(Path(folder), load_tokenizer(Path(folder)))
        self._engine = DecodingEngine(model, stops.ids, slots=slots, temperature=temperature, top_p=1.0)
        self._slots, self._longest, self._chance, self._steps = slots, longest, Random(seed), 0
        self._waiting: list[DecodingRequest] = []
        self._open: dict[DecodingRequest, asyncio.Future[None]] = {}
        self._thread, self._gate, self._task = ThreadPoolExecutor(1), asyncio.Event(), None
        self._lock = asyncio.Lock()
        self._gate.set()

    async def generate(
        self, prompt_ids: list[int], sampling_params: dict[str, Any], request_id: str, **_others: Any
    ) -> TokenOutput:
        await self._gate.wait()
        longest = sampling_params.get("max_tokens", self._longest)  # a trainer that waits for it names none
        request = DecodingRequest(tuple(prompt_ids), longest, Random(self._chance.random()))
        self._open[request] = asyncio.get_running_loop().create_future()
        self._waiting.append(request)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())
        await self._open[request]
        del self._open[request]
        return TokenOutput(
            token_ids=request.token_ids,
            log_probs=request.logprobs,
            stop_reason="aborted" if request.finish is None else "completed",
            num_preempted=0,
            extra_fields={"global_steps": self._steps},
        )

    async def _run(self) -> None:
        while self._engine.active or self._waiting:
            async with self._lock:
                free = self._slots - len(self._engine.active)
                joining, self._waiting = self._waiting[:free], self._waiting[free:]
                finished = await asyncio.get_running_loop().run_in_executor(self._thread, self._engine.step, joining)
            for request in finished:
                self._open[request].set_result(None)

    async def load(self, state: dict[str, torch.Tensor], step: int) -> None:
        async with self._lock:
            self._engine.load(state, step)
            self._steps = step

    async def abort_all_requests(self, reject_request: bool = False) -> None:
        self._gate.clear()
        async with self._lock:
            leaving, self._waiting = [*self._engine.active], []
            self._engine.step((), leaving)
            for future in self._open.values():
                if not future.done():
                    future.set_result(None)

    async def resume_generation(self) -> None:
        self._gate.set()

    async def nothing(self) -> None: ...

    wake_up = sleep = clear_kv_cache = release_kv_cache = resume_kv_cache = nothing


class Replica(RolloutReplica):
    async def launch_servers(self) -> None:
        config, name = self.config, _server_name(self.replica_rank)
        actor = ray.remote(Server).options(name=name, max_concurrency=self.max_concurrency, num_cpus=0)
        slots = min(config.max_num_seqs, 64)
        longest, seed = config.response_length, config.seed + self.replica_rank
        server = actor.remote(self.model_config.path, slots, config.temperature, longest, seed)
        await server.nothing.remote()
        self.servers, self._server_handle, self._server_address = [server], server, name


class Adapter(BaseRollout):
    def __init__(self, config: Any, model_config: Any, device_mesh: Any, replica_rank: int = -1) -> None:
        super().__init__(config, model_config, device_mesh)
        self.replica_rank = int(os.environ["RANK"]) if replica_rank == -1 else replica_rank
        self.is_leader_rank = True

    async def update_weights(self, weights: Any, global_steps: int = 0, **_others: Any) -> None:
        state = {name: value.float() async for name, value in ensure_async_iterator(weights)}
        await ray.get_actor(_server_name(self.replica_rank)).load.remote(state, global_steps)

    async def resume(self, tags: list[str]) -> None: ...

    async def release(self) -> None: ...


def _server_name(replica: int) -> str:
    return f"torch_server_{replica}"


RolloutReplicaRegistry.register("vllm", lambda: Replica)
base._ROLLOUT_REGISTRY["vllm", "async"] = f"{__name__}.{Adapter.__name__}"
