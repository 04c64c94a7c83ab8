"""Credit through the seam: what each choice gives a minibatch, and which groups it drops."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from pydantic import ValidationError

from tests.training.optimisation.test_trainer import recipe
from training.objectives.base import CreditInputs
from training.objectives.credit import decide_group, group_credit
from training.objectives.grpo import GrpoSettings
from training.objectives.set_credit import majority_credit
from training.rewards import Reward

RIGHT = Reward(format=0.1, correctness=0.9, correct=True)
WRONG = Reward(format=0.1)
BAD = Reward(format_error="no boxed answer")
BROKEN = Reward(excluded_by="broken")


def settings(**changes: Any) -> GrpoSettings:
    return GrpoSettings(**{"advantage_normalisation": "none", "k": 2, **changes})


def test_a_vote_takes_answers_by_their_text_and_correct_ones_by_their_verdict() -> None:
    answers = ["1/2", "0.5", "3  4", "3 4", None]
    rewards = [RIGHT, RIGHT, WRONG, WRONG, BAD]
    inputs = CreditInputs(rewards, torch.tensor([1] * 5), torch.tensor([0] * 5), answers)
    wanted = majority_credit(["r", "r", "w", "w", None], [True, True, False, False, False], 3)
    found = group_credit(inputs, settings(credit="majority", k=3)).advantages
    assert found.tolist() == pytest.approx(wanted.tolist())
    assert found[0] > 0 > found[2]
    assert found[4] == 0


def test_they_are_scaled_and_not_centred_again() -> None:
    rewards, groups = [RIGHT, WRONG, WRONG, RIGHT, RIGHT, WRONG], torch.tensor([0, 0, 0, 1, 1, 1])
    inputs = CreditInputs(rewards, torch.tensor([1] * 6), groups)
    plain = group_credit(inputs, settings(credit="pass_at_k")).advantages
    for normalisation in ("minibatch", "group"):
        found = group_credit(inputs, settings(credit="pass_at_k", advantage_normalisation=normalisation)).advantages
        parts = [slice(0, 6)] if normalisation == "minibatch" else [slice(0, 3), slice(3, 6)]
        for part in parts:
            torch.testing.assert_close(found[part], plain[part] / plain[part].std(correction=0))
        assert found[1] == 0  # a wrong one has nothing, before and after


@pytest.mark.parametrize(
    ("rewards", "changes", "reason"),
    [
        ([RIGHT, WRONG, WRONG], {}, None),
        ([RIGHT, RIGHT, WRONG], {"k": 3}, "no_credit"),  # any three hold a right one, with it and without
        ([RIGHT, RIGHT, RIGHT], {}, "all_correct"),
        ([WRONG, WRONG, WRONG], {}, "none_correct"),
        ([WRONG, WRONG, BAD], {"credit": "majority"}, "none_correct"),  # a vote knows no format
        ([RIGHT, RIGHT, WRONG], {"credit": "majority"}, None),
        ([RIGHT, WRONG, BROKEN], {"k": 3}, "too_few_judged"),
        ([RIGHT, WRONG, BROKEN], {"k": 3, "credit": "reward"}, None),
    ],
)
def test_groups_without_credit_are_dropped(rewards: list[Reward], changes: dict[str, Any], reason: str | None) -> None:
    decision = decide_group(rewards, settings(**{"credit": "pass_at_k", **changes}))
    assert decision.drop_reason == reason
    assert decision.exclusion_reasons == tuple(reward.excluded_by for reward in rewards)


@pytest.mark.parametrize(
    ("table", "size", "said"),
    [
        ({"credit": "pass_at_k", "k": 8}, 4, "objective.k = 8 is more than collector.group_size = 4"),
        ({"credit": "majority", "k": 8}, 32, "goes over 10518300 subsets of k = 8"),
    ],
)
def test_a_group_that_is_too_small_or_too_large_is_refused(table: dict[str, Any], size: int, said: str) -> None:
    sizes = {"group_size": size, "n_async": size, "n_batch": size}
    with pytest.raises(ValidationError, match=said):
        recipe(objective=table, collector=sizes)
    for allowed in ({**table, "k": 2}, {"k": 8}):
        assert recipe(objective=allowed, collector=sizes).collector.group_size == size
