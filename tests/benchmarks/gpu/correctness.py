"""What must be so before a figure counts: each check compares two ways to the same numbers on this machine's device."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tests.benchmarks.gpu.models import PROMPT, SMALL, TOY, batch, random_model, recipe_of, trainer_of
from tests.training.optimisation.packed import pack_samples
from training.objectives.grpo import GrpoSettings
from training.optimisation.attention import PackedLayout, packed_attention
from training.optimisation.distributed import DistributedContext
from training.optimisation.logprobs import PackedPolicy
from training.optimisation.packing import collate
from training.optimisation.trainer import Trainer

CPU = torch.device("cpu")
BF16_STEP = 2.0**-8
"""The relative distance between two numbers of bf16."""


@dataclass(frozen=True, slots=True)
class Check:
    """One comparison: the largest difference, its limit, and what was compared."""

    check: str
    difference: float
    limit: float
    note: str

    @property
    def passed(self) -> bool:
        """Return whether the difference is within its limit; NaN is not."""
        return self.difference <= self.limit


def all_checks(device: torch.device) -> list[Callable[[torch.device], Check]]:
    on_gpu = [packed_bf16, flash_against_cpu, flash_gradients] if device.type == "cuda" else []
    return [packed_fp32, *on_gpu, fsdp_of_one_rank, saved_and_loaded, checkpointed]


def packed_fp32(device: torch.device) -> Check:
    """Log-probabilities of packed sequences in fp32 against transformers' own forward pass of each alone."""
    policy, samples = PackedPolicy(random_model(_shape(device), device)), batch(_shape(device), 1024, 1)
    (packed,) = pack_samples(samples, recipe_of(1024, device, "float32", checkpointing=False).packing)
    with torch.no_grad():
        ours = policy(packed.to(device)).logprobs
        alone = [policy(collate([samples[i]], (i,)).to(device), plain=True).logprobs for i in packed.sample_indices]
    return Check("packed = alone, fp32", float((ours - torch.cat(alone)).abs().max()), 1e-3, "log-probabilities, nats")


def packed_bf16(device: torch.device) -> Check:
    """The same in bf16 with flash attention: as close to fp32 as each sequence alone in bf16 is, twice at most."""
    shape, settings = _shape(device), recipe_of(1024, device, "float32", checkpointing=False).packing
    exact = PackedPolicy(random_model(shape, device))
    rounded = PackedPolicy(random_model(shape, device).to(torch.bfloat16))
    samples = batch(shape, 1024, 1)
    (packed,) = pack_samples(samples, settings)
    with torch.no_grad():
        ours = rounded(packed.to(device)).logprobs.float()
        alone, truth = [], []
        for index in packed.sample_indices:
            one = collate([samples[index]], (index,)).to(device)
            alone.append(rounded(one, plain=True).logprobs.float())
            truth.append(exact(one, plain=True).logprobs.float())
    mine, theirs = ((one - torch.cat(truth)).abs().mean() for one in (ours, torch.cat(alone)))
    return Check("packed = alone, bf16", float(mine / theirs), 2.0, "mean error over that of transformers")


def flash_against_cpu(device: torch.device) -> Check:
    """Outputs of flash attention with variable lengths against fp32 on the CPU, from the same bf16 numbers."""
    ours, theirs = _attention(device), _attention(CPU)
    scale = float(theirs[0].abs().max())
    return Check("flash varlen = CPU", float((ours[0].cpu() - theirs[0]).abs().max()) / scale, 4 * BF16_STEP, "outputs")


def flash_gradients(device: torch.device) -> Check:
    ours, theirs = _attention(device), _attention(CPU)
    pairs = zip(ours[1:], theirs[1:], strict=True)
    worst = max(float((one.cpu() - other).abs().max() / other.abs().max()) for one, other in pairs)
    return Check("flash varlen = CPU, gradients", worst, 8 * BF16_STEP, "queries, keys, values")


def fsdp_of_one_rank(device: torch.device) -> Check:
    """The gradient of a step sharded over a group of one, in fp32, against that without sharding."""
    plain = _step_gradient(trainer_of(_shape(device), 512, device))
    recipe = recipe_of(512, device, "float32", checkpointing=False)
    ranks = DistributedContext(recipe_of(512, device, "bfloat16", checkpointing=False).compute)  # which shards
    sharded = _step_gradient(Trainer(None, recipe, ranks, model=random_model(_shape(device), device)))
    ranks.close()
    difference = float((plain - sharded).norm() / plain.norm())
    return Check("FSDP2 of one rank = none", difference, 1e-5, "gradient, relative norm")


def checkpointed(device: torch.device) -> Check:
    """The gradient with activation checkpointing against that without."""
    plain = _step_gradient(trainer_of(_shape(device), 512, device))
    again = _step_gradient(trainer_of(_shape(device), 512, device, checkpointing=True))
    return Check("activation checkpointing = none", float((plain - again).norm() / plain.norm()), 1e-5, "gradient")


def saved_and_loaded(device: torch.device) -> Check:
    """The loss of a second step after saving and loading against that without: bit for bit."""
    shape, first = _shape(device), batch(_shape(device), 512, 1)
    one = trainer_of(shape, 512, device)
    one.step(first, GrpoSettings())
    with tempfile.TemporaryDirectory() as folder:
        one.begin_save(Path(folder) / "state").result()
        other = trainer_of(shape, 512, device)
        other.load(Path(folder) / "state", one.steps_taken)
    second = batch(shape, 512, 1, seed=2)
    difference = abs(one.step(second, GrpoSettings()).loss - other.step(second, GrpoSettings()).loss)
    return Check("saved and loaded = gone on", difference, 0.0, "loss of the next step")


def _shape(device: torch.device) -> Any:
    return SMALL if device.type == "cuda" else TOY


def _step_gradient(trainer: Trainer) -> Tensor:
    trainer.step(batch(_shape(trainer.ranks.device), 512, 2), GrpoSettings())
    grads = [value.grad for value in trainer.policy.parameters()]
    whole = [grad.full_tensor() if hasattr(grad, "full_tensor") else grad for grad in grads if grad is not None]
    return torch.cat([grad.flatten().double().cpu() for grad in whole])


def _attention(device: torch.device) -> list[Tensor]:
    """Return the output of packed attention over three sequences, and the gradients of its inputs."""
    lengths = [700, 33, PROMPT]
    torch.manual_seed(3)
    heads, size = (8, 2, 2), 64
    made = [torch.randn(1, count, sum(lengths), size).to(torch.bfloat16) for count in heads]
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    inputs = [part.to(device, dtype).requires_grad_() for part in made]
    ends = torch.tensor([0, *torch.tensor(lengths).cumsum(0).tolist()], dtype=torch.int32, device=device)
    output, _ = packed_attention(torch.nn.Identity(), *inputs, None, layout=PackedLayout(ends, max(lengths)))
    weight = torch.randn(output.shape, generator=torch.Generator().manual_seed(4)).to(torch.bfloat16)
    (output * weight.to(device, dtype)).sum().backward()
    return [part.detach().float() for part in (output, *(one.grad for one in inputs if one.grad is not None))]
