"""GRPO and its presets, AIPO, SFT and DPPO (2602.04879): losses by hand, the KL term by enumeration, clipping."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor

from tests.training.optimisation.test_trainer import recipe
from training.config import ComputeSettings
from training.objectives import reference_kl
from training.objectives.aipo import AipoSettings, aipo_loss
from training.objectives.base import CreditInputs, GroupCredit, ObjectiveInputs, Statistic
from training.objectives.credit import advantages, group_credit, token_weights
from training.objectives.dppo import DppoSettings, binary_distance, dppo_loss
from training.objectives.grpo import GrpoSettings, grpo_loss
from training.objectives.presets import GroupCreditSettings
from training.objectives.sft import NOT_CORRECT, SFT, SftSettings, sft_credit, sft_decision, sft_loss
from training.objectives.step_statistics import joined, measured_over_ranks, policy_statistics
from training.optimisation.distributed import DistributedContext
from training.rewards import Reward


def inputs_of(logprobs: list[float], behaviour: list[float], advantage: float, weight: float = 1.0) -> ObjectiveInputs:
    return ObjectiveInputs(
        logprobs=torch.tensor(logprobs, dtype=torch.float64, requires_grad=True),
        generator_logprobs=torch.tensor(behaviour, dtype=torch.float64),
        sequence_index=torch.zeros(len(logprobs), dtype=torch.int64),
        advantages=torch.tensor([advantage], dtype=torch.float64),
        token_weights=torch.tensor([weight], dtype=torch.float64),
    )


def values(statistics: Mapping[str, Statistic]) -> dict[str, float]:
    measured = measured_over_ranks(statistics, DistributedContext(ComputeSettings()))
    return {name: one.value for name, one in measured.items()}


def summary(inputs: ObjectiveInputs, objective: GrpoSettings) -> dict[str, float]:
    return values(joined(policy_statistics(inputs), grpo_loss(inputs, objective)[1]))


def test_the_loss_by_hand() -> None:
    """Ratios 1.5 (clipped to 1.28) and 0.5 (not clipped, A > 0); then 1.5 (not clipped, A < 0) and 0.5 (to 0.8)."""
    inputs = replace(
        inputs_of([math.log(0.6), math.log(0.2)] * 2, [math.log(0.4)] * 4, 0.0),
        sequence_index=torch.tensor([0, 0, 1, 1]),
        advantages=torch.tensor([2.0, -1.0]).double(),
        token_weights=torch.tensor([0.25, 0.25]).double(),
    )
    loss, _ = grpo_loss(inputs, GrpoSettings())
    assert loss.item() == pytest.approx(-0.25 * (2 * 1.28 + 2 * 0.5 - 1.5 - 0.8))
    numbers = summary(inputs, GrpoSettings())
    assert (numbers["clip_high"], numbers["clip_low"]) == (0.25, 0.25)
    assert (numbers["ratio_mean"], numbers["ratio_max"]) == pytest.approx((1.0, 1.5))
    assert numbers["ess"] == pytest.approx(4**2 / (4 * 5.0))  # (1.5 + .5 + 1.5 + .5)² over 4 times the sum of squares
    assert numbers["log_ratio_max"] == pytest.approx(math.log(2))
    assert numbers["kl_generator"] == pytest.approx((0.5 - math.log(1.5) - 0.5 - math.log(0.5)) / 2)


def test_one_token_cannot_outweigh_a_batch() -> None:
    """Log-ratio 30 with A < 0: the printed objective's gradient is 1e13; at 9 it is the printed one."""
    for log_ratio, loss, gradient in ((30.0, math.exp(10), 0.0), (9.0, math.exp(9), math.exp(9))):
        inputs = inputs_of([0.0], [-log_ratio], advantage=-1.0)
        found, _ = grpo_loss(inputs, GrpoSettings())
        assert found.item() == pytest.approx(loss)
        assert slope(found, inputs) == pytest.approx([gradient])
    numbers = summary(inputs_of([0.0, 0.0], [-30.0, -9.0], advantage=-1.0), GrpoSettings())
    assert numbers["ratio_clamped"] == 0.5
    dual = inputs_of([math.log(4)], [0.0], advantage=-1.0)  # min(r A, clip(r) A), but at least 3 A (1912.09729)
    assert grpo_loss(dual, GrpoSettings(preset="dual_clip"))[0].item() == pytest.approx(3.0)
    assert numbers["ratio_max"] == pytest.approx(math.exp(20))  # measured ratios stay finite too
    assert math.isfinite(summary(inputs_of([0.0], [-800.0], advantage=-1.0), GrpoSettings())["kl_generator"])


