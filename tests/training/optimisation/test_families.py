"""Every family of models, tiny and random: packed as unpacked, sampled with torch, a step, saved, loaded again."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from curation.records import ConfigError, PolicyError, StoreError
from tests.places import IS_WHOLE, ROOT
from tests.training.families import TRAINED, families_table, make_family, text_model
from tests.training.optimisation.packed import pack_samples
from tests.training.optimisation.test_trainer import recipe
from training.config import PackingSettings
from training.generation.batched_decoding import DecodingEngine, DecodingRequest
from training.generation.checkpoint_tensors import fitting, read_tensors, tensor_shapes
from training.objectives.grpo import GrpoSettings
from training.optimisation import attention
from training.optimisation.distributed import DistributedContext
from training.optimisation.logprobs import PackedPolicy
from training.optimisation.model import active_parameters, load_model, load_tokenizer, save_model
from training.optimisation.packing import TrainingSample
from training.optimisation.trainer import Trainer

QUICK = ("mistral3", "qwen3_moe", "gemma3", "lfm2")
"""One of each kind: a part of a larger model, a mixture, windows in some layers, a state."""

PLAIN = {
    *("llama", "qwen2", "qwen3", "mistral", "mistral_window", "gemma2", "gemma3_text"),
    *("granite", "cohere", "cohere2", "smollm3", "olmo2", "glm4"),
}
"""Dense models with a checkpoint's usual names: `llama_tied` is saved as all of them are."""

ALSO = ("llama_tied", "gemma2", "cohere2", "phi3", "deepseek_v3", "gpt_oss", "qwen3_next", "granite_hybrid")
"""What else changes how a model is packed, sampled or saved; the gate `training/families` has every family."""

TRIED = TRAINED if IS_WHOLE else (*QUICK, *ALSO)
EVERY = [pytest.param(family, marks=() if family in QUICK else pytest.mark.slow) for family in TRIED]
PACKING = PackingSettings(micro_batch_tokens=256)
pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("families")


@pytest.fixture(params=EVERY)
def folder(request: pytest.FixtureRequest, folders: Path) -> Path:
    family: str = request.param
    return folders / family if (folders / family).is_dir() else make_family(family, folders / family)


def samples(seed: int = 0) -> list[TrainingSample]:
    """Two responses to one prompt, and one to another, longer than the windows."""
    chance = random.Random(seed)

    def tokens(count: int) -> list[int]:
        return [chance.randrange(10, 250) for _ in range(count)]

    shared = tokens(9)
    pairs = [(shared, tokens(21)), (shared, tokens(30)), (tokens(5), tokens(40))]
    return [TrainingSample(prompt, answer, [-6.0] * len(answer), 1.0, 0.01) for prompt, answer in pairs]


def plain_logprobs(model: Any, prompt: Any, response: Any) -> Tensor:
    logits = model(input_ids=torch.tensor([[*prompt, *response]]), use_cache=False).logits[0].float()
    scored = logits[len(prompt) - 1 : -1].log_softmax(-1)
    return scored.gather(-1, torch.tensor(list(response))[:, None])[:, 0]


