"""One optimiser step with a correction, after the scoring pass that it needs; on as many ranks as torchrun starts.

torchrun --nproc-per-node N -m tests.training.objectives.correction_step OUT
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.training.objectives.ranks import run_step
from tests.training.optimisation.test_trainer import gradient, recipe, samples
from training.embedded_model import WEIGHTS
from training.objectives import importance
from training.objectives.grpo import GrpoSettings
from training.optimisation.distributed import DistributedContext, end_process
from training.optimisation.trainer import Trainer

TABLE: dict[str, Any] = {"kind": "grpo", "correction": "mask"}
"""As a recipe's `[objective]`."""

WIDE_BOUNDS = (0.02, 50.0)
"""Of the mask: the samples are no model's."""


def step(ranks: DistributedContext, room: int) -> dict[str, Any] | None:
    """Old log-probabilities, and loss, statistics and gradient of the second of two steps, in micro-batches of so many
    tokens; None on ranks that follow.
    """
    made = recipe(
        objective=TABLE,
        packing={"micro_batch_tokens": room},
        optim={"max_grad_norm": 1e9, "warmup_steps": 0, "learning_rate": 1e-5},
    )
    trainer = Trainer(WEIGHTS, made, ranks)
    trainer._work["gradient"] = lambda *_: gradient(trainer)
    if not ranks.is_rank_zero:
        trainer.follow()
        return None
    first, second = samples(12), samples(12, seed=2)
    second = trainer.with_old_logprobs(second)
    again = trainer.with_old_logprobs([replace(one, old_logprobs=None) for one in second])
    assert again == second  # scoring changes nothing
    objective = made.objective
    assert isinstance(objective, GrpoSettings)
    trainer.step(first, objective)
    figures = trainer.step(second, objective)
    slope = ranks.run_on_all_ranks("gradient", trainer._work, None, None)
    return {
        "old": [list(one.old_logprobs or ()) for one in second],
        "statistics": {name: measure.value for name, measure in figures.statistics.items()},
        "parts": figures.micro_batches,
        "gradient": slope,
    }


if __name__ == "__main__":
    importance.MASK_BOUNDS = WIDE_BOUNDS
    run_step(step, Path(sys.argv[1]))
    end_process(0)
