"""AIPO, SFT, DPPO (2602.04879), and other papers' objectives as settings: each by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

from tests.training.objectives.test_grpo import (
    inputs_of,
    values,
)
from tests.training.optimisation.test_trainer import recipe
from training.objectives.aipo import AipoSettings, aipo_loss
from training.objectives.base import CreditInputs, GroupCredit, ObjectiveInputs
from training.objectives.credit import advantages, group_credit
from training.objectives.dppo import DppoSettings, binary_distance, dppo_loss
from training.objectives.grpo import GrpoSettings, grpo_loss
from training.objectives.presets import GroupCreditSettings
from training.objectives.sft import NOT_CORRECT, SFT, SftSettings, sft_credit, sft_decision, sft_loss
from training.rewards import Reward

RIGHT, WRONG = Reward(correctness=1.0, correct=True), Reward()
REWARDS = [RIGHT, WRONG, WRONG, WRONG, RIGHT, WRONG]
LENGTHS, GROUPS = torch.tensor([2, 4, 4, 10, 5, 5]), torch.tensor([0, 0, 0, 0, 1, 1])
CENTRED = [0.75, -0.25, -0.25, -0.25, 0.5, -0.5]
DEVIATIONS = [math.sqrt(3) / 4] * 4 + [0.5] * 2


def credited(settings: GroupCreditSettings, **changes: Any) -> GroupCredit:
    return group_credit(replace(CreditInputs(REWARDS, LENGTHS, GROUPS), **changes), settings)


def slope(loss: Tensor, inputs: ObjectiveInputs) -> list[float]:
    found: list[float] = torch.autograd.grad(loss, inputs.logprobs)[0].tolist()
    return found


def test_dr_grpo_divides_by_one_constant_and_no_deviation() -> None:
    made = GrpoSettings(preset="dr_grpo")
    credit = credited(made, max_tokens=100)
    assert credit.advantages.tolist() == pytest.approx(CENTRED)
    assert credit.token_weights.tolist() == pytest.approx([1 / 600] * 6)
    assert (made.variant.eps_low, made.eps_high) == (0.2, 0.2)
    with pytest.raises(ValueError, match="needs a constant"):
        credited(made)


def test_dapo_counts_tokens_divides_by_the_groups_deviation_and_masks_what_was_cut_off() -> None:
    made = GrpoSettings(preset="dapo")
    credit = credited(made, truncated=[False, False, False, True, False, False])
    wanted = [gain / deviation for gain, deviation in zip(CENTRED, DEVIATIONS, strict=True)]
    assert credit.advantages.tolist() == pytest.approx(wanted)  # the one cut off counts in its group's mean
    assert credit.token_weights.tolist() == pytest.approx([1 / 20] * 3 + [0.0] + [1 / 20] * 2)
    assert (made.variant.eps_low, made.eps_high, made.variant.group_filter) == (0.2, 0.28, "correctness")
    nothing = credited(made, truncated=[True] * 6)
    assert nothing.token_weights.tolist() == [0.0] * 6


def test_gspo_clips_a_sequence_by_its_mean_log_ratio() -> None:
    """Mean log-ratio 1e-4 (not clipped), 1e-3 with A > 0 (clipped at 1 + 4e-4); the gradient is s A / tokens."""
    made = GrpoSettings(preset="gspo")
    for mean, clipped in ((1e-4, False), (1e-3, True)):
        inputs = inputs_of([0.1 + mean, mean - 0.1], [0.0, 0.0], advantage=2.0, weight=0.25)
        loss, _ = grpo_loss(inputs, made)
        assert loss.item() == pytest.approx(-0.25 * 2 * 2 * (1.0004 if clipped else math.exp(mean)))
        assert slope(loss, inputs) == pytest.approx([0.0 if clipped else -0.25 * 2 * math.exp(mean)] * 2)
    credit = credited(made)
    assert (credit.token_weights * LENGTHS).tolist() == pytest.approx([1 / 6] * 6)
    assert credit.advantages[4:].tolist() == pytest.approx([1.0, -1.0])


def test_cispo_keeps_the_gradient_of_a_token_that_grpo_clips() -> None:
    made = AipoSettings(preset="cispo")
    inputs = inputs_of([math.log(6.0), math.log(0.1)], [0.0, 0.0], advantage=2.0, weight=0.5)
    assert slope(aipo_loss(inputs, made)[0], inputs) == pytest.approx([-0.5 * 2 * 5, -0.5 * 2 * 0.1])
    credit = credited(made)
    assert credit.advantages[4:].tolist() == pytest.approx([1.0, -1.0])
    assert credit.token_weights.tolist() == pytest.approx([1 / 40] * 4 + [1 / 20] * 2)


def test_maxrl_divides_by_the_groups_mean_reward() -> None:
    found = credited(GrpoSettings(preset="maxrl")).advantages
    assert found.tolist() == pytest.approx([3.0, -1.0, -1.0, -1.0, 1.0, -1.0])
    unsolved = advantages(torch.zeros(3, 1), torch.tensor([1, 1, 1]), "mean")
    assert unsolved.tolist() == [0.0] * 3


def test_a_recipes_own_keys_stand_before_the_presets_and_the_table_is_read_again() -> None:
    made = recipe(objective={"preset": "dapo", "eps_high": 0.3}).objective
    assert isinstance(made, GrpoSettings)
    assert made.model_dump().items() >= {"eps_high": 0.3, "advantage_normalisation": "group"}.items()
    assert made.variant.loss_aggregation == "batch"
    with pytest.raises(ValidationError, match="loss_aggregation"):
        recipe(objective={"loss_aggregation": "batch"})
    assert GrpoSettings.model_validate(made.model_dump()) == made
    with pytest.raises(ValidationError, match="preset"):
        recipe(objective={"preset": "cispo"})
    with pytest.raises(ValidationError, match="mean has no meaning with credit = pass_at_k"):
        recipe(objective={"preset": "maxrl", "credit": "pass_at_k", "k": 2})


def test_a_token_beyond_the_cap_keeps_its_gradient() -> None:
    """Ratio 7, cap 5: A · 5 for AIPO, and 0 for GRPO; below the cap the ratio itself."""
    inputs = inputs_of([math.log(7)], [0.0], advantage=1.5, weight=0.5)
    assert slope(aipo_loss(inputs, AipoSettings())[0], inputs)[0] == pytest.approx(-0.5 * 1.5 * 5)
    assert slope(grpo_loss(inputs, GrpoSettings())[0], inputs) == [0]
    below = inputs_of([math.log(2.97)], [0.0], advantage=1.5, weight=0.5)
    assert slope(aipo_loss(below, AipoSettings())[0], below)[0] == pytest.approx(-0.5 * 1.5 * 2.97)
    _, own = aipo_loss(inputs, AipoSettings())
    assert values(own) == pytest.approx({"weight_capped": 1.0, "weight_mean": 5.0})


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


def probable(policy: list[float], generator: list[float], advantage: float) -> ObjectiveInputs:
    """One token a sequence, of these probabilities."""
    count = len(policy)
    return ObjectiveInputs(
        logprobs=torch.tensor(policy, dtype=torch.float64).log().requires_grad_(),
        generator_logprobs=torch.tensor(generator, dtype=torch.float64).log(),
        sequence_index=torch.arange(count),
        advantages=torch.full((count,), advantage, dtype=torch.float64),
        token_weights=torch.ones(count, dtype=torch.float64),
    )


def dppo_slopes(inputs: ObjectiveInputs, settings: DppoSettings) -> list[float]:
    loss, _ = dppo_loss(inputs, settings)
    found: list[float] = torch.autograd.grad(loss, inputs.logprobs)[0].tolist()
    return found


@pytest.mark.parametrize("divergence", ["tv", "kl"])
def test_only_what_leads_out_of_the_region_loses_its_gradient(divergence: str) -> None:
    settings = DppoSettings(divergence=divergence)  # type: ignore[arg-type]
    policy, generator = [0.9, 0.1, 0.55], [0.5, 0.5, 0.5]  # far up, far down, near
    ratios = [one / other for one, other in zip(policy, generator, strict=True)]
    up, down = (
        dppo_slopes(probable(policy, generator, 2.0), settings),
        dppo_slopes(probable(policy, generator, -2.0), settings),
    )
    assert up == pytest.approx([0.0, -2 * ratios[1], -2 * ratios[2]])
    assert down == pytest.approx([2 * ratios[0], 0.0, 2 * ratios[2]])
    _, own = dppo_loss(probable(policy, generator, 2.0), settings)
    assert float(own["masked"].total / own["masked"].count) == pytest.approx(1 / 3)


def test_a_rare_token_keeps_the_gradient_that_grpo_clips_and_a_frequent_one_loses_it() -> None:
    """Ratio 100 moves 1e-3 of probability; ratio .8 moves .2 (the paper's own example)."""
    rare, frequent = probable([1e-3], [1e-5], 1.0), probable([0.79], [0.99], -1.0)
    assert dppo_slopes(rare, DppoSettings()) == pytest.approx([-100.0])
    assert dppo_slopes(frequent, DppoSettings()) == [0.0]
    clipped = torch.autograd.grad(grpo_loss(rare, GrpoSettings())[0], rare.logprobs)[0]
    kept = torch.autograd.grad(grpo_loss(inputs := probable([0.81], [0.99], -1.0), GrpoSettings())[0], inputs.logprobs)
    assert clipped.tolist() == [0.0]
    assert kept[0].tolist() == pytest.approx([0.81 / 0.99])


def test_the_distances_by_hand() -> None:
    policy, generator = torch.tensor([0.75, 0.2]).double().log(), torch.tensor([0.99, 0.2]).double().log()
    assert binary_distance(policy, generator, "tv").tolist() == pytest.approx([0.24, 0.0])
    kl = 0.99 * math.log(0.99 / 0.75) + 0.01 * math.log(0.01 / 0.25)
    assert binary_distance(policy, generator, "kl").tolist() == pytest.approx([kl, 0.0])
    certain = torch.zeros(1)
    assert binary_distance(certain, certain, "kl").tolist() == [0.0]
