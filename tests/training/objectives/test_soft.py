"""The soft objective: its fixed point, its sample form by enumeration, and its first pass in the trainer."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from tests.places import in_gate
from tests.training.objectives.ranks import alone, on_two_ranks, require_same
from tests.training.objectives.test_grpo import gradient
from training.objectives.base import CreditInputs, ObjectiveInputs, ScoredGroups
from training.objectives.credit import token_weights
from training.objectives.soft import SoftSettings, soft_advantages, soft_credit, soft_decision, soft_loss
from training.rewards import Reward


def random_minibatch(seed: int, count: int) -> ObjectiveInputs:
    chance = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, 7, (count,), generator=chance)
    groups = torch.randint(0, 3, (count,), generator=chance)
    tokens = int(lengths.sum())

    def noise(size: int) -> Tensor:
        return torch.randn(size, generator=chance, dtype=torch.float64)

    return ObjectiveInputs(
        logprobs=(noise(tokens) - 2).requires_grad_(),
        generator_logprobs=noise(tokens) * 0.5 - 2,
        sequence_index=torch.repeat_interleave(torch.arange(count), lengths),
        advantages=noise(count),
        token_weights=token_weights(lengths, groups, "group"),
        mask=torch.rand(tokens, generator=chance) > 0.2,
        entropy=noise(tokens),
        reference_logprobs=noise(tokens) - 2,
        on_policy=torch.rand(tokens, generator=chance) > 0.5,
    )


ARMS = 5
REFERENCE = torch.tensor([0.5, -0.3, 0.9, -1.0, 0.1], dtype=torch.float64).log_softmax(-1)
BEHAVIOUR = torch.tensor([-0.5, 0.4, 0.0, 0.6, -0.2], dtype=torch.float64).log_softmax(-1)
REWARDS = torch.tensor([0.0, 1.0, 0.1, 1.1, 0.25], dtype=torch.float64)
ONE_GROUP = torch.zeros(ARMS, dtype=torch.int64)
OBJECTIVE = SoftSettings(tau=0.5)


def inputs_of(logits: Tensor, drawn: Tensor, advantages: Tensor, weights: Tensor) -> ObjectiveInputs:
    """One token a sequence; nothing may depend on the generator's probabilities."""
    logprobs = logits.log_softmax(-1)[drawn]
    nothing = torch.full_like(logprobs, -3.0).detach()
    places = torch.arange(len(drawn))
    return ObjectiveInputs(logprobs, nothing, places, advantages, weights, reference_logprobs=REFERENCE[drawn])


def surprises(logits: Tensor) -> Tensor:
    """[arms] r - tau l."""
    return REWARDS - OBJECTIVE.tau * (logits.log_softmax(-1) - REFERENCE)


def half_variance(logits: Tensor, chances: Tensor) -> Tensor:
    rest = surprises(logits)
    return 0.5 * (chances * (rest - (chances * rest).sum()).square()).sum()


def test_over_all_triples_the_expected_gradient_is_two_thirds_of_the_variances() -> None:
    logits, total = torch.tensor([0.2, -0.5, 0.4, 1.0, -0.3], dtype=torch.float64), torch.zeros(ARMS).double()
    third = torch.full((3,), 1 / 3, dtype=torch.float64)
    for arms in itertools.product(range(ARMS), repeat=3):
        drawn = torch.tensor(arms)
        ratios = (logits.log_softmax(-1) - REFERENCE)[drawn]
        gains = soft_advantages(ScoredGroups(REWARDS[drawn], ratios, torch.zeros(3)), OBJECTIVE).advantages

        def loss(at: Tensor, drawn: Tensor = drawn, gains: Tensor = gains) -> Tensor:
            return soft_loss(inputs_of(at, drawn, gains, third), OBJECTIVE)[0]

        total += BEHAVIOUR[drawn].sum().exp() * gradient(loss, logits)
    wanted = gradient(lambda at: half_variance(at, BEHAVIOUR.exp()), logits)
    torch.testing.assert_close(total, wanted * 2 / 3)


