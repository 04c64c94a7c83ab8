"""The soft objective: its fixed point, its sample form by enumeration, values of problems, and its cross-entropy."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from itertools import islice
from pathlib import Path

import polars as pl
import pytest
import torch
from torch import Tensor

from curation.policies.checkpoints import folder_revision
from curation.records import ConfigError, Domain, PromptRequest
from tests.places import in_gate
from tests.training.engines.embedded.test_run import interrupt, small
from tests.training.objectives.ranks import alone, on_two_ranks, require_same
from tests.training.objectives.test_grpo import gradient
from training.config import RewardSettings
from training.embedded_model import WEIGHTS
from training.embedded_model.problems import Split, generate_exercises
from training.engines.embedded.run import train
from training.evaluation.metrics import read_metrics
from training.generation.checkpoint_tensors import read_tensors
from training.objectives import soft
from training.objectives.base import CreditInputs, ObjectiveInputs, ScoredGroups
from training.objectives.soft import (
    SoftSettings,
    learn_values,
    prior_value,
    soft_advantages,
    soft_credit,
    soft_decision,
    soft_loss,
    soft_values,
)
from training.optimisation import trainer
from training.recipe import TrainRecipe
from training.rewards import Reward
from training.rollouts.tasks import TrainingTask

ARMS = 5
REFERENCE = torch.tensor([0.5, -0.3, 0.9, -1.0, 0.1], dtype=torch.float64).log_softmax(-1)
BEHAVIOUR = torch.tensor([-0.5, 0.4, 0.0, 0.6, -0.2], dtype=torch.float64).log_softmax(-1)
REWARDS = torch.tensor([0.0, 1.0, 0.1, 1.1, 0.25], dtype=torch.float64)
ONE_GROUP = torch.zeros(ARMS, dtype=torch.int64)
OBJECTIVE = SoftSettings(tau=0.5)


def inputs_of(logits: Tensor, drawn: Tensor, advantages: Tensor, weights: Tensor) -> ObjectiveInputs:
    """One token a sequence; nothing may depend on the generator's probabilities."""
    logprobs, places = logits.log_softmax(-1)[drawn], torch.arange(len(drawn))
    nothing = torch.full_like(logprobs, -3.0).detach()
    return ObjectiveInputs(logprobs, nothing, places, advantages, weights, reference_logprobs=REFERENCE[drawn])


def surprises(logits: Tensor) -> Tensor:
    return REWARDS - OBJECTIVE.tau * (logits.log_softmax(-1) - REFERENCE)


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

    def half_variance(at: Tensor) -> Tensor:
        chances, rest = BEHAVIOUR.exp(), surprises(at)
        return 0.5 * (chances * (rest - (chances * rest).sum()).square()).sum()

    torch.testing.assert_close(total, gradient(half_variance, logits) * 2 / 3)


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


def test_credit_is_the_reward_and_groups_of_one_reward_teach() -> None:
    right, broken = Reward(correctness=1.0, correct=True), Reward(excluded_by="broken")
    credit = soft_credit(CreditInputs([right, Reward()], torch.tensor([7, 0]), ONE_GROUP[:2]), OBJECTIVE)
    assert (credit.advantages.tolist(), credit.token_weights.tolist()) == ([1.0, 0.0], [1.0, 0.0])
    assert soft_decision([right, right], OBJECTIVE).drop_reason is None
    assert soft_decision([right, broken], OBJECTIVE).drop_reason == "too_few_judged"


def test_masked_tokens_are_no_part_of_a_log_ratio() -> None:
    logits = torch.zeros(ARMS, dtype=torch.float64, requires_grad=True)
    inputs = inputs_of(logits, torch.arange(3), REWARDS[:3], torch.ones(3).double())
    mask = torch.tensor([True, False, True])
    other = torch.where(mask, inputs.reference_logprobs, 50.0)
    first, second = (soft_loss(replace(inputs, mask=mask, reference_logprobs=one), OBJECTIVE)[0]
                     for one in (inputs.reference_logprobs, other))  # fmt: skip
    assert first == second
    assert torch.autograd.grad(first, inputs.logprobs)[0][1] == 0
    with pytest.raises(ValueError, match="reference"):
        soft_loss(replace(inputs, reference_logprobs=None), OBJECTIVE)


@pytest.mark.slow
@in_gate("training/two-ranks")
def test_two_ranks_take_the_step_of_one() -> None:
    require_same(on_two_ranks()["soft"], alone("soft", 60))


TAU = 0.5
PLAIN, SIZES = RewardSettings(language=0.0), {"max_staleness": 0}
BEST, VALUE = (REFERENCE + REWARDS / TAU).softmax(-1), float(TAU * (REFERENCE + REWARDS / TAU).logsumexp(-1))


def task(correct: int = 1, judged: int = 2, policy: str | None = "m@r1", name: str = "a") -> TrainingTask:
    request = PromptRequest(name, "?", Domain.MATH, "en")
    return TrainingTask(request, "1", judged=judged, correct=correct, policy=policy)


@pytest.mark.parametrize("tau", [0.02, 3.0])
def test_a_pass_rate_is_the_best_policys_value_exactly(tau: float) -> None:
    """One right arm of probability 1/2, then 1/4: (c + 1/2) / (n + 1)."""
    for correct, judged, rate in ((1, 2, 0.5), (0, 1, 0.25)):
        reference = torch.tensor([rate, 1 - rate], dtype=torch.float64).log()
        exact = tau * (reference + torch.tensor([1.0, 0.1]).double() / tau).logsumexp(-1)
        assert prior_value(correct, judged, tau, PLAIN) == pytest.approx(float(exact))
    papers = RewardSettings()
    right, wrong = math.exp(1.1 / tau), math.exp(0.2 / tau)
    assert prior_value(1, 2, tau, papers) == pytest.approx(tau * math.log((right + wrong) / 2))


