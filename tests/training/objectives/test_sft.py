"""Maximum likelihood of correct rollouts, by enumeration on a small policy."""

from __future__ import annotations

import pytest
import torch

from training.objectives.base import CreditInputs, ObjectiveInputs
from training.objectives.sft import NOT_CORRECT, SFT, SftSettings, sft_credit, sft_decision, sft_loss
from training.rewards import Reward

RIGHT, WRONG, FAILED = Reward(correctness=0.9, correct=True), Reward(format=0.1), Reward(excluded_by="timeout")


def test_only_correct_rollouts_count() -> None:
    assert sft_decision([RIGHT, WRONG, FAILED], SftSettings()).exclusion_reasons == (None, NOT_CORRECT, "timeout")
    assert sft_decision([RIGHT, WRONG], SftSettings()).drop_reason is None
    assert sft_decision([WRONG, FAILED], SftSettings()).drop_reason == "none_correct"
    assert not SFT.needs(SftSettings()).generator_logprobs


def test_the_loss_is_minus_the_mean_log_probability_over_micro_batches() -> None:
    settings = SftSettings()
    lengths = torch.tensor([3, 1, 2])
    credit = sft_credit(CreditInputs([RIGHT] * 3, lengths, torch.tensor([0, 0, 1])), settings)
    values = [torch.tensor([-1.0, -2.0, -0.5]), torch.tensor([-3.0]), torch.tensor([-0.25, -0.75])]
    total = 0.0
    for members in ([0, 2], [1]):
        logprobs = torch.cat([values[place] for place in members]).double()
        index = torch.repeat_interleave(torch.arange(len(members)), lengths[members])
        unknown = torch.zeros_like(logprobs)
        inputs = ObjectiveInputs(
            logprobs, unknown, index, credit.advantages[members], credit.token_weights[members], drawn=unknown.bool()
        )
        loss, statistics = sft_loss(inputs, settings)
        total += float(loss)
        assert float(statistics["nll"].total) == pytest.approx(-float(logprobs.sum()))
    assert total == pytest.approx(-float(torch.cat(values).mean()))