@pytest.mark.parametrize("behaviour", [REFERENCE, BEHAVIOUR])
def test_whoever_draws_the_fixed_point_is_the_reference_times_exp_of_reward_over_tau(behaviour: Tensor) -> None:
    best = (REFERENCE + REWARDS / OBJECTIVE.tau).log_softmax(-1)
    value = OBJECTIVE.tau * (REFERENCE + REWARDS / OBJECTIVE.tau).logsumexp(-1)
    torch.testing.assert_close(surprises(best), value.expand(ARMS))  # V* = tau log E_ref e^(r / tau), for every arm
    for logits, stays in ((best, True), (REFERENCE, False)):
        expected = (behaviour.exp() * surprises(logits)).sum()

        def loss(at: Tensor, expected: Tensor = expected) -> Tensor:
            return soft_loss(inputs_of(at, torch.arange(ARMS), REWARDS - expected, behaviour.exp()), OBJECTIVE)[0]

        assert (gradient(loss, logits).abs().max() < 1e-12) == stays


def test_by_hand() -> None:
    """Two tokens, l = 0.5 and -1; r = 1 and 0.1, V = (0.75 + 0.6) / 2 with tau 0.5."""
    made = soft_advantages(ScoredGroups(torch.tensor([1.0, 0.1]), torch.tensor([0.5, -1.0]), ONE_GROUP[:2]), OBJECTIVE)
    gains = made.advantages
    assert gains.tolist() == pytest.approx([0.325, -0.575])
    numbers = torch.tensor([-1.0, -2.0], dtype=torch.float64)
    inputs = ObjectiveInputs(
        numbers, numbers, ONE_GROUP[:2] + torch.arange(2), gains, torch.tensor([0.5, 0.5]).double(),
        reference_logprobs=torch.tensor([-1.5, -1.0], dtype=torch.float64),
    )  # fmt: skip
    loss, own = soft_loss(inputs, OBJECTIVE)
    assert loss.item() == pytest.approx(0.5 * 0.5 * (0.075**2 + 0.075**2))
    assert (own["soft_error"].total / own["soft_error"].count).item() == pytest.approx(0.075)
    with pytest.raises(ValueError, match="reference"):
        soft_loss(replace(inputs, reference_logprobs=None), OBJECTIVE)


def test_credit_is_the_reward_and_groups_of_one_reward_teach() -> None:
    right, broken = Reward(correctness=1.0, correct=True), Reward(excluded_by="broken")
    credit = soft_credit(CreditInputs([right, Reward()], torch.tensor([7, 0]), ONE_GROUP[:2]), OBJECTIVE)
    assert (credit.advantages.tolist(), credit.token_weights.tolist()) == ([1.0, 0.0], [1.0, 0.0])
    assert soft_decision([right, right], OBJECTIVE).drop_reason is None
    assert soft_decision([right, broken], OBJECTIVE).drop_reason == "too_few_judged"


def test_masked_tokens_are_no_part_of_a_log_ratio() -> None:
    inputs = random_minibatch(2, 5)
    assert inputs.mask is not None
    assert inputs.reference_logprobs is not None
    (slope,) = torch.autograd.grad(soft_loss(inputs, OBJECTIVE)[0], inputs.logprobs)
    assert slope[~inputs.mask].abs().max() == 0
    other = torch.where(inputs.mask, inputs.reference_logprobs, 50.0)
    assert soft_loss(replace(inputs, reference_logprobs=other), OBJECTIVE)[0] == soft_loss(inputs, OBJECTIVE)[0]


@pytest.mark.slow
@in_gate("training/two-ranks")
def test_two_ranks_take_the_step_of_one() -> None:
    require_same(on_two_ranks()["soft"], alone("soft", 60))
