"""The generator over vLLM, with the real engine: weights change under requests that run; transformers is the judge."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psutil
import pytest
import torch

from curation.config import EngineSettings
from curation.policies.completions import TokenCompletion
from curation.records import PolicyError
from tests.training.checks.models import trainer_of
from tests.training.vllm_running import Running, logprobs_by_version, running
from training.checks.generator_logprobs import GeneratorChecks
from training.checks.results import EXACT
from training.generation.generators import GeneratorPool
from training.generation.vllm_generators import VllmGenerator
from training.optimisation.model import load_model

pytestmark = [pytest.mark.vllm, pytest.mark.slow]

PROMPT = [1, 40, 41, 42]


@pytest.fixture(scope="module")
def engine(random_model: Path) -> Iterator[Running]:
    """The one engine; tests that change its weights put them back, and the last test breaks it."""
    pytest.importorskip("vllm")
    with running(random_model) as one:
        yield one


def test_log_probabilities_are_right_on_both_sides(engine: Running, random_model: Path, other_model: Path) -> None:
    """New weights continue with the keys and values that the old ones left: the cache is kept."""

    async def across_an_update() -> list[TokenCompletion]:
        ask = engine.generator.generate
        requests = (partial(ask, [*PROMPT, 50 + n], seed=n, max_tokens=120) for n in range(8))
        asked = await engine.under_way(10, *requests)
        assert await engine.generator.update_weights(load_model(other_model).state_dict(), 1) > 0
        return await asyncio.gather(*asked)

    try:
        made = engine.run(across_an_update())
    finally:
        engine.put_back(random_model)
    assert all(list(one.versions) == sorted(one.versions) for one in made)
    mixed = [one for one in made if set(one.versions) == {0, 1}]
    assert mixed
    folders = [random_model, other_model]
    for one in mixed[:3]:
        expected = logprobs_by_version(list(one.prompt_ids), list(one.token_ids), list(one.versions), folders)
        assert one.logprobs == pytest.approx(expected, abs=1e-3)
        swapped = [1 - version for version in one.versions]
        wrong = logprobs_by_version(list(one.prompt_ids), list(one.token_ids), swapped, folders)
        assert max(abs(x - y) for x, y in zip(one.logprobs, wrong, strict=True)) > 1


def test_the_checks_before_a_run_pass_and_an_update_of_old_weights_does_not(
    engine: Running, random_model: Path
) -> None:
    trainer = trainer_of(random_model)
    prompts = [[*PROMPT, 60 + n] for n in range(8)]
    pool = GeneratorPool([engine.generator])
    passing = GeneratorChecks(pool, trainer.scorer, trainer.full_state_dict, prompts, "vllm", EXACT)
    old = {name: value.clone() for name, value in trainer.full_state_dict().items()}
    stale = GeneratorChecks(pool, trainer.scorer, lambda: old, prompts, "vllm", EXACT)
    try:
        assert [result.advice for result in engine.run(passing.run())] == ["", ""]
        agree, arrive = engine.run(stale.run())
    finally:
        engine.put_back(random_model)
    assert agree.passed
    assert arrive.figure is not None
    assert arrive.figure > 0.5
    assert "set the kind of its table to torch" in arrive.advice


def test_new_requests_reuse_no_stale_prompt(engine: Running, random_model: Path, other_model: Path) -> None:
    prompt = [1, *range(40, 140)]
    ask = engine.generator.generate
    engine.run(ask(prompt, seed=0, max_tokens=8))
    engine.run(engine.generator.update_weights(other_model, 1))
    try:
        made = engine.run(ask(prompt, seed=0, max_tokens=8))
    finally:
        engine.put_back(random_model)
    expected = logprobs_by_version(prompt, list(made.token_ids), [1] * len(made.token_ids), [random_model, other_model])
    assert made.logprobs == pytest.approx(expected, abs=1e-3)


def test_cancelling_aborts_in_the_engine(engine: Running) -> None:
    async def cancelled() -> int:
        ask = engine.generator.generate
        tasks = await engine.under_way(1, *(partial(ask, PROMPT, seed=n, max_tokens=200) for n in range(8)))
        for task in tasks:
            task.cancel()
        done = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(one, asyncio.CancelledError) for one in done)
        return len(engine.made())

    assert engine.run(cancelled()) == 0


def test_what_does_not_fit_is_refused_and_the_same_seed_draws_the_same(engine: Running, random_model: Path) -> None:
    ask = engine.generator.generate
    before = engine.run(ask(PROMPT, seed=3, max_tokens=20))
    state = dict(load_model(random_model).state_dict())
    for wrong, said in [
        ({**state, "model.norm.weight": torch.zeros(5)}, r"first model.norm.weight \(\(5,\), not \(96,\)\)"),
        ({name: value for name, value in state.items() if "layers.2" not in name}, r"layers.2.*\(absent, not"),
        ({**state, "model.extra": torch.ones(3)}, r"model.extra \(\(3,\), not absent\)"),
    ]:
        with pytest.raises(PolicyError, match=said):
            engine.run(engine.generator.update_weights(wrong, 1))
    with pytest.raises(PolicyError, match="takes 256 tokens, the context is 256"):
        engine.run(ask([5] * 256, seed=0, max_tokens=8))
    assert len(engine.run(ask([5] * 250, seed=0, max_tokens=100)).token_ids) <= 6
    assert engine.run(ask(PROMPT, seed=3, max_tokens=20)) == before
    assert engine.run(ask(PROMPT, seed=4, max_tokens=20)).token_ids != before.token_ids


def test_updates_leave_no_memory_behind(engine: Running, random_model: Path, other_model: Path) -> None:
    """Requests run meanwhile; 16 copies of the weights were 27 MB."""
    states = [load_model(folder).state_dict() for folder in (random_model, other_model)]

    async def sixteen(first: int) -> None:
        ask = engine.generator.generate
        asked = await engine.under_way(1, *(partial(ask, PROMPT, seed=n, max_tokens=240) for n in range(8)))
        for n in range(16):
            await engine.generator.update_weights(states[n % 2], first + n)
        made = await asyncio.gather(*asked)
        for one in made:
            assert sorted(one.versions) == list(one.versions)
            assert len(one.versions) == len(one.token_ids) == len(one.logprobs)

    def resident() -> int:
        return sum(child.memory_info().rss for child in psutil.Process().children(recursive=True))

    try:
        engine.run(sixteen(1))
        before = resident()
        engine.run(sixteen(17))
        grown = resident() - before
    finally:
        engine.put_back(random_model)
    assert grown < 8e6
    assert not list(Path("/dev/shm").glob("goldilocks-weights-*"))


def test_many_long_prompts_at_once(engine: Running) -> None:
    """More than the engine reads in one step; in pieces, requests with seeds were its death on a CPU."""

    async def ask() -> list[TokenCompletion]:
        prompts = [[1, *range(40 + n, 240 + n)] for n in range(48)]
        return await asyncio.gather(*(engine.generator.generate(p, seed=1, max_tokens=4) for p in prompts))

    assert all(one.token_ids for one in engine.run(ask()))


def test_a_folder_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="there is no folder"):
        VllmGenerator(tmp_path / "absent", EngineSettings())


def test_after_an_update_that_fails_half_way_no_token_is_taken(
    engine: Running, random_model: Path, tmp_path: Path
) -> None:
    """The last test: the engine is of no use afterwards."""
    broken = tmp_path / "broken"
    shutil.copytree(random_model, broken)
    whole = (broken / "model.safetensors").read_bytes()
    (broken / "model.safetensors").write_bytes(whole[: len(whole) // 2])  # the header is whole, the tensors are not

    async def attempt() -> None:
        ask = engine.generator.generate
        (asked,) = await engine.under_way(1, partial(ask, PROMPT, seed=0, max_tokens=240))
        failing = (engine.generator.update_weights(broken, 1), asked, ask(PROMPT, seed=0, max_tokens=8))
        for work in failing:
            with pytest.raises(PolicyError, match="weights 1 were not exchanged to the end"):
                await work

    engine.run(attempt())
