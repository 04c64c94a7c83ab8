"""Families over two sharded processes: a step leaves the weights that one process makes, under the names on disk.

Rank 0 alone reads the weights, and rank 1 gets all of them, to the bit.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from safetensors.torch import load_file
from torch import Tensor

from tests.training.families import make_family
from tests.training.optimisation.ranks import run_on_ranks
from training.generation.checkpoint_tensors import tensor_shapes

pytestmark = pytest.mark.slow

FAMILIES = ("mistral3", "qwen3_moe", "gpt_oss", "qwen3_next")
READ = (*FAMILIES, "gemma3", "deepseek_v3", "llama_tied", "falcon_h1")

WORKER = """
import sys
from pathlib import Path
from training.generation.checkpoint_tensors import write_weights
from tests.training.optimisation.test_families import samples
from tests.training.optimisation.test_trainer import recipe
from training.objectives.grpo import GrpoSettings
from training.optimisation.distributed import DistributedContext, end_process
from training.optimisation.trainer import Trainer

made = recipe(optim={"warmup_steps": 0}, packing={"micro_batch_tokens": 64})
ranks = DistributedContext(made.compute)
for folder in map(Path, sys.argv[2:]):
    trainer = Trainer(folder, made, ranks)
    if ranks.is_rank_zero:
        trainer.step(samples(), GrpoSettings(eps_high=100.0))
        write_weights(trainer.full_state_dict(), Path(sys.argv[1]) / folder.name)
        if ranks.world_size > 1:
            ranks.run_on_all_ranks("stop", {"stop": lambda share, value: None}, None, None)
    else:
        trainer.follow()
end_process(0)
"""

READER = """
import sys
from pathlib import Path
import torch
from torch.distributed.tensor import DTensor
from tests.training.optimisation.test_trainer import recipe
from training.optimisation.distributed import DistributedContext, end_process
from training.optimisation.model import load_model
from training.optimisation.trainer import Trainer

def in_whole(model):
    found = {}
    for name, module in model.named_modules():
        for key, value in {**module._parameters, **module._buffers, **vars(module)}.items():
            if isinstance(value, torch.Tensor):
                assert not value.is_meta, (name, key)
                found[name + "." + key] = value.full_tensor() if isinstance(value, DTensor) else value
    return found

made = recipe()
ranks = DistributedContext(made.compute)
for folder in map(Path, sys.argv[2:]):
    got, read = (in_whole(model) for model in (Trainer(folder, made, ranks).model, load_model(folder, training=True)))
    assert got.keys() == read.keys(), (folder.name, got.keys() ^ read.keys())
    for name, value in read.items():
        same = got[name].dtype == value.dtype and torch.equal(got[name], value)
        assert same and got[name].requires_grad == value.requires_grad, (folder.name, ranks.rank, name)
    (Path(sys.argv[1]) / f"{folder.name}-{ranks.rank}").touch()
end_process(0)
"""


def run_ranks(worker: str, folders: list[Path], out: Path, ranks: int) -> None:
    """Run the worker on these models in that many processes."""
    out.mkdir()
    (out / "worker.py").write_text(worker)
    run_on_ranks([str(out / "worker.py"), str(out), *map(str, folders)], ranks)


def train(folders: list[Path], out: Path, ranks: int) -> dict[str, dict[str, Tensor]]:
    """Take a step with each of these models and return the weights that it leaves."""
    run_ranks(WORKER, folders, out, ranks)
    return {folder.name: load_file(out / folder.name / "model.safetensors") for folder in folders}


def test_both_ranks_have_the_weights_that_one_reads(tmp_path: Path) -> None:
    folders = [make_family(family, tmp_path / family) for family in READ]
    run_ranks(READER, folders, tmp_path / "read", 2)
    assert len(list((tmp_path / "read").glob("*-[01]"))) == 2 * len(folders)


def test_two_ranks_leave_the_weights_of_one(tmp_path: Path) -> None:
    folders = [make_family(family, tmp_path / family) for family in FAMILIES]
    one, two = (train(folders, tmp_path / f"ranks-{count}", count) for count in (1, 2))
    for folder in folders:
        assert two[folder.name].keys() <= tensor_shapes(folder).keys()
        assert one[folder.name].keys() == two[folder.name].keys()
        for name, value in one[folder.name].items():
            close = (two[folder.name][name] - value).abs() <= 2e-4
            assert close.float().mean() > 0.999, (folder.name, name)
