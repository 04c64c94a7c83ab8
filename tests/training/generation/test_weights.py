"""Weights on their way to generators, in memory and through a file."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from curation.policies.checkpoints import write_weights
from training.embedded_model import WEIGHTS
from training.generation.generators import TorchGenerator, read_weights
from training.optimisation.model import load_model


def moved() -> dict[str, Tensor]:
    return {name: value + 0.01 for name, value in load_model(WEIGHTS).state_dict().items()}


def held(generator: TorchGenerator) -> Mapping[str, Tensor]:
    return {name: value.clone() for name, value in generator._running().model.state_dict().items()}


def test_new_weights_in_memory_are_those_that_make_the_next_tokens() -> None:
    async def run() -> tuple[float, Mapping[str, Tensor], tuple[int, ...]]:
        async with TorchGenerator(WEIGHTS) as generator:
            seconds = await generator.update_weights(moved(), 3)
            made = await generator.generate([1, 5, 6], seed=1, max_tokens=2)
            return seconds, held(generator), made.versions

    seconds, state, versions = asyncio.run(run())
    assert seconds > 0
    assert versions == (3, 3)
    wanted = moved()
    assert all(torch.equal(state[name], value) for name, value in wanted.items())


def test_tied_weights_are_written_once(tmp_path: Path) -> None:
    state = load_model(WEIGHTS).state_dict()
    write_weights(state, tmp_path / "w")
    back = read_weights(tmp_path / "w")
    assert len(back) == len(state) - 1
    assert all(torch.equal(back[name], state[name]) for name in back)
