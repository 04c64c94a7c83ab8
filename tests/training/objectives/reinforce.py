"""A toy objective, plain REINFORCE, as somebody would add one: its settings and functions here, one line registers it.

torchrun --nproc-per-node N -m tests.training.objectives.reinforce OUT writes one step's loss, statistics and gradient.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import Field
from torch import Tensor

from tests.training.engines.embedded.test_run import small
from tests.training.objectives.ranks import run_step, unclipped
from tests.training.optimisation.test_trainer import gradient, recipe, samples
from training.config import ObjectiveSettings
from training.embedded_model import WEIGHTS
from training.objectives.base import CreditInputs, GroupCredit, ObjectiveInputs, ObjectiveNeeds, Statistic
from training.objectives.objective import Objective
from training.objectives.registry import OBJECTIVES
from training.objectives.step_statistics import counted, max_of, mean_of, sum_of
from training.optimisation.distributed import DistributedContext, end_process
from training.optimisation.trainer import Trainer
from training.recipe import TrainRecipe
from training.rewards import Reward
from training.rollouts.rollout_scheduler import GroupDecision


class ReinforceSettings(ObjectiveSettings):
    """A constant baseline, and a penalty on entropy."""

    kind: Literal["reinforce"] = Field("reinforce", description="`reinforce`: the textbook's.")
    baseline: float = Field(0.5, description="Subtracted from every reward.")
    confidence: float = Field(0.0, ge=0, description="Weight of a penalty on entropy.")


def decide(rewards: Sequence[Reward], _: ReinforceSettings) -> GroupDecision:
    """Every group teaches in which an attempt could be judged."""
    excluded = tuple(reward.excluded_by for reward in rewards)
    return GroupDecision("none_judged" if all(excluded) else None, excluded)


def credit(sequences: CreditInputs, settings: ReinforceSettings) -> GroupCredit:
    """Reward minus baseline; all tokens of the minibatch weigh the same."""
    totals = torch.tensor([reward.total for reward in sequences.rewards], dtype=torch.float64)
    tokens = sequences.lengths.to(torch.float64)
    return GroupCredit(totals - settings.baseline, (1 / tokens.sum()).expand(len(tokens)))


def loss(inputs: ObjectiveInputs, settings: ReinforceSettings) -> tuple[Tensor, dict[str, Statistic]]:
    """-A log pi, without the generator's probabilities; statistics of each reduction."""
    counts = counted(inputs)
    weight = torch.where(counts, inputs.token_weights[inputs.sequence_index], 0.0)
    value = -(weight * inputs.advantages[inputs.sequence_index] * torch.where(counts, inputs.logprobs, 0.0)).sum()
    if settings.confidence:
        assert inputs.entropy is not None
        value = value + settings.confidence * (weight * inputs.entropy).sum()
    surprise = -inputs.logprobs
    own = {
        "surprise": mean_of(surprise, counts),
        "surprise_max": max_of(surprise, counts),
        "surprising_tokens": sum_of(surprise > 3, counts),
    }
    return value, own


def needs(settings: ReinforceSettings) -> ObjectiveNeeds:
    """The entropy's gradient for its penalty."""
    return ObjectiveNeeds(entropy_gradient=bool(settings.confidence))


REINFORCE = Objective(ReinforceSettings, loss, credit, decide, needs)

TABLE = {"kind": "reinforce", "confidence": 0.01}
"""As a recipe's `[objective]`."""


def run_recipe() -> TrainRecipe:
    """A synchronous run of three steps, some of several micro-batches."""
    sizes = {"max_staleness": 0, "group_size": 4, "n_async": 16, "n_batch": 16}
    made: dict[str, Any] = {
        "steps": 3,
        "collector": sizes,
        "packing": {"micro_batch_tokens": 200},
        "evaluation": {"data": None},
    }
    return small(objective=TABLE, **made)


def step(ranks: DistributedContext, room: int) -> dict[str, Any] | None:
    """Loss, statistics and gradient of one step in micro-batches of so many tokens; None on ranks that follow."""
    made = recipe(objective=TABLE, packing={"micro_batch_tokens": room}, optim={"warmup_steps": 0})
    trainer = Trainer(WEIGHTS, made, ranks)
    trainer._work["gradient"] = lambda *_: gradient(trainer)
    with unclipped():
        if not ranks.is_rank_zero:
            trainer.follow()
            return None
        figures = trainer.step(samples(12), made.objective)
    slope = ranks.run_on_all_ranks("gradient", trainer._work, None, None)
    values = {name: measure.value for name, measure in figures.statistics.items()}
    return {"loss": figures.loss, "statistics": values, "parts": figures.micro_batches, "gradient": slope}


def main() -> None:
    """What torchrun starts in every process."""
    OBJECTIVES["reinforce"] = REINFORCE
    run_step(step, Path(sys.argv[1]))


if __name__ == "__main__":
    main()
    end_process(0)
