"""The generator over vLLM, with the real engine: weights change under requests that run; transformers is the judge."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch

from curation.config import EngineSettings
from curation.policies.completions import TokenCompletion
from curation.records import PolicyError
from tests.training.checks.models import trainer_of
from tests.training.vllm_running import Running, logprobs_by_version, running, says_only
from training.checks.generator_logprobs import GeneratorChecks
from training.checks.results import EXACT
from training.generation.generators import GeneratorPool
from training.generation.vllm_generators import VllmGenerator
from training.optimisation.model import load_model

pytestmark = [pytest.mark.vllm, pytest.mark.slow]

A, B = 300, 301
PROMPT = [1, 40, 41, 42]


@pytest.fixture(scope="module")
def engine(random_model: Path) -> Iterator[Running]:
    """The one engine; tests that change its weights put them back."""
    pytest.importorskip("vllm")
    with running(random_model) as one:
        yield one


@pytest.fixture(scope="module")
def two_voices(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A model that always says A, and one that always says B."""
    folder = tmp_path_factory.mktemp("voices")
    return says_only(A, folder / "a"), says_only(B, folder / "b")


async def across_an_update(
    engine: Running, weights: Any, requests: int = 8, tokens: int = 120
) -> list[TokenCompletion]:
    """Attempts whose weights become version 1 while they are under way."""
    ask = engine.generator.generate
    asked = await engine.under_way(
        10, *(partial(ask, [*PROMPT, 50 + n], seed=n, max_tokens=tokens) for n in range(requests))
    )
    assert await engine.generator.update_weights(weights, 1) > 0
    return await asyncio.gather(*asked)


def test_one_attempt_says_a_then_b(engine: Running, two_voices: tuple[Path, Path], random_model: Path) -> None:
    a, b = two_voices
    engine.run(engine.generator.update_weights(a, 0))
    try:
        made = engine.run(across_an_update(engine, b))
    finally:
        engine.put_back(random_model)
    for one in made:
        assert (len(one.token_ids), one.finish) == (120, "length")  # nothing was aborted or begun again
        old = one.versions.count(0)
        assert 10 <= old < 120
        assert one.versions == (0,) * old + (1,) * (120 - old)
        assert one.token_ids == (A,) * old + (B,) * (120 - old)
        assert one.logprobs == pytest.approx([0.0] * 120, abs=1e-5)  # under the other model each were near -29
    assert len({one.versions for one in made}) <= 2  # all were paused at the same step, but for one that joined later


def test_log_probabilities_are_right_on_both_sides(engine: Running, random_model: Path, other_model: Path) -> None:
    """New weights go on upon the keys and values that the old ones left: the cache is kept."""
    try:
        made = engine.run(across_an_update(engine, load_model(other_model).state_dict()))
    finally:
        engine.put_back(random_model)
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


def test_the_same_seed_draws_the_same(engine: Running) -> None:
    ask = engine.generator.generate
    first, second, third = (engine.run(ask(PROMPT, seed=seed, max_tokens=40)) for seed in (3, 4, 3))
    assert first == third
    assert first.token_ids != second.token_ids
    assert set(first.versions) == {0}


def test_an_end_token_is_the_last(engine: Running, tmp_path: Path, random_model: Path) -> None:
    """The model always says its end token, hence at once."""
    engine.run(engine.generator.update_weights(says_only(2, tmp_path / "ends"), 5))
    try:
        made = engine.run(engine.generator.generate(PROMPT, seed=0, max_tokens=40))
    finally:
        engine.put_back(random_model)
    assert (made.token_ids, made.versions, made.finish, made.text) == ((2,), (5,), "stop", "")


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


def test_weights_of_another_shape_are_refused(engine: Running, random_model: Path) -> None:
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
    assert engine.run(ask(PROMPT, seed=3, max_tokens=20)) == before


def test_a_prompt_that_fills_the_context_is_refused(engine: Running) -> None:
    with pytest.raises(PolicyError, match="takes 256 tokens, the context is 256"):
        engine.run(engine.generator.generate([5] * 256, seed=0, max_tokens=8))
    made = engine.run(engine.generator.generate([5] * 250, seed=0, max_tokens=100))
    assert len(made.token_ids) <= 6


def test_updates_leave_no_memory_behind(engine: Running, random_model: Path, other_model: Path) -> None:
    """Requests run all the while; 16 copies of the weights were 27 MB."""
    states = [load_model(folder).state_dict() for folder in (random_model, other_model)]

    async def sixteen(first: int) -> list[float]:
        ask = engine.generator.generate
        asked = await engine.under_way(1, *(partial(ask, PROMPT, seed=n, max_tokens=240) for n in range(8)))
        took = [await engine.generator.update_weights(states[n % 2], first + n) for n in range(16)]
        made = await asyncio.gather(*asked)
        for one in made:
            assert sorted(one.versions) == list(one.versions)
            assert len(one.versions) == len(one.token_ids) == len(one.logprobs)
        return took

    def resident() -> int:
        return sum(child.memory_info().rss for child in psutil.Process().children(recursive=True))

    try:
        engine.run(sixteen(1))
        before = resident()
        took = engine.run(sixteen(17))
        grown = resident() - before
    finally:
        engine.put_back(random_model)
    print(f"seconds an update: {sorted(took)}; grown by {grown / 1e6:.1f} MB")
    assert grown < 8e6
    assert not list(Path("/dev/shm").glob("goldilocks-weights-*"))


def test_many_long_prompts_at_once(engine: Running) -> None:
    """More than the engine reads in one step; in pieces, requests with seeds were its death on a CPU."""

    async def ask() -> list[TokenCompletion]:
        prompts = [[1, *range(40 + n, 240 + n)] for n in range(48)]
        return await asyncio.gather(*(engine.generator.generate(p, seed=1, max_tokens=4) for p in prompts))

    assert all(one.token_ids for one in engine.run(ask()))


@pytest.mark.slow
def test_an_update_that_fails_half_way_gives_nobody_a_token_more(random_model: Path, tmp_path: Path) -> None:
    pytest.importorskip("vllm")
    broken = tmp_path / "broken"
    shutil.copytree(random_model, broken)
    whole = (broken / "model.safetensors").read_bytes()
    (broken / "model.safetensors").write_bytes(whole[: len(whole) // 2])  # the header is whole, the tensors are not

    async def attempt(engine: Running) -> None:
        ask = partial(engine.generator.generate, PROMPT, seed=0, max_tokens=240)
        (asked,) = await engine.under_way(1, ask)
        with pytest.raises(PolicyError, match="weights 1 were not exchanged to the end"):
            await engine.generator.update_weights(broken, 1)
        with pytest.raises(PolicyError, match="weights 1 were not exchanged to the end"):
            await asked
        with pytest.raises(PolicyError, match="weights 1 were not exchanged to the end"):
            await engine.generator.generate(PROMPT, seed=0, max_tokens=8)

    with running(random_model) as engine:
        engine.run(attempt(engine))


def test_a_folder_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="there is no folder"):
        VllmGenerator(tmp_path / "absent", EngineSettings())
