"""Two sharded processes over gloo: the minibatch dealt to them has the gradients that one process finds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.places import ROOT
from tests.waiting import PATIENCE_S

WORKER = """
import sys, torch
from pathlib import Path
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from tests.training.optimisation.test_logprobs import TEMPERATURE, assert_same, llama, packed, some_samples
from training.config import PackingSettings
from training.optimisation.distributed import end_process
from training.optimisation.logprobs import PackedPolicy
from training.objectives.base import ObjectiveInputs
from training.objectives.grpo import GrpoSettings, grpo_loss
from training.optimisation.balancing import distribute_micro_batches
from training.optimisation.collating import collate
from training.optimisation.packing import first_fit_decreasing

torch.set_num_threads(1)
dist.init_process_group("gloo", init_method=Path(sys.argv[1]).as_uri(), rank=int(sys.argv[2]), world_size=2)
settings = PackingSettings(micro_batch_tokens=64)
samples = some_samples()
model = llama()
policy = PackedPolicy(model, TEMPERATURE, logit_elements=400)
mesh = dist.device_mesh.init_device_mesh("cpu", (2,))
for layer in model.model.layers:
    fully_shard(layer, mesh=mesh)
fully_shard(policy, mesh=mesh)
lengths = [sample.length for sample in samples]
shares = distribute_micro_batches(first_fit_decreasing(lengths, settings), lengths, 2, settings.micro_batch_tokens)
whole = torch.zeros(())
for part in shares[dist.get_rank()]:
    batch = collate([samples[index] for index in part], tuple(part))
    inputs = ObjectiveInputs(
        policy(batch).logprobs, batch.generator_logprobs, batch.sequence_index, batch.advantages, batch.weights
    )
    loss, _ = grpo_loss(inputs, GrpoSettings())
    (loss * dist.get_world_size()).backward()  # the wrapper averages over ranks
    whole += loss.detach()
dist.all_reduce(whole)
found = {name: parameter.grad.full_tensor() for name, parameter in model.named_parameters()}
assert len(shares[0]) > 1
assert_same((whole.item(), found), packed(samples, settings))
dist.destroy_process_group()
print("same")
end_process(0)
"""


@pytest.mark.slow
def test_two_ranks_have_the_gradients_of_one(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(ROOT),
        "PYTHONWARNINGS": "ignore",
        "WORLD_SIZE": "2",
    }
    command = [sys.executable, "-c", WORKER, str(tmp_path / "meeting")]
    ranks = [
        subprocess.Popen(
            [*command, str(rank)], cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        for rank in range(2)
    ]
    try:
        said = [rank.communicate(timeout=PATIENCE_S)[0].decode() for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    assert [rank.returncode for rank in ranks] == [0, 0], "\n".join(said)
    assert all("same" in text for text in said)