def test_engine_and_staleness_are_measured_apart() -> None:
    """Log-ratios 0.1 and -0.3 where trainer and generator have the same weights, 1 and -2 elsewhere; one masked."""
    log_ratios, same = [0.1, -0.3, 1.0, -2.0, 5.0], [True, True, False, False, True]
    mask = torch.tensor([True, True, True, True, False])
    inputs = replace(inputs_of(log_ratios, [0.0] * 5, 1.0), mask=mask, on_policy=torch.tensor(same))
    numbers = values(policy_statistics(inputs))
    names = ("mismatch_share", "mismatch_mean", "mismatch_max", "stale_mean")
    assert [numbers[name] for name in names] == pytest.approx([0.5, 0.2, 0.3, 1.5])
    assert numbers["mismatch_kl"] == pytest.approx((math.exp(0.1) - 1.1 + math.exp(-0.3) - 0.7) / 2)
    assert numbers["stale_kl"] == pytest.approx((math.e - 2 + math.exp(-2) + 1) / 2)
    stale = values(policy_statistics(replace(inputs, on_policy=torch.zeros(5, dtype=torch.bool))))
    assert stale["mismatch_share"] == 0
    assert math.isnan(stale["mismatch_kl"])  # not 0: nothing was measured


def test_token_weights_by_hand() -> None:
    lengths, groups = torch.tensor([1, 3, 4, 0]), torch.tensor([5, 5, 9, 9])
    assert token_weights(lengths, groups, "group").tolist() == pytest.approx([1 / 8, 1 / 8, 1 / 8, 0])
    assert token_weights(lengths, groups, "batch").tolist() == pytest.approx([1 / 8, 1 / 8, 1 / 8, 0])
    assert token_weights(lengths, groups, "sequence").tolist() == pytest.approx([1 / 3, 1 / 9, 1 / 12, 0])
    uneven = token_weights(torch.tensor([1, 1, 8]), torch.tensor([0, 0, 1]), "group")
    assert uneven.tolist() == pytest.approx([1 / 4, 1 / 4, 1 / 16])
    assert token_weights(torch.tensor([1, 1, 8]), torch.tensor([0, 0, 1]), "batch").tolist() == pytest.approx([0.1] * 3)


def test_the_entropy_bonus_is_weighted_like_the_tokens() -> None:
    inputs = inputs_of([-1.0] * 2, [-1.0] * 2, advantage=0.0, weight=0.5)
    entropy = torch.tensor([1.0, 3.0], dtype=torch.float64, requires_grad=True)
    loss, _ = grpo_loss(replace(inputs, entropy=entropy), GrpoSettings(entropy_coef=0.01))
    assert loss.item() == pytest.approx(-0.02)
    for term, objective in (("entropy", GrpoSettings(entropy_coef=0.1)), ("reference", GrpoSettings(kl_coef=0.1))):
        with pytest.raises(ValueError, match=term):
            grpo_loss(inputs, objective)
    loss.backward()
    torch.testing.assert_close(entropy.grad, torch.full((2,), -0.005, dtype=torch.float64))


def gradient(function: Callable[[Tensor], Tensor], at: Tensor) -> Tensor:
    logits = at.clone().requires_grad_()
    return torch.autograd.grad(function(logits), logits)[0]


