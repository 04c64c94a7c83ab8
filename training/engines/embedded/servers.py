"""Run vLLM servers on this machine for a training run.

Invariants: servers end with this process and with their block; a restarted server gets the newest weights; servers
answer only requests with the run's key, which is in the environment of the block.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from curation.config import EndpointModel, LiveModel, VllmModel
from curation.policies.vllm.engine import Launch, engine_arguments, require_vllm, vllm_version
from training.embedded_model import resolve_model
from training.engines.embedded.server_processes import ServerProcesses
from training.generation import serving
from training.recipe import TrainRecipe

_SHARED = ("dtype", "max_model_len", "gpu_memory_utilization", "kv_cache_memory_bytes", "enforce_eager")
"""Arguments of an engine that a server for training gets from the recipe."""


@contextmanager
def generator_servers(
    recipe: TrainRecipe, recipe_folder: Path, shares: Sequence[tuple[str, ...]], say: Callable[[str], None]
) -> Iterator[tuple[str, ...]]:
    """Start a server per share of GPUs, and yield their addresses.

    Args:
        say: called with the reason once none is left.

    Raises:
        PolicyError: vLLM is not installed, or no server starts.
    """
    settings = recipe.trained
    if not shares or not isinstance(settings, VllmModel):
        yield ()
        return
    version, model = require_vllm(), resolve_model(settings.model, recipe_folder)
    servers = ServerProcesses(
        settings.model,
        settings,
        shares,
        on_cpu="cpu" in version,
        lost=say,
        command=lambda port: server_command(recipe, settings, model, port),
    )
    has_own_key = not os.environ.get(serving.KEY)
    if has_own_key:
        os.environ[serving.KEY] = secrets.token_urlsafe(16)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="generator servers", daemon=True)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(servers.start(), loop).result()
        yield tuple(replica.url for replica in servers.replicas)
    finally:
        asyncio.run_coroutine_threadsafe(servers.stop(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
        if has_own_key:
            del os.environ[serving.KEY]


def served(recipe: TrainRecipe, urls: Sequence[str]) -> EndpointModel:
    """Return the trained model as these servers have it."""
    shared = {name: getattr(recipe.trained, name) for name in LiveModel.model_fields}
    each = -(-recipe.collector.n_async // len(urls))
    return EndpointModel(
        kind="endpoint",
        revision="training",
        urls=tuple(urls),
        in_flight=each,
        api_key_env=serving.KEY,
        **shared,
    )


def server_command(recipe: TrainRecipe, settings: VllmModel, model: Path, port: int) -> list[str]:
    """Return the command of a generator server."""
    capacity = recipe.collector.n_async
    on_cpu = "cpu" in (vllm_version() or "")
    arguments = engine_arguments(Launch(str(model), settings.model, capacity), settings, on_cpu)
    options = ["--port", str(port), "--max-num-seqs", str(capacity)]
    options += ["--tensor-parallel-size", str(settings.tensor_parallel)]
    for name in _SHARED:
        value = arguments[name]
        if value is True:
            options.append(f"--{name.replace('_', '-')}")
        elif value is not None and value is not False:
            options += [f"--{name.replace('_', '-')}", str(value)]
    return [sys.executable, "-m", serving.__name__, str(model), *options]
