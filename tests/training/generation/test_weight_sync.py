"""Weights on their way to generators: in memory, through a file in memory, and by published folders."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from torch import Tensor

from curation.policies.checkpoints import write_weights
from tests.waiting import until
from training.embedded_model import WEIGHTS
from training.generation.generators import TorchGenerator, read_weights
from training.generation.weight_sync import SyncMethod, WeightPublisher, WeightSync, follow_published, latest_version
from training.optimisation.model import load_model, load_tokenizer


def moved() -> dict[str, Tensor]:
    return {name: value + 0.01 for name, value in load_model(WEIGHTS).state_dict().items()}


def held(generator: TorchGenerator) -> Mapping[str, Tensor]:
    return {name: value.clone() for name, value in generator._running().model.state_dict().items()}


@pytest.mark.parametrize("way", ["memory", "file"])
def test_both_ways_bring_the_same_weights(way: SyncMethod) -> None:
    async def run() -> tuple[float, Mapping[str, Tensor], tuple[int, ...]]:
        async with TorchGenerator(WEIGHTS) as generator:
            with WeightSync(generator, way) as hand_over:
                seconds = await hand_over.update(moved(), 3)
                left = list(hand_over._folder.iterdir()) if hand_over._folder is not None else []
                assert not left
            made = await generator.generate([1, 5, 6], seed=1, max_tokens=2)
            return seconds, held(generator), made.versions

    seconds, state, versions = asyncio.run(run())
    assert seconds > 0
    assert versions == (3, 3)
    wanted = moved()
    assert all(torch.equal(state[name], value) for name, value in wanted.items())


def test_published_versions_reach_whoever_follows(tmp_path: Path) -> None:
    model, tokenizer = load_model(WEIGHTS), load_tokenizer(WEIGHTS)

    async def run() -> tuple[tuple[int, ...], Mapping[str, Tensor]]:
        publisher = WeightPublisher(tmp_path, model, tokenizer, keep=2)
        async with TorchGenerator(WEIGHTS) as generator:
            watching = asyncio.create_task(follow_published(tmp_path, generator, interval_s=0.01))
            for version in (1, 2, 3):
                await asyncio.to_thread(publisher.publish, version, moved())
            await until(lambda: generator._running().version >= 3)
            watching.cancel()
            made = await generator.generate([1, 5, 6], seed=1, max_tokens=1)
            return made.versions, held(generator)

    versions, state = asyncio.run(run())
    assert versions == (3,)
    assert torch.equal(state["model.embed_tokens.weight"], moved()["model.embed_tokens.weight"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["v00000002", "v00000003"]


def test_what_is_half_written_is_not_taken(tmp_path: Path) -> None:
    assert latest_version(tmp_path) is None
    publisher = WeightPublisher(tmp_path, load_model(WEIGHTS), load_tokenizer(WEIGHTS))
    publisher.publish(1)
    (tmp_path / "v00000002").mkdir()
    found = latest_version(tmp_path)
    assert found is not None
    assert found[0] == 1


def test_tied_weights_are_written_once(tmp_path: Path) -> None:
    state = load_model(WEIGHTS).state_dict()
    write_weights(state, tmp_path / "w")
    back = read_weights(tmp_path / "w")
    assert len(back) == len(state) - 1
    assert all(torch.equal(back[name], state[name]) for name in back)
