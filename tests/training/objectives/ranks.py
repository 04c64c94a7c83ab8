"""One optimiser step of each objective on as many ranks as torchrun starts, and what rank 0 found, as OUT/steps.pt."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import pytest
import torch

from tests.training.optimisation.ranks import run_on_ranks
from tests.training.optimisation.test_trainer import gradient, recipe, samples
from training.config import ComputeSettings
from training.embedded_model import WEIGHTS
from training.optimisation import trainer as trainer_module
from training.optimisation.distributed import DistributedContext, end_process
from training.optimisation.scoring import ReferencePolicy
from training.optimisation.trainer import Trainer

TABLES: dict[str, dict[str, Any]] = {"grpo": {"kind": "grpo", "entropy_coef": 0.01}, "soft": {"kind": "soft"}}


def step(kind: str, ranks: DistributedContext, room: int) -> dict[str, Any] | None:
    """Return loss, statistics and unclipped gradient of a step after one that moved the policy, on rank 0 alone."""
    optim = {"warmup_steps": 0, "learning_rate": 1e-4}
    made = recipe(objective=TABLES[kind], packing={"micro_batch_tokens": room}, optim=optim)
    trainer = Trainer(WEIGHTS, made, ranks)
    if kind == "soft":
        trainer.ask(ReferencePolicy(WEIGHTS, made, ranks, trainer.model.config.vocab_size))
    trainer._work["gradient"] = lambda *_: gradient(trainer)
    parts = [replace(one, token_weight=1 / 12, group=place % 3) for place, one in enumerate(samples(12))]
    with mock.patch.object(trainer_module, "MAX_GRAD_NORM", 1e9):
        if not ranks.is_rank_zero:
            trainer.follow()
            return None
        trainer.step(parts, made.objective)
        figures = trainer.step(parts, made.objective)
    slope = ranks.run_on_all_ranks("gradient", trainer._work, None, None)
    values = {name: measure.value for name, measure in figures.statistics.items()}
    return {"loss": figures.loss, "statistics": values, "parts": figures.micro_batches, "gradient": slope}


def alone(kind: str, room: int) -> dict[str, Any]:
    return step(kind, DistributedContext(ComputeSettings()), room)


@cache
def on_two_ranks() -> dict[str, dict[str, Any]]:
    """Take the step of each kind in two processes, each with micro-batches of its own."""
    with TemporaryDirectory() as folder:
        run_on_ranks(["-m", __name__, folder])
        found: dict[str, dict[str, Any]] = torch.load(Path(folder) / "steps.pt")
    assert all(taken["parts"] >= 2 for taken in found.values())
    return found


def require_same(found: dict[str, Any], wanted: dict[str, Any]) -> None:
    assert found["loss"] == pytest.approx(wanted["loss"], rel=1e-4, abs=1e-6)
    assert found["statistics"] == pytest.approx(wanted["statistics"], rel=1e-3, abs=1e-6, nan_ok=True)
    torch.testing.assert_close(found["gradient"], wanted["gradient"], rtol=1e-3, atol=1e-5)
    assert wanted["gradient"].abs().max() > 1e-4


if __name__ == "__main__":
    torch.distributed.init_process_group("gloo")
    steps = {}
    for kind in TABLES:
        context = DistributedContext(recipe().compute)
        steps[kind] = step(kind, context, 60)
        context.close()
    if steps["grpo"] is not None:
        torch.save(steps, Path(sys.argv[1]) / "steps.pt")
    end_process(0)