def test_with_a_known_value_credit_is_whole_before_the_step_and_one_rollout_teaches() -> None:
    settings, right = SoftSettings(value="prior", tau=TAU), Reward(correctness=1.0, correct=True)
    value = soft_values(settings, [task()], PLAIN, "other/name@r1")["a"]
    assert value == pytest.approx(prior_value(1, 2, TAU, PLAIN))
    sequences = CreditInputs([right, Reward()], torch.tensor([3, 3]), ONE_GROUP[:2], values=[value, value])
    assert soft_credit(sequences, settings).advantages.tolist() == pytest.approx([1 - value, -value])
    assert soft_decision([right], settings).drop_reason is None
    assert soft_decision([right], SoftSettings()).drop_reason == "too_few_judged"


def test_a_learned_value_begins_at_the_first_group_and_takes_a_part_of_the_way() -> None:
    values: dict[str, float] = {}
    learn_values(values, [("a", 1.0), ("b", 5.0), ("a", 0.0), ("a", 2.0)])
    assert values == pytest.approx({"a": 0.7 + 0.3 * (2 - 0.7), "b": 5.0})
    ratios = BEST.log() - REFERENCE  # at the best policy every response gives the best policy's value
    known = torch.full((ARMS,), VALUE, dtype=torch.float64)
    made = soft_advantages(
        ScoredGroups(REWARDS, ratios, torch.zeros(ARMS), known), SoftSettings(value="learned", tau=TAU)
    )
    assert list(made.estimates.values()) == [pytest.approx(VALUE)]


def test_cross_entropy_by_hand_and_beyond_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """r = 1 and 0 below a ceiling of 1, V = 0.8, tau = 0.5: Q = -0.4 + l."""
    monkeypatch.setattr(soft, "CEILING", 1.0)
    settings = SoftSettings(value="prior", tau=0.5)
    reference = torch.tensor([-2.0, -2.0], dtype=torch.float64)

    def loss(logprobs: Tensor) -> Tensor:
        inputs = ObjectiveInputs(
            logprobs, reference, torch.arange(2), torch.tensor([0.2, -0.8]).double(), torch.ones(2).double(),
            reference_logprobs=reference, rewards=torch.tensor([1.0, 0.0]),
        )  # fmt: skip
        return soft_loss(inputs, settings)[0]

    zero = math.exp(-2.0)
    wanted = 0.4 - (zero * -0.4 + (1 - zero) * math.log(1 - math.exp(-0.4)))
    assert loss(reference).item() == pytest.approx(wanted)
    beyond = torch.tensor([-1.0, -1.0], dtype=torch.float64, requires_grad=True)  # Q = 0.6, impossible
    (slope,) = torch.autograd.grad(loss(beyond), beyond)
    assert slope[0] == 0
    assert 1 < slope[1] < 25


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        (task(judged=0), "problem a has none; train on curated sets"),
        (task(policy=None), "problem a has none"),
        (task(policy="big@r2"), "needs pass rates of the reference m@r1, and problem a was measured with big@r2"),
    ],
)
def test_pass_rates_of_another_policy_are_refused(problem: TrainingTask, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        soft_values(SoftSettings(value="prior"), [task(name="b"), problem], PLAIN, "m@r1")


def test_a_recipe_trains_with_known_values_and_no_second_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = {"group": None, "domain": "math", "lang": "en", "meta": None, "judged": 16}
    shared |= {"policy": f"x@{folder_revision(WEIGHTS)}"}
    table = [
        shared | {"id": one.id, "statement": one.statement, "answer": str(one.answer), "correct": place % 16}
        for place, one in enumerate(islice(generate_exercises(3, Split.TRAIN), 40))
    ]
    (tmp_path / "set" / "data").mkdir(parents=True)
    pl.DataFrame(table).write_parquet(tmp_path / "set" / "data" / "train-0.parquet")
    monkeypatch.setattr(trainer, "sequence_sum", None)
    made = small(steps=1, collector=SIZES, evaluation={"data": None}, checks=False).model_dump()
    made |= {"objective": {"kind": "soft", "value": "prior"}}
    made |= {"data": {"kind": "curated", "folders": (str(tmp_path / "set"),)}}
    train(TrainRecipe.model_validate(made), Path(), tmp_path / "run")
    assert all(row["policy/soft_error"] > 0 for row in read_metrics(tmp_path / "run"))


@pytest.mark.slow
def test_learned_values_are_in_the_checkpoint_and_a_resumed_run_is_the_undisturbed_one(tmp_path: Path) -> None:
    changes = {"objective": {"kind": "soft", "value": "learned"}, "data": {"problems": 5}, "collector": SIZES}
    made = small(**changes, steps=3, evaluation={"data": None}, checks=False)
    train(made, Path(), tmp_path / "whole")
    interrupt(made, tmp_path / "again")
    train(made, Path(), tmp_path / "again", resume=True)
    first, second = dict(read_tensors(tmp_path / "whole" / "model")), dict(read_tensors(tmp_path / "again" / "model"))
    assert all(torch.equal(first[name], second[name]) for name in first)
