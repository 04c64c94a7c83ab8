"""One real vLLM engine for all tests of training with it, in an event loop of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar

import torch

from curation.config import EngineSettings
from curation.policies.completions import TokenCompletion
from training.generation.vllm_generators import VllmGenerator
from training.optimisation.model import load_model

T = TypeVar("T")


class Running:
    """The engine and its loop."""

    def __init__(self, generator: VllmGenerator, loop: asyncio.AbstractEventLoop) -> None:
        self.generator, self.run = generator, loop.run_until_complete

    @property
    def vllm(self) -> Any:
        """vLLM itself."""
        return self.generator.engine.vllm

    def made(self) -> dict[str, int]:
        """Tokens made so far by each request under way, as vLLM counts them."""
        states = self.vllm.output_processor.request_states
        return {name: state.detokenizer.num_output_tokens() for name, state in states.items()}

    async def under_way(
        self, tokens: int, *asked: Callable[[], Coroutine[Any, Any, TokenCompletion]]
    ) -> list[asyncio.Task[TokenCompletion]]:
        """Requests with so many tokens each; asked again where one has ended before all were seen there."""
        for _ in range(20):
            tasks = [asyncio.create_task(ask()) for ask in asked]
            while not any(task.done() for task in tasks):
                made = self.made()
                if len(made) == len(tasks) and min(made.values()) >= tokens:
                    return tasks
                await asyncio.sleep(0.001)
            await asyncio.gather(*tasks)
        raise AssertionError(f"twenty times a request ended before {len(asked)} of them had {tokens} tokens")

    def put_back(self, folder: Path) -> None:
        """The weights that the engine started with, as version 0."""
        self.run(self.generator.update_weights(folder, 0))


@contextmanager
def running(folder: Path, capacity: int = 32, **settings: Any) -> Iterator[Running]:
    """An engine over a model of the embedded kind, in fp32."""
    loop = asyncio.new_event_loop()
    values = {"dtype": "float32", "kv_cache_mb": 64, **settings}
    generator = VllmGenerator(folder, EngineSettings(**values), capacity=capacity)
    try:
        loop.run_until_complete(generator.__aenter__())
        try:
            yield Running(generator, loop)
        finally:
            loop.run_until_complete(generator.__aexit__(None, None, None))
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


@torch.no_grad()
def logprobs_by_version(prompt: list[int], tokens: list[int], versions: list[int], folders: list[Path]) -> list[float]:
    """What transformers says of each token if its version's weights continue on the cache that older versions left."""
    models = {version: load_model(folder) for version, folder in enumerate(folders)}
    cache: Any = None
    said: list[float] = []
    fed = prompt  # not yet in the cache
    for version, span in groupby(zip(versions, tokens, strict=True), key=itemgetter(0)):
        made = [token for _, token in span]
        out = models[version](input_ids=torch.tensor([fed + made[:-1]]), past_key_values=cache, use_cache=True)
        cache = out.past_key_values
        logprobs = out.logits[0, -len(made) :].log_softmax(-1)
        said += logprobs.gather(-1, torch.tensor(made)[:, None])[:, 0].tolist()
        fed = made[-1:]
    return said
