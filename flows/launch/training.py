"""A training run on the GPUs of one machine: generator servers on some, torchrun's processes on the others.

Invariants:
  - servers and trainers end with this process, however it ends, and servers when training does;
  - a server that dies is started again and gets the newest weights (`training.generation.vllm_client`);
  - training that ends with an error ends this with its last words.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

from curation.policies.vllm import serving
from curation.policies.vllm.server_processes import ServerProcesses
from curation.policies.vllm.startup import Launch, engine_arguments, require_vllm, vllm_version
from curation.records import ConfigError
from flows.launch.layout import TrainingLayout
from flows.run.training import RANK_MODULE
from training.embedded_model import resolve_model
from training.engines.embedded import ranks
from training.engines.placement import EmbeddedPlacement
from training.engines.processes import failure, supervised
from training.generation.vllm_settings import VllmGeneratorSettings
from training.recipe import TrainRecipe

_SHARED = ("dtype", "max_model_len", "gpu_memory_utilization", "kv_cache_memory_bytes", "enforce_eager")
"""Arguments of an engine that a server for training gets from the recipe."""


def is_training_recipe(path: Path) -> bool:
    """Return whether a file is a recipe of the trainer, by its tables; what is no recipe at all is none."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return "data" in table and "model" in table


def train_on(
    recipe: TrainRecipe,
    path: Path,
    out: Path,
    layout: TrainingLayout,
    overrides: Sequence[str] = (),
) -> Path:
    """Train by a recipe on one machine, or go on where the run folder has a run; return the folder of the model.

    Raises:
        PolicyError: the generators cannot be started.
        EngineError: a process of training failed; the text names it and its last lines.
    """
    return asyncio.run(_train_on(recipe, path, out, layout, overrides))


async def _train_on(
    recipe: TrainRecipe, path: Path, out: Path, layout: TrainingLayout, overrides: Sequence[str]
) -> Path:
    changes = list(overrides)
    servers: ServerProcesses | None = None
    try:
        if layout.generators:
            servers = _generator_servers(recipe, path, layout)
            await servers.start()
            urls = [replica.url for replica in servers.replicas]
            changes.append(generator_override(urls, -(-recipe.collector.n_async // len(urls))))
        await _train_in_ranks(path, out, layout.trainers, changes)
    finally:
        if servers is not None:
            await servers.stop()
    return out / "model"


def generator_override(urls: Sequence[str], per_server: int) -> str:
    """Return the setting with which a training run asks these servers, each for so many responses at once."""
    quoted = ", ".join(f'"{url}"' for url in urls)
    return f'generator={{ kind = "endpoint", urls = [{quoted}], per_server = {per_server} }}'


def server_command(recipe: TrainRecipe, settings: VllmGeneratorSettings, model: Path, port: int) -> list[str]:
    """Return the command of a generator server."""
    capacity = settings.capacity or recipe.collector.n_async
    on_cpu = "cpu" in (vllm_version() or "")
    arguments = engine_arguments(Launch(str(model), recipe.model, capacity), settings, on_cpu)
    options = ["--port", str(port), "--max-num-seqs", str(capacity)]
    options += ["--tensor-parallel-size", str(settings.tensor_parallel)]
    for name in _SHARED:
        value = arguments[name]
        if value is True:
            options.append(f"--{name.replace('_', '-')}")
        elif value is not None and value is not False:
            options += [f"--{name.replace('_', '-')}", str(value)]
    if recipe.compute.head_dtype != "model":
        options += ["--hf-overrides", f'{{"head_dtype": "{recipe.compute.head_dtype}"}}']
    return [sys.executable, "-m", serving.__name__, str(model), *options]


def training_arguments(path: Path, out: Path, overrides: Sequence[str]) -> list[str]:
    """Return what each process of the trainer is told; a run that its folder holds already goes on."""
    places = ["--resume", str(out)] if (out / "run.json").exists() else [str(path), "--out", str(out)]
    return [*places, *(word for override in overrides for word in ("--set", override))]


def _generator_servers(recipe: TrainRecipe, path: Path, layout: TrainingLayout) -> ServerProcesses:
    settings = recipe.generator
    if not isinstance(settings, VllmGeneratorSettings):
        raise ConfigError(f"recipe {path}: generator.kind = {settings.kind!r} starts no servers.")
    version, model = require_vllm(), resolve_model(recipe.model, path.parent.absolute())
    launch = Launch(str(model), recipe.model, settings.capacity or recipe.collector.n_async)
    return ServerProcesses(
        launch,
        settings,
        layout.generators,
        on_cpu="cpu" in version,
        lost=lambda why: print(why, file=sys.stderr),
        command=lambda port: server_command(recipe, settings, model, port),
    )


async def _train_in_ranks(path: Path, out: Path, gpus: tuple[str, ...], overrides: Sequence[str]) -> None:
    """Train in processes that end with this one.

    Raises:
        EngineError: one failed; the text names it and its last lines.
    """
    placement = EmbeddedPlacement(max(1, len(gpus)), gpus)
    command = ranks.rank_command(placement, RANK_MODULE, training_arguments(path, out, overrides))
    environment = ranks.rank_environment(placement, {**os.environ, "PYTHONUNBUFFERED": "1"})
    environment["PYTHONPATH"] = os.pathsep.join(place or os.getcwd() for place in sys.path)
    out.mkdir(parents=True, exist_ok=True)
    log = out / ranks.LOG
    process = await asyncio.create_subprocess_exec(
        *supervised(command),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=environment,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        with log.open("wb", buffering=0) as file:
            while chunk := await process.stdout.read(1 << 16):
                file.write(chunk)
                sys.stderr.write(chunk.decode(errors="replace"))
        status = await process.wait()
    finally:
        process.stdin.close()
        await process.wait()
    if status:
        raise failure(f"training in {out}", status, log)