def test_tokens_that_do_not_count_do_nothing_whatever_they_hold() -> None:
    inputs = inputs_of([-1.3, -math.inf, -2.0], [-1.5, -math.inf, -2.0], advantage=1.0)
    masked = replace(inputs, mask=torch.tensor([True, False, True]))
    loss, _ = grpo_loss(masked, GrpoSettings())
    assert loss.item() == pytest.approx(-(math.exp(0.2) + 1))
    assert slope(loss, masked)[1] == 0
    assert summary(masked, GrpoSettings())["ratio_mean"] == pytest.approx((math.exp(0.2) + 1) / 2)
    empty = inputs_of([], [], advantage=1.0)
    assert grpo_loss(empty, GrpoSettings())[0].item() == 0
    numbers = summary(empty, GrpoSettings())
    assert math.isnan(numbers["clip_low"])  # a share of nothing is not 0
    assert numbers["ratio_max"] == -math.inf


def logprobs_of(logits: Tensor) -> Tensor:
    """Return [9, 2] log-probabilities of the tokens of all sequences of two tokens out of three.

    The logits are of the first token, then of the second for each first one.
    """
    logp, pairs = logits.log_softmax(-1), itertools.product(range(3), repeat=2)
    return torch.stack([torch.stack([logp[0, first], logp[1 + first, second]]) for first, second in pairs])


