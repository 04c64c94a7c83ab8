"""Adapters: the model itself before the first step, merged weights that compute the same, checkpoints, and refusals.

Two ranks: `test_families_ranks`.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.distributed.checkpoint import FileSystemReader

from curation.records import ConfigError, StoreError
from tests.training.families import make_family
from tests.training.optimisation.test_trainer import recipe, samples
from training.embedded_model import WEIGHTS
from training.objectives.grpo import GrpoSettings
from training.optimisation.checkpoint import PendingCheckpoint, last_checkpoint, restore_trainer
from training.optimisation.distributed import DistributedContext
from training.optimisation.model import load_model, load_tokenizer, to_model_names
from training.optimisation.trainer import Trainer

needs_peft = pytest.mark.skipif(
    importlib.util.find_spec("peft") is None, reason="peft is not installed (pip install 'goldilocks-rl[lora]')"
)
LORA: dict[str, Any] = {"rank": 4}
AT_ONCE = {"warmup_steps": 0}
STEP = GrpoSettings(eps_high=100.0)


def adapted(folder: Path = WEIGHTS, **changes: Any) -> Trainer:
    made = recipe(**{"optim": {"warmup_steps": 0, "learning_rate": 1e-2}, "lora": LORA, **changes})
    return Trainer(folder, made, DistributedContext(made.compute))


def logprobs(trainer: Trainer) -> torch.Tensor:
    return torch.cat(list(trainer.scorer.logprobs(samples())))


def plain(trainer: Trainer, folder: Path = WEIGHTS) -> Trainer:
    made = recipe(optim=AT_ONCE)
    other = Trainer(folder, made, DistributedContext(made.compute))
    other.model.load_state_dict(to_model_names(other.model, trainer.full_state_dict()), strict=False)
    return other


@pytest.mark.slow
@needs_peft
def test_the_policy_begins_as_the_model_and_its_merged_weights_say_the_same_after_steps() -> None:
    trainer = adapted()
    before = load_model(WEIGHTS).state_dict()
    assert torch.equal(logprobs(trainer), logprobs(plain(adapted())))
    assert all(torch.equal(value, before[name]) for name, value in trainer.full_state_dict().items())
    losses = [trainer.step(samples(), STEP).loss for _ in range(4)]
    assert losses[-1] < losses[0]
    merged = trainer.full_state_dict()
    assert before.keys() - merged.keys() <= {"lm_head.weight"}  # tied
    assert merged.keys() <= before.keys()
    changed = {name for name, value in merged.items() if not torch.equal(value, before[name])}
    assert {name.split(".")[-2] for name in changed} >= {"q_proj", "o_proj", "up_proj", "down_proj"}
    assert not any("norm" in name or "embed" in name or "lm_head" in name for name in changed)
    assert (logprobs(trainer) - logprobs(plain(trainer))).abs().max() < 2e-5


@pytest.mark.slow
@needs_peft
def test_a_checkpoint_holds_adapters_alone_and_goes_on_to_the_bit(tmp_path: Path) -> None:
    trainer = adapted()
    trainer.step(samples(), STEP)
    PendingCheckpoint(tmp_path, 1, trainer, {"logs": {}}, load_tokenizer(WEIGHTS), keep=2).finish()
    wanted = trainer.step(samples(seed=2), STEP)
    found = last_checkpoint(tmp_path)
    assert found is not None
    stored = FileSystemReader(found.folder / "weights").read_metadata().state_dict_metadata
    of_weights = [name for name in stored if name.startswith(("model.", "optimiser.state."))]
    assert of_weights
    assert all(".lora_" in name for name in of_weights)
    again = adapted()
    restore_trainer(found, again)
    taken = again.step(samples(seed=2), STEP)
    assert (taken.loss, taken.gradient_norm) == (wanted.loss, wanted.gradient_norm)
    one, two = trainer.full_state_dict(), again.full_state_dict()
    assert all(torch.equal(value, two[name]) for name, value in one.items())
    with pytest.raises(StoreError, match=r"table \[lora\] was .*'rank': 4.*given now is .*'rank': 2"):
        restore_trainer(found, adapted(lora={"rank": 2}))
    with pytest.raises(StoreError, match=r"\[lora\] was .*given now is none"):
        restore_trainer(found, adapted(lora=None))
    again.base_revision = "another"
    with pytest.raises(StoreError, match="the one given now is another"):
        restore_trainer(found, again)


@needs_peft
@pytest.mark.parametrize("family", ["mistral3", "mixtral"])
def test_exports_are_the_merged_model_and_adapters_that_peft_loads(tmp_path: Path, family: str) -> None:
    from peft import PeftModel

    folder = make_family(family, tmp_path / "model")
    trainer = adapted(folder)
    trainer.step(samples(), STEP)
    whole = PendingCheckpoint(tmp_path, 1, trainer, {"logs": {}}, load_tokenizer(folder), keep=2).finish()
    wanted = logprobs(trainer)
    merged = adapted(whole / "hf", lora=None)
    assert (logprobs(merged) - wanted).abs().max() < 1e-4
    base = load_model(folder)
    if family != "mistral3":  # there the adapter has the names of the whole model, which sees too
        loaded: Any = PeftModel.from_pretrained(base, str(whole / "adapter")).merge_and_unload()
        loaded.requires_grad_(True)
        other = Trainer(None, recipe(), DistributedContext(recipe().compute), loaded)
        assert (logprobs(other) - wanted).abs().max() < 1e-4


def test_what_adapters_cannot_do_or_lack_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(ConfigError, match=r"\[lora\] needs peft.*goldilocks-rl\[lora\]"):
        adapted()
