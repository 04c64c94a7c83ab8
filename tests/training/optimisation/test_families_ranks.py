"""Families over two sharded processes: both have what rank 0 reads, and a step leaves the weights of one process."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from safetensors.torch import load_file
from torch import Tensor
from torch.distributed.tensor import DTensor

from tests.places import in_gate
from tests.training.families import make_family
from tests.training.optimisation.ranks import run_on_ranks
from tests.training.optimisation.test_families import samples
from tests.training.optimisation.test_trainer import recipe
from training.generation.checkpoint_tensors import tensor_shapes, write_weights
from training.objectives.grpo import GrpoSettings
from training.optimisation.distributed import DistributedContext, end_process
from training.optimisation.model import load_model
from training.optimisation.trainer import Trainer

pytestmark = [pytest.mark.slow, in_gate("training/two-ranks")]

FAMILIES = ("mistral3", "gpt_oss", "qwen3_moe", "qwen3_next")
READ = (*FAMILIES, "llama_tied", "falcon_h1", "gemma3", "deepseek_v3")
ADAPTED = ("llama_tied", "mixtral") if importlib.util.find_spec("peft") else ()
LORA = {"lora": {"rank": 4}}


def in_whole(model: torch.nn.Module) -> dict[str, Tensor]:
    found = {}
    for name, module in model.named_modules():
        for key, value in {**module._parameters, **module._buffers, **vars(module)}.items():
            if isinstance(value, Tensor):
                assert not value.is_meta, (name, key)
                found[f"{name}.{key}"] = value.full_tensor() if isinstance(value, DTensor) else value
    return found


def require_read(trainer: Trainer, folder: Path) -> None:
    got, read = in_whole(trainer.model), in_whole(load_model(folder, training=True))
    assert got.keys() == read.keys(), (folder.name, got.keys() ^ read.keys())
    for name, value in read.items():
        same = got[name].dtype == value.dtype and torch.equal(got[name], value)
        assert same, (folder.name, name)
        assert got[name].requires_grad == value.requires_grad, (folder.name, name)


def step(folder: Path, out: Path, **changes: Any) -> None:
    made = recipe(optim={"warmup_steps": 0}, packing={"micro_batch_tokens": 64}, **changes)
    ranks = DistributedContext(made.compute)
    trainer = Trainer(folder, made, ranks)
    if not changes:
        require_read(trainer, folder)
        (out / f"{folder.name}-{ranks.rank}").touch()
    if not changes and folder.name not in FAMILIES:
        return
    if ranks.is_rank_zero:
        trainer.step(samples(), GrpoSettings(eps_high=100.0))
        write_weights(trainer.full_state_dict(), out / folder.name)
    else:
        trainer.follow()
    ranks.close()


def require_same(one: Path, two: Path) -> dict[str, Tensor]:
    first, second = (load_file(folder / "model.safetensors") for folder in (one, two))
    assert first.keys() == second.keys()
    for name, value in first.items():
        assert ((second[name] - value).abs() <= 2e-4).float().mean() > 0.999, (one.name, name)
    return first


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the models, with what two processes made of them in `two`."""
    folder = tmp_path_factory.mktemp("families")
    (folder / "two").mkdir()
    for family in {*READ, *ADAPTED}:
        make_family(family, folder / family)
    run_on_ranks(["-m", __name__, str(folder)])
    return folder


def test_both_ranks_have_the_weights_that_one_reads(done: Path) -> None:
    assert len(list((done / "two").glob("*-[01]"))) == 2 * len(READ)


def test_two_ranks_leave_the_weights_of_one(done: Path, tmp_path: Path) -> None:
    for family in FAMILIES:
        step(done / family, tmp_path)
        assert require_same(tmp_path / family, done / "two" / family).keys() <= tensor_shapes(done / family).keys()


@pytest.mark.skipif(not ADAPTED, reason="peft is not installed (pip install 'goldilocks-rl[lora]')")
def test_two_ranks_leave_the_merged_adapters_of_one(done: Path, tmp_path: Path) -> None:
    for family in ADAPTED:
        step(done / family, tmp_path, **LORA)
        left = require_same(tmp_path / family, done / "two" / "adapted" / family)
        began = load_file(done / family / "model.safetensors")
        changed = [name for name, value in left.items() if not torch.equal(value, began[name])]
        assert changed
        assert all("_proj" in name for name in changed)


if __name__ == "__main__":
    dist.init_process_group("gloo")
    models = Path(sys.argv[1])
    for name in READ:
        step(models / name, models / "two")
    for name in ADAPTED:
        step(models / name, models / "two" / "adapted", **LORA)
    end_process(0)
