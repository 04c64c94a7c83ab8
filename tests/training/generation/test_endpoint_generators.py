"""Generation on a real vLLM server: weights change under requests, and those of another shape are refused."""

from __future__ import annotations

import asyncio
import fcntl
import os
from pathlib import Path
from typing import Any

import pytest
import torch

from curation.config import EndpointModel
from curation.records import PolicyError
from curation.storage import scratch
from tests.training.vllm_running import logprobs_by_version
from tests.vllm_servers import VllmServers
from training.embedded_model import WEIGHTS
from training.generation.endpoint_generators import EndpointGenerator, weights_folder
from training.generation.weight_transfer import Way, weights_way
from training.optimisation.model import load_model, load_tokenizer, save_model

END = 2


@pytest.fixture(scope="module")
def moved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The embedded model with its weights moved a little: the same sums in other words."""
    folder = tmp_path_factory.mktemp("models") / "moved"
    model, chance = load_model(WEIGHTS), torch.Generator().manual_seed(3)
    for parameter in model.parameters():
        parameter.data *= 1 + 0.1 * torch.randn(parameter.shape, generator=chance)
    save_model(model, load_tokenizer(WEIGHTS), folder)
    return folder


def settings(url: str) -> EndpointModel:
    return EndpointModel(kind="endpoint", model="embedded", revision="1", urls=(url,))


@pytest.mark.vllm
@pytest.mark.slow
@pytest.mark.parametrize("way", ["folder", "gloo"])
def test_weights_change_under_requests_and_every_token_knows_its_own(
    vllm_servers: VllmServers,
    moved: Path,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    way: Way,
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked = [{"role": "user", "content": "What is 385 + 927?"}]
    chat = load_tokenizer(WEIGHTS).apply_chat_template(asked, add_generation_prompt=True, return_dict=True)
    prompt = list(chat["input_ids"])
    monkeypatch.setattr(scratch, "IN_MEMORY", tmp_path)
    generator = EndpointGenerator(WEIGHTS, settings(vllm_servers.one().url), way=way)

    async def work() -> None:
        state, first = load_model(moved).state_dict(), load_model(WEIGHTS).state_dict()
        async with generator:
            both: list[Any] = []
            for _ in range(3):  # as long as no update comes in the middle of one; 16 of 48 run at once
                made = [asyncio.create_task(generator.generate(prompt, seed=seed, max_tokens=99)) for seed in range(48)]
                await asyncio.wait(made, return_when=asyncio.FIRST_COMPLETED)  # the others are under way
                assert await generator.update_weights(state, 1) > 0
                whole = await asyncio.gather(*made)
                both = [one for one in whole if len(set(one.versions)) == 2]
                after = await generator.generate(prompt, seed=5, max_tokens=99)
                assert set(after.versions) == {1}
                await generator.update_weights(first, 2)
                back = await generator.generate(prompt, seed=5, max_tokens=99)
                assert set(back.versions) == {2}
                if both:
                    break
                await generator.update_weights(first, 0)
            assert both
            assert len(list(generator._shared.glob("v*"))) <= 3
            assert capsys.readouterr().err == ""  # by the way that was asked for
        for one in [*both[:4], after, back]:
            tokens, versions = list(one.token_ids), list(one.versions)
            wanted = logprobs_by_version(prompt, tokens, versions, [WEIGHTS, moved, WEIGHTS])
            assert max(abs(a - b) for a, b in zip(one.logprobs, wanted, strict=True)) < 1e-3
            assert (tokens[-1] == END) is (one.finish == "stop")
            assert one.text == load_tokenizer(WEIGHTS).decode(tokens, skip_special_tokens=True)

    asyncio.run(work())
    assert list(tmp_path.iterdir()) == []


def test_weights_that_a_killed_run_left_in_memory_go(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(scratch, "IN_MEMORY", tmp_path)
    for name in (
        "goldilocks-vllm-weights-left",
        "goldilocks-vllm-weights-held",
        "goldilocks-vllm-weights-new",
        "others",
    ):
        (tmp_path / name / "v00000001").mkdir(parents=True)
        if name != "goldilocks-vllm-weights-new":
            os.utime(tmp_path / name, (1, 1))
    held = os.open(tmp_path / "goldilocks-vllm-weights-held", os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_SH)
    scratch_folder = weights_folder()
    made = Path(scratch_folder.path)
    os.close(held)
    assert made.parent == tmp_path
    kept = {path.name for path in tmp_path.iterdir() if path.is_dir()} - {made.name}
    assert kept == {"goldilocks-vllm-weights-held", "goldilocks-vllm-weights-new", "others"}
    scratch_folder.remove()
    assert not made.exists()


@pytest.mark.vllm
@pytest.mark.slow
def test_weights_of_another_shape_never_reach_the_server(vllm_servers: VllmServers) -> None:
    generator = EndpointGenerator(WEIGHTS, settings(vllm_servers.one().url))

    async def work() -> None:
        async with generator:
            with pytest.raises(PolicyError, match="shape"):
                await generator.update_weights({"lm_head.weight": torch.zeros(2, 2)}, 1)
            with pytest.raises(PolicyError, match="context is 256"):
                await generator.generate([5] * 256, seed=1, max_tokens=5)
            made = await generator.generate([1, 300, 269], seed=1, max_tokens=5)
            assert set(made.versions) == {0}

    asyncio.run(work())


@pytest.mark.vllm
@pytest.mark.slow
def test_many_long_prompts_at_once(vllm_servers: VllmServers) -> None:
    """More than a server reads in one step; in pieces, requests with seeds were its death on a CPU."""

    async def ask() -> list[Any]:
        prompts = [[1, *range(40 + number, 240 + number)] for number in range(48)]
        async with EndpointGenerator(WEIGHTS, settings(vllm_servers.one().url)) as generator:
            return await asyncio.gather(*(generator.generate(one, seed=1, max_tokens=4) for one in prompts))

    assert all(one.token_ids for one in asyncio.run(ask()))


HERE, THERE = ("http://127.0.0.1:8000", "http://localhost:8001/v1"), ("http://gpu-2:8000",)


@pytest.mark.parametrize(
    ("urls", "device", "vllm", "way"),
    [
        (HERE, "cpu", "0.32.0", "folder"),
        ((*HERE, *THERE), "cpu", "0.32.0", "gloo"),
        (HERE, "cuda:1", "0.32.0", "nccl"),
        (HERE, "cuda", None, "folder"),  # nothing here could join a group
        (HERE, "cuda", "0.32.0+cpu", "folder"),
        (THERE, "cuda", "0.32.0", "nccl"),
    ],
)
def test_the_way_follows_from_where_trainer_and_servers_are(
    urls: tuple[str, ...], device: str, vllm: str | None, way: str
) -> None:
    assert weights_way(urls, device, vllm) == way
