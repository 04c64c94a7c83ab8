"""Two optimiser steps of the soft objective, each after its first pass; on as many ranks as torchrun starts.

torchrun --nproc-per-node N -m tests.training.objectives.soft_step OUT
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.training.objectives.ranks import run_step, unclipped
from tests.training.optimisation.test_trainer import gradient, recipe, samples
from training.embedded_model import WEIGHTS
from training.optimisation.distributed import DistributedContext, end_process
from training.optimisation.reference import ReferencePolicy
from training.optimisation.trainer import Trainer


def step(ranks: DistributedContext, room: int) -> dict[str, Any] | None:
    """Loss, statistics and gradient of the second of two steps on 3 groups, in micro-batches of so many tokens; None
    on ranks that follow.
    """
    made = recipe(
        objective={"kind": "soft"},
        packing={"micro_batch_tokens": room},
        optim={"warmup_steps": 0, "learning_rate": 1e-4},
    )
    trainer = Trainer(WEIGHTS, made, ranks)
    trainer.reference = ReferencePolicy(WEIGHTS, made, ranks, trainer.model.config.vocab_size)
    trainer._work["gradient"] = lambda *_: gradient(trainer)
    parts = [replace(one, token_weight=1 / 12, group=place % 3) for place, one in enumerate(samples(12))]
    with unclipped():
        if not ranks.is_rank_zero:
            trainer.follow()
            return None
        trainer.step(parts, made.objective)
        figures = trainer.step(parts, made.objective)
    slope = ranks.run_on_all_ranks("gradient", trainer._work, None, None)
    error = figures.statistics["soft_error"].value
    return {"loss": figures.loss, "error": error, "parts": figures.micro_batches, "gradient": slope}


if __name__ == "__main__":
    run_step(step, Path(sys.argv[1]))
    end_process(0)
