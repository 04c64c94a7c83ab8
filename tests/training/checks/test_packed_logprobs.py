"""Packed against plain on real, tiny models: what is right passes, what is broken is refused with what to set."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.places import IS_WHOLE
from tests.training.checks.models import WORDS, trainer_of
from tests.training.families import WINDOW, make_family
from training.checks import EXACT, CheckResult, check_packing, probe_samples
from training.optimisation import logprobs
from training.optimisation.trainer import Trainer

PROMPT = tuple(range(40, 70))


def checked(trainer: Trainer, window: int | None = None) -> CheckResult:
    samples = probe_samples(PROMPT, WORDS, window)
    return check_packing(trainer.scorer, samples, rounded=trainer.ranks.sharded)


@pytest.mark.parametrize(
    "family", ["gpt_oss", "qwen3_next", *(["llama_tied", "qwen3_moe", "gemma3", "lfm2"] if IS_WHOLE else ())]
)
def test_what_is_packed_rightly_passes_far_below_the_tolerance(family: str, tmp_path: Path) -> None:
    result = checked(trainer_of(make_family(family, tmp_path)), WINDOW)
    assert result.passed
    assert result.figure is not None
    assert result.figure < EXACT / 50


def test_state_that_runs_on_into_the_next_sequence_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As transformers itself runs such layers over a packed row."""
    monkeypatch.setattr(logprobs, "keep_sequences_apart", lambda _: 0)
    trainer = trainer_of(make_family("qwen3_next", tmp_path))
    packed = checked(trainer)
    assert packed.figure is not None
    assert packed.figure > 0.05
    assert packed.advice == "set packing.single = true"
    assert f"{packed.figure:.2g} nats" in packed.detail
    assert checked(trainer_of(tmp_path, packing={"single": True})).passed


def test_what_is_random_in_the_forward_pass_is_refused(tmp_path: Path) -> None:
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
    packed = checked(trainer_of(tmp_path))
    assert not packed.passed
    assert "dropout" in packed.advice