def test_packed_is_unpacked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Log-probabilities and all gradients, in small blocks of scores; prompts shared, and sequences one by one."""
    monkeypatch.setattr(attention, "_SCORES", 1)
    monkeypatch.setattr(attention, "_MIN_ROWS", 5)
    made, plain = samples(), load_model(folder)
    wanted = [plain_logprobs(plain, one.prompt_ids, one.response_ids) for one in made]
    torch.cat(wanted).square().sum().backward()
    policy = PackedPolicy(load_model(folder))
    (batch,) = pack_samples(made, PACKING)
    found = policy(batch).logprobs
    torch.testing.assert_close(found, torch.cat([wanted[index] for index in batch.sample_indices]), atol=1e-4, rtol=0)
    found.square().sum().backward()
    ours: Any = policy.model
    for (name, one), (_, other) in zip(ours.named_parameters(), plain.named_parameters(), strict=True):
        assert one.grad is not None, name
        scale = float(other.grad.abs().max()) + 1e-6
        # a decay's gradient is a sum that nearly cancels: transformers' own, in fp32 and in fp64, differ by 1.4e-4
        torch.testing.assert_close(one.grad / scale, other.grad / scale, atol=1e-3, rtol=0, msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("folder", [family for family in TRIED if family not in PLAIN], indirect=True)
def test_it_is_trained_saved_and_loaded_again(folder: Path, tmp_path: Path) -> None:
    values = recipe(optim={"learning_rate": 1e-2, "warmup_steps": 0})
    trainer = Trainer(folder, values, DistributedContext(values.compute))
    before = {name: value.clone() for name, value in trainer.full_state_dict().items() if not value.is_meta}
    assert trainer.packing_note is None
    figures = trainer.step(samples(), GrpoSettings(eps_high=100.0))
    assert figures.micro_batches == 1
    state = trainer.full_state_dict()
    unchanged = [name for name, value in before.items() if torch.equal(state[name], value)]
    assert len(unchanged) < len(before) / 4, unchanged
    assert fitting(folder, state).keys() <= before.keys()

    again = tmp_path / "again"
    save_model(trainer.model, load_tokenizer(folder), again, state=state)
    assert tensor_shapes(again) == tensor_shapes(folder)
    assert configuration(again) == configuration(folder)
    trained = {name for name, value in state.items() if not value.is_meta}
    for name, value in stored(folder).items():
        assert name in trained or torch.equal(stored(again)[name], value), name

    reloaded, ids = load_model(again), torch.tensor([[5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]])
    wanted = reloaded(input_ids=ids).logits
    torch.testing.assert_close(text_model(again)(input_ids=ids).logits, wanted, atol=1e-5, rtol=0)
    assert not torch.equal(load_model(folder)(input_ids=ids).logits, wanted)

    engine = DecodingEngine(load_model(folder).requires_grad_(False), [2], slots=1, temperature=1.0, top_p=1.0)
    engine.load(state)
    torch.testing.assert_close(engine.model(input_ids=ids).logits, wanted, atol=1e-6, rtol=0)
    engine.load(stored(folder))
    assert not torch.allclose(engine.model(input_ids=ids).logits, wanted)
    engine.load(stored(again))
    torch.testing.assert_close(engine.model(input_ids=ids).logits, wanted, atol=1e-6, rtol=0)


def test_torch_samples_it(folder: Path) -> None:
    model = load_model(folder).requires_grad_(False)
    engine = DecodingEngine(model, [2], slots=3, temperature=1.0, top_p=1.0)
    requests = [
        DecodingRequest(tuple(one.prompt_ids), count, random.Random(count))
        for one, count in zip(samples(), (4, 24, 18), strict=True)
    ]
    engine.step(requests[:2])
    engine.step(requests[2:])
    while engine.active:
        engine.step()
    for one in requests:
        wanted = plain_logprobs(model, one.prompt_ids, one.token_ids)
        torch.testing.assert_close(torch.tensor(one.logprobs), wanted, atol=1e-4, rtol=0)


def configuration(folder: Path) -> Any:
    """Without the types of the weights, which are those that are trained."""
    table = (folder / "config.json").read_text()
    return json.loads(table, object_pairs_hook=lambda pairs: {key: one for key, one in pairs if key != "dtype"})


def stored(folder: Path) -> dict[str, Tensor]:
    return dict(read_tensors(folder))


def test_the_page_of_families_has_a_row_for_every_family_and_no_other() -> None:
    page = (ROOT / "docs" / "reference" / "model-families.md").read_text(encoding="utf-8")
    assert [row for row in page.splitlines() if row.startswith("| `")] == families_table()


def test_attention_within_chunks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="chunks of 8 tokens"):
        PackedPolicy(load_model(make_family("llama4", tmp_path / "llama4")))


def test_what_is_not_trained_must_still_be_there_to_be_saved(tmp_path: Path) -> None:
    folder = make_family("mistral3", tmp_path / "mistral3")
    model, tokenizer = load_model(folder), load_tokenizer(folder)
    (folder / "model.safetensors").unlink()
    with pytest.raises(StoreError, match="are gone"):
        save_model(model, tokenizer, tmp_path / "again")


def test_a_checkpoint_that_lacks_weights_is_refused(tmp_path: Path) -> None:
    folder = make_family("qwen3", tmp_path / "qwen3")
    weights = stored(folder)
    del weights["model.layers.1.mlp.up_proj.weight"]
    save_file(weights, folder / "model.safetensors")
    with pytest.raises(PolicyError, match=r"lack 1 tensors.*layers\.1\.mlp\.up_proj"):
        load_model(folder)


def test_of_a_mixture_the_experts_of_one_token_are_counted(tmp_path: Path) -> None:
    model: Any = load_model(make_family("qwen3_moe", tmp_path / "qwen3_moe"))
    experts = sum(value.numel() for name, value in model.named_parameters() if ".experts." in name)
    assert active_parameters(model) == sum(value.numel() for value in model.parameters()) - experts // 2
    dense = load_model(make_family("qwen3", tmp_path / "qwen3"))
    assert active_parameters(dense) == sum(value.numel() for value in dense.parameters())
