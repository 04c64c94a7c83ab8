"""Checkpoints, published models and adapters: whole or absent, to the bit, refusals, and a reference policy."""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.distributed.checkpoint import FileSystemReader

from curation.records import ConfigError, PolicyError, StoreError
from tests.training.families import make_family
from tests.training.optimisation.test_trainer import recipe, samples, solo
from training.embedded_model import WEIGHTS
from training.generation.checkpoint_tensors import read_tensors
from training.objectives.grpo import GrpoSettings
from training.optimisation.checkpoint import JsonlLog, PendingCheckpoint, last_checkpoint, restore_trainer
from training.optimisation.distributed import DistributedContext
from training.optimisation.model import MARK, load_model, load_tokenizer, save_model, to_model_names
from training.optimisation.scoring import ReferencePolicy
from training.optimisation.trainer import Trainer


def saved(trainer: Trainer, run: Path, step: int = 1, folder: Path = WEIGHTS, keep: int = 2) -> Path:
    return PendingCheckpoint(run, step, trainer, {"logs": {}}, load_tokenizer(folder), keep=keep).finish()


def weights(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: value.detach().clone() for name, value in model.named_parameters()}


def same(one: Mapping[str, torch.Tensor], two: Mapping[str, torch.Tensor]) -> bool:
    return all(torch.equal(value, two[name]) for name, value in one.items())


def test_only_the_last_ones_stay_one_without_its_mark_is_none_and_a_damaged_one_is_an_error(tmp_path: Path) -> None:
    trainer = solo()
    assert last_checkpoint(tmp_path) is None
    for step in (1, 2, 3):
        saved(trainer, tmp_path, step)
    assert sorted(path.name for path in (tmp_path / "checkpoints").iterdir()) == ["step-00000002", "step-00000003"]
    (tmp_path / "checkpoints/step-00000003/DONE.json").unlink()
    found = last_checkpoint(tmp_path)
    assert found.step == 2
    state = found.folder / "state.json"
    state.write_text(json.dumps({**json.loads(state.read_text()), "format": 99}))
    with pytest.raises(StoreError, match="format 99"):
        last_checkpoint(tmp_path)
    state.write_text("{")
    with pytest.raises(StoreError, match="damaged"):
        last_checkpoint(tmp_path)


def test_training_goes_on_while_a_checkpoint_is_written_and_from_it_bit_by_bit(tmp_path: Path) -> None:
    """What is written is the state of the moment when it was begun, byte for byte; until then the one before counts."""
    trainer, run = solo(), tmp_path / "run"
    trainer.step(samples(), GrpoSettings())
    at_once = saved(trainer, tmp_path / "at_once")
    before = {name: value.clone() for name, value in trainer.full_state_dict().items()}
    saved(trainer, run, 0)
    pending = PendingCheckpoint(run, 1, trainer, {"logs": {}}, load_tokenizer(WEIGHTS), keep=2)
    wanted = trainer.step(samples(seed=2), GrpoSettings())
    torch.rand(3)
    assert last_checkpoint(run).step == 0  # a kill here leaves this one
    folder = pending.finish()
    for name in ("weights/__0_0.distcp", "state.json", "hf/model.safetensors"):
        assert (folder / name).read_bytes() == (at_once / name).read_bytes()
    second = solo()
    restore_trainer(last_checkpoint(run), second)
    assert second.steps_taken == 1
    restored = second.full_state_dict()
    assert same(restored, before)
    assert same(restored, load_model(folder / "hf").state_dict())
    assert not any(torch.equal(restored[name], value) for name, value in read_tensors(WEIGHTS))
    taken = second.step(samples(seed=2), GrpoSettings())
    assert (taken.loss, taken.learning_rate) == (wanted.loss, wanted.learning_rate)
    assert same(second.full_state_dict(), trainer.full_state_dict())


def test_a_log_is_cut_back(tmp_path: Path) -> None:
    with closing(JsonlLog(tmp_path / "log.jsonl")) as log:
        log.append({"step": 1})
        place = log.offset()
        log.append({"step": 2, "text": "später"})
    with closing(JsonlLog(tmp_path / "log.jsonl")) as again:
        again.truncate(place)
        again.append({"step": 2})
        with pytest.raises(StoreError, match="changed since"):
            again.truncate(10_000)
    rows = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert rows == [{"step": 1}, {"step": 2}]


def test_publishing_again_replaces_the_folder_and_leaves_nothing_aside(
    random_model: Path, other_model: Path, tmp_path: Path
) -> None:
    first = save_model(load_model(random_model), load_tokenizer(random_model), tmp_path / "model")
    (tmp_path / "model" / "stray.txt").write_text("old")
    files = {"README.md": "new\n"}
    second = save_model(load_model(other_model), load_tokenizer(other_model), tmp_path / "model", extra_files=files)
    assert first != second == json.loads((tmp_path / "model" / MARK).read_text())["revision"]
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert not (tmp_path / "model" / "stray.txt").exists()
    assert (tmp_path / "model" / "README.md").read_text() == "new\n"


def test_what_is_not_whole_is_refused(random_model: Path, tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"config\.json is missing"):
        load_model(tmp_path)
    tokenizer, folder = load_tokenizer(random_model), tmp_path / "model"
    tokenizer.chat_template = None
    save_model(load_model(random_model), tokenizer, folder)
    with pytest.raises(PolicyError, match="no chat template"):
        load_tokenizer(folder)
    (folder / "model.safetensors").unlink()
    with pytest.raises(PolicyError, match="cannot load this model"):
        load_model(folder)


