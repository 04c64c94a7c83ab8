"""Scores beside the training: the trainer's own, on one process and on two, and weights that are flipped and back."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from tests.training.optimisation.test_trainer import recipe, samples, solo
from training.embedded_model import WEIGHTS
from training.objectives.grpo import GrpoSettings
from training.optimisation.distributed import DistributedContext
from training.optimisation.trainer import Trainer


def weights(trainer: Trainer) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in trainer.full_state_dict().items()}


def test_the_order_is_that_of_the_samples_and_packing_changes_nothing() -> None:
    scorer, made = solo().scorer, samples()
    whole = scorer.logprobs(made)
    assert [len(one) for one in whole] == [len(sample.response_ids) for sample in made]
    for other in (
        scorer.logprobs(made, plain=True),
        scorer.logprobs(made, packing=scorer.packing.model_copy(update={"micro_batch_tokens": 24})),
        list(reversed(scorer.logprobs(made[::-1]))),
    ):
        torch.testing.assert_close(torch.cat(other), torch.cat(whole), atol=1e-5, rtol=1e-5)
    assert not torch.allclose(torch.cat(scorer.logprobs(made, temperature=0.5)), torch.cat(whole), atol=0.1)
    assert torch.equal(torch.cat(scorer.logprobs(made)), torch.cat(whole))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_flipped_weights_are_another_model_and_flipped_back_the_same(dtype: str) -> None:
    made = recipe(compute={"dtype": dtype})
    ranks = DistributedContext(made.compute)
    try:
        trainer = Trainer(WEIGHTS, made, ranks)
        before, scored = weights(trainer), torch.cat(trainer.scorer.logprobs(samples()))
        trainer.scorer.flip_weights()
        changed = weights(trainer)
        assert all(not torch.equal(changed[name], value) for name, value in before.items())
        assert (torch.cat(trainer.scorer.logprobs(samples())) - scored).abs().mean() > 0.2
        trainer.scorer.flip_weights()
        assert all(torch.equal(value, before[name]) for name, value in weights(trainer).items())
        assert torch.equal(torch.cat(trainer.scorer.logprobs(samples())), scored)
        trainer.step(samples(), GrpoSettings())  # nothing that was scored is in the way of a step
        assert not torch.equal(torch.cat(trainer.scorer.logprobs(samples())), scored)
    finally:
        ranks.close()
