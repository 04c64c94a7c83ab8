"""A generator on a vLLM server of its own, in an event loop of its own, and what transformers computes in its place."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import torch

from curation.config import EndpointModel
from tests.vllm_servers import VllmServer
from training.generation.endpoint_generators import EndpointGenerator
from training.optimisation.model import load_model


class Running:
    def __init__(self, generator: EndpointGenerator, loop: asyncio.AbstractEventLoop) -> None:
        self.generator, self.run = generator, loop.run_until_complete


@contextmanager
def running(folder: Path, log: Path, dtype: str) -> Iterator[Running]:
    server, loop = VllmServer(log, folder, dtype), asyncio.new_event_loop()
    try:
        server.wait()
        settings = EndpointModel(kind="endpoint", model=folder.name, revision="1", urls=(server.url,))
        generator = EndpointGenerator(folder, settings)
        loop.run_until_complete(generator.__aenter__())
        try:
            yield Running(generator, loop)
        finally:
            loop.run_until_complete(generator.__aexit__(None, None, None))
    finally:
        server.kill()
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


@torch.no_grad()
def logprobs_by_version(prompt: list[int], tokens: list[int], versions: list[int], folders: list[Path]) -> list[float]:
    """Return transformers' log-probabilities if each version's weights continue on the cache of older versions."""
    models = {version: load_model(folder) for version, folder in enumerate(folders)}
    cache: Any = None
    found: list[float] = []
    fed = prompt  # not yet in the cache
    for version, span in groupby(zip(versions, tokens, strict=True), key=itemgetter(0)):
        made = [token for _, token in span]
        out = models[version](input_ids=torch.tensor([fed + made[:-1]]), past_key_values=cache, use_cache=True)
        cache = out.past_key_values
        logprobs = out.logits[0, -len(made) :].log_softmax(-1)
        found += logprobs.gather(-1, torch.tensor(made)[:, None])[:, 0].tolist()
        fed = made[-1:]
    return found