@pytest.mark.parametrize("behaviour", [3, 5])
def test_the_kl_term_has_the_gradient_of_the_sequence_kl(behaviour: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """On policy (3) and off policy (5), each sequence as often as the behaviour draws it (arXiv 2506.09477)."""
    monkeypatch.setattr(reference_kl, "MAX_KL_RATIO", 1e9)
    draw = {seed: torch.Generator().manual_seed(seed) for seed in (3, 4, 5)}
    policies = {seed: torch.randn(4, 3, generator=one, dtype=torch.float64) for seed, one in draw.items()}
    reference, mu = logprobs_of(policies[4]), logprobs_of(policies[behaviour])

    def loss(logits: Tensor) -> Tensor:
        inputs = ObjectiveInputs(
            logprobs_of(logits).flatten(),
            mu.flatten(),
            torch.repeat_interleave(torch.arange(9), 2),
            torch.zeros(9, dtype=torch.float64),
            mu.sum(-1).exp(),
            reference_logprobs=reference.flatten(),
        )
        return grpo_loss(inputs, GrpoSettings(kl_coef=1.0))[0]

    def sequence_kl(logits: Tensor) -> Tensor:
        own = logprobs_of(logits).sum(-1)
        return (own.exp() * (own - reference.sum(-1))).sum()

    torch.testing.assert_close(gradient(loss, policies[3]), gradient(sequence_kl, policies[3]), atol=1e-8, rtol=1e-6)


def test_the_kl_to_the_reference_by_hand_where_it_is_zero_and_where_it_is_capped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One token each, e times and as likely as under the reference: r - 1 - log r for r = 1/e and 1."""
    settings = GrpoSettings(kl_coef=1.0)
    inputs = replace(inputs_of([-1.0, -0.3], [-1.0, -0.3], 0.0), reference_logprobs=torch.tensor([-2.0, -0.3]).double())
    assert summary(inputs, settings)["kl_reference"] == pytest.approx(math.exp(-1) / 2)
    same = replace(inputs, reference_logprobs=inputs.logprobs.detach())
    loss, _ = grpo_loss(same, settings)
    assert (loss.item(), summary(same, settings)["kl_reference"]) == (0, 0)
    assert torch.autograd.grad(loss, inputs.logprobs)[0].abs().max() == 0
    monkeypatch.setattr(reference_kl, "MAX_KL_RATIO", 2.0)
    stale = replace(inputs_of([0.0], [-9.0], 0.0), reference_logprobs=torch.tensor([-1.0]).double())
    found = slope(grpo_loss(stale, settings)[0], stale)
    assert found == pytest.approx([2.0 * 1.0])  # the ratio e^9 counts as 2, the log-ratio is 1


RIGHT, WRONG = Reward(correctness=1.0, correct=True), Reward()
REWARDS = [RIGHT, WRONG, WRONG, WRONG, RIGHT, WRONG]
LENGTHS, GROUPS = torch.tensor([2, 4, 4, 10, 5, 5]), torch.tensor([0, 0, 0, 0, 1, 1])
CENTRED = [0.75, -0.25, -0.25, -0.25, 0.5, -0.5]
DEVIATIONS = [math.sqrt(3) / 4] * 4 + [0.5] * 2


def credited(settings: GroupCreditSettings, **changes: Any) -> GroupCredit:
    return group_credit(replace(CreditInputs(REWARDS, LENGTHS, GROUPS), **changes), settings)


def slope(loss: Tensor, inputs: ObjectiveInputs) -> list[float]:
    return torch.autograd.grad(loss, inputs.logprobs)[0].tolist()


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


FAILED = Reward(excluded_by="timeout")


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
        index, unknown = torch.arange(len(members)).repeat_interleave(lengths[members]), torch.zeros_like(logprobs)
        weighed = (credit.advantages[members], credit.token_weights[members])
        loss, own = sft_loss(ObjectiveInputs(logprobs, unknown, index, *weighed, drawn=unknown.bool()), settings)
        total += float(loss)
        assert float(own["nll"].total) == pytest.approx(-float(logprobs.sum()))
    assert total == pytest.approx(-float(torch.cat(values).mean()))


def probable(policy: list[float], generator: list[float], advantage: float) -> ObjectiveInputs:
    logprobs, ones = [torch.tensor(one).double().log() for one in (policy, generator)], torch.ones(len(policy)).double()
    return ObjectiveInputs(logprobs[0].requires_grad_(), logprobs[1], torch.arange(len(ones)), advantage * ones, ones)


def dppo_slopes(inputs: ObjectiveInputs, settings: DppoSettings) -> list[float]:
    return slope(dppo_loss(inputs, settings)[0], inputs)


@pytest.mark.parametrize("divergence", ["tv", "kl"])
def test_only_what_leads_out_of_the_region_loses_its_gradient(divergence: str) -> None:
    settings = DppoSettings(divergence=divergence)  # type: ignore[arg-type]
    policy, generator = [0.9, 0.1, 0.55], [0.5, 0.5, 0.5]  # far up, far down, near
    ratios = [one / other for one, other in zip(policy, generator, strict=True)]
    up, down = (dppo_slopes(probable(policy, generator, gain), settings) for gain in (2.0, -2.0))
    assert up == pytest.approx([0.0, -2 * ratios[1], -2 * ratios[2]])
    assert down == pytest.approx([2 * ratios[0], 0.0, 2 * ratios[2]])
    _, own = dppo_loss(probable(policy, generator, 2.0), settings)
    assert float(own["masked"].total / own["masked"].count) == pytest.approx(1 / 3)


def test_a_rare_token_keeps_the_gradient_that_grpo_clips_and_a_frequent_one_loses_it() -> None:
    """Ratio 100 moves 1e-3 of probability; ratio .8 moves .2 (the paper's own example)."""
    rare, frequent = probable([1e-3], [1e-5], 1.0), probable([0.79], [0.99], -1.0)
    assert dppo_slopes(rare, DppoSettings()) == pytest.approx([-100.0])
    assert dppo_slopes(frequent, DppoSettings()) == [0.0]
    assert slope(grpo_loss(rare, GrpoSettings())[0], rare) == [0.0]
    near = probable([0.81], [0.99], -1.0)
    assert slope(grpo_loss(near, GrpoSettings())[0], near) == pytest.approx([0.81 / 0.99])


def test_the_distances_by_hand() -> None:
    policy, generator = torch.tensor([0.75, 0.2]).double().log(), torch.tensor([0.99, 0.2]).double().log()
    assert binary_distance(policy, generator, "tv").tolist() == pytest.approx([0.24, 0.0])
    kl = 0.99 * math.log(0.99 / 0.75) + 0.01 * math.log(0.01 / 0.25)
    assert binary_distance(policy, generator, "kl").tolist() == pytest.approx([kl, 0.0])
    certain = torch.zeros(1)
    assert binary_distance(certain, certain, "kl").tolist() == [0.0]
