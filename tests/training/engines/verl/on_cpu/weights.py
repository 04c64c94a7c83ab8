"""A checkpoint engine of verl's in the place of nccl's: the first rank writes the weights, the others read a file."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import torch
from verl.checkpoint_engine.base import CheckpointEngine, CheckpointEngineRegistry

from tests.waiting import TICK_S


@CheckpointEngineRegistry.register("nccl")
class FileEngine(CheckpointEngine):
    def __init__(self, bucket_size: int, is_master: bool = False) -> None:
        self._is_master, self._file = is_master, Path()

    def prepare(self) -> Any:
        return tempfile.mktemp(prefix="weights-") if self._is_master else None

    @classmethod
    def build_topology(cls, actors: int, rollouts: int, metadata: list[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        return {"file": [metadata[0]] * actors}, {"file": [metadata[0]] * rollouts}

    def init_process_group(self, file: str) -> None:
        self._file = Path(file)

    def finalize(self) -> None:
        self._file.unlink(missing_ok=True)

    async def send_weights(self, weights: Iterable[tuple[str, torch.Tensor]], global_steps: int | None = None) -> None:
        state = {name: value.detach().clone() for name, value in weights}  # every rank takes part in gathering
        if self._is_master:
            aside = self._file.with_suffix(".part")
            torch.save(state, aside)
            os.replace(aside, self._file)

    async def receive_weights(self, global_steps: int | None = None) -> AsyncIterator[tuple[str, torch.Tensor]]:
        while not self._file.exists():
            await asyncio.sleep(TICK_S)
        for pair in torch.load(self._file).items():
            yield pair
