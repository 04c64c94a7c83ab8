"""Packed against plain on real, tiny models: what is right passes, what is broken is refused with what to set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.training.checks.models import WORDS, recipe_of, trainer_of
from tests.training.families import WINDOW, make_family
from training.checks.packed_logprobs import check_packing, probe_samples
from training.checks.results import EXACT, ROUNDED, CheckResult
from training.optimisation import logprobs
from training.optimisation.distributed import DistributedContext
from training.optimisation.logprobs import PackedPolicy, TokenScores
from training.optimisation.packing import MicroBatch, plan_micro_batches
from training.optimisation.trainer import Trainer

PROMPT = tuple(range(40, 70))


def checked(trainer: Trainer, window: int | None = None) -> list[CheckResult]:
    samples = probe_samples(PROMPT, WORDS, window)
    config = trainer.model.config.to_dict()
    return check_packing(trainer.scorer, samples, WORDS, config, rounded=trainer.ranks.sharded)


@pytest.mark.parametrize("family", ["llama_tied", "qwen3_moe", "gemma3", "gpt_oss", "lfm2", "qwen3_next"])
def test_what_is_packed_rightly_passes_far_below_the_tolerance(family: str, tmp_path: Path) -> None:
    results = checked(trainer_of(make_family(family, tmp_path)), WINDOW)
    assert [result.advice for result in results] == ["", ""]
    assert all(result.figure is not None and result.figure < EXACT / 50 for result in results)


def test_half_precision_has_a_tolerance_of_its_own(tmp_path: Path) -> None:
    made = recipe_of(compute={"dtype": "bfloat16"})
    ranks = DistributedContext(made.compute)
    try:
        packed, apart = checked(Trainer(make_family("qwen3", tmp_path), made, ranks))
    finally:
        ranks.close()
    assert packed.passed
    assert apart.passed
    assert (packed.tolerance, apart.figure) == (ROUNDED, 0)
    assert packed.figure is not None
    assert EXACT / 50 < packed.figure < ROUNDED / 5


@pytest.mark.parametrize("family", ["lfm2", "qwen3_next"])
def test_state_that_runs_on_into_the_next_sequence_is_refused(
    family: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As transformers itself runs such layers over a packed row."""
    monkeypatch.setattr(logprobs, "keep_sequences_apart", lambda _: 0)
    trainer = trainer_of(make_family(family, tmp_path))
    packed, apart = checked(trainer)
    assert packed.figure is not None
    assert apart.figure is not None
    assert packed.figure > 0.05
    assert apart.figure > 0.05
    assert packed.advice == apart.advice == "set packing.single = true"
    assert f"{packed.figure:.2g} nats" in packed.detail
    alone = checked(trainer_of(tmp_path, packing={"single": True}))
    assert all(result.passed for result in alone)


def test_what_only_shared_prompts_break_is_mended_by_one_sequence_a_micro_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = PackedPolicy.forward

    def forward(self: PackedPolicy, batch: MicroBatch, *values: Any, **named: Any) -> TokenScores:
        scores = whole(self, batch, *values, **named)
        return scores if batch.unrolled is None else scores._replace(logprobs=scores.logprobs + 0.01)

    monkeypatch.setattr(PackedPolicy, "forward", forward)
    packed, apart = checked(trainer_of(make_family("llama", tmp_path)))
    assert packed.advice == "set packing.single = true"
    assert apart.passed


def test_what_is_random_in_the_forward_pass_is_named(tmp_path: Path) -> None:
    from transformers import PhiConfig, PhiForCausalLM

    config = PhiConfig(
        vocab_size=640,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=2,
        initializer_range=0.3,
        resid_pdrop=0.3,
    )
    PhiForCausalLM(config).save_pretrained(tmp_path)
    packed, _ = checked(trainer_of(tmp_path))
    assert not packed.passed
    assert "set resid_pdrop to 0 in the model's config.json" in packed.advice


def test_the_second_of_a_prompt_follows_its_first_in_a_packing() -> None:
    samples = probe_samples(PROMPT, WORDS)
    (row,) = plan_micro_batches(samples, recipe_of().packing)
    assert all(row.index(place + 1) == row.index(place) + 1 for place in (0, 2, 4))


def test_a_window_is_tried_with_a_longer_sequence() -> None:
    assert max(sample.length for sample in probe_samples(PROMPT, WORDS, 100)) > 100
    assert max(sample.length for sample in probe_samples(PROMPT, WORDS, 4096)) < 100