def test_whoever_overwrites_the_file_does_not_change_a_loaded_model(random_model: Path, tmp_path: Path) -> None:
    """As ``cp`` does it: in place. Parameters mapped from the file take the new bytes, trained or not."""
    file = shutil.copytree(random_model, tmp_path / "model") / "model.safetensors"
    model = load_model(file.parent)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(1.0)
    before = [parameter.clone() for parameter in model.parameters()]
    file.write_bytes(file.read_bytes())
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    assert model.get_input_embeddings().weight is model.get_output_embeddings().weight


def test_weights_that_are_no_numbers_are_named_before_training(random_model: Path, tmp_path: Path) -> None:
    model = load_model(random_model)
    name, value = next(iter(model.named_parameters()))
    value.data[0, 0] = float("nan")
    save_model(model, load_tokenizer(random_model), tmp_path / "nan")
    with pytest.raises(PolicyError, match=f"1 of its tensors hold NaN or infinite weights, the first is {name}"):
        load_model(tmp_path / "nan", training=True)


def held(folder: Path = WEIGHTS, **objective: Any) -> tuple[Trainer, ReferencePolicy]:
    trainer, made = solo(objective=objective, optim={"warmup_steps": 0, "learning_rate": 1e-4}), recipe()
    reference = ReferencePolicy(folder, made, DistributedContext(made.compute), trainer.model.config.vocab_size)
    trainer.ask(reference)
    return trainer, reference


def test_the_reference_says_what_the_policy_says_until_the_first_step() -> None:
    trainer, reference = held(kl_coef=0.5)
    own, scored = trainer.scorer.logprobs(samples()), reference.scorer.logprobs(samples())
    assert all(torch.equal(first, second) for first, second in zip(own, scored, strict=True))
    before, settings = weights(reference.policy), GrpoSettings(kl_coef=0.5)
    kept = [trainer.step(samples(), settings).statistics["kl_reference"].value for _ in range(2)]
    assert kept[0] == 0 < kept[1]
    assert same(weights(reference.policy), before)


def test_a_model_of_another_vocabulary_is_refused() -> None:
    made = recipe()
    with pytest.raises(ConfigError, match=r"has \d+ tokens, the policy 7"):
        ReferencePolicy(WEIGHTS, made, DistributedContext(made.compute), 7)


def test_a_checkpoint_of_another_reference_is_refused(tmp_path: Path, random_model: Path) -> None:
    saved(held(kl_coef=0.5)[0], tmp_path)
    with pytest.raises(StoreError, match="reference"):
        restore_trainer(last_checkpoint(tmp_path), held(random_model, kl_coef=0.5)[0])


needs_peft = pytest.mark.skipif(
    importlib.util.find_spec("peft") is None, reason="peft is not installed (pip install 'goldilocks-rl[lora]')"
)
LORA: dict[str, Any] = {"rank": 4}
STEP = GrpoSettings(eps_high=100.0)


def adapted(folder: Path = WEIGHTS, **changes: Any) -> Trainer:
    return solo(folder, **{"optim": {"warmup_steps": 0, "learning_rate": 1e-2}, "lora": LORA, **changes})


def logprobs(trainer: Trainer) -> torch.Tensor:
    return torch.cat(list(trainer.scorer.logprobs(samples())))


def plain(trainer: Trainer) -> Trainer:
    """A trainer without adapters that has this one's weights."""
    other = solo(optim={"warmup_steps": 0})
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
    saved(trainer, tmp_path)
    wanted, found = trainer.step(samples(seed=2), STEP), last_checkpoint(tmp_path)
    stored = FileSystemReader(found.folder / "weights").read_metadata().state_dict_metadata
    of_weights = [name for name in stored if name.startswith(("model.", "optimiser.state."))]
    assert of_weights
    assert all(".lora_" in name for name in of_weights)
    again = adapted()
    restore_trainer(found, again)
    taken = again.step(samples(seed=2), STEP)
    assert (taken.loss, taken.gradient_norm) == (wanted.loss, wanted.gradient_norm)
    assert same(trainer.full_state_dict(), again.full_state_dict())
    again.base_revision = "another"
    for other, said in (
        (adapted(lora={"rank": 2}), r"table \[lora\] was .*'rank': 4.*given now is .*'rank': 2"),
        (adapted(lora=None), r"\[lora\] was .*given now is none"),
        (again, "the one given now is another"),
    ):
        with pytest.raises(StoreError, match=said):
            restore_trainer(found, other)


@needs_peft
@pytest.mark.parametrize("family", ["mistral3", "mixtral"])
def test_exports_are_the_merged_model_and_adapters_that_peft_loads(tmp_path: Path, family: str) -> None:
    from peft import PeftModel

    folder = make_family(family, tmp_path / "model")
    trainer = adapted(folder)
    trainer.step(samples(), STEP)
    whole, wanted = saved(trainer, tmp_path, folder=folder), logprobs(trainer)
    assert (logprobs(adapted(whole / "hf", lora=None)) - wanted).abs().max() < 1e-4
    if family != "mistral3":  # there the adapter has the names of the whole model, which sees too
        loaded = PeftModel.from_pretrained(load_model(folder), str(whole / "adapter")).merge_and_unload()
        loaded.requires_grad_(True)
        other = Trainer(None, recipe(), DistributedContext(recipe().compute), loaded)
        assert (logprobs(other) - wanted).abs().max() < 1e-4


def test_what_adapters_cannot_do_or_lack_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(ConfigError, match=r"\[lora\] needs peft.*goldilocks-rl\[lora\]"):
        adapted()
