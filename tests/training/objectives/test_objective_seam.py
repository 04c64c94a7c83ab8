"""The seam of objectives: their keys, sums of statistics, and steps that do not depend on micro-batches or ranks.

An objective in a file of the user's own: `test_own_objective.py`.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from pydantic import ValidationError

from tests.places import in_gate
from tests.training.objectives.ranks import alone, on_two_ranks, require_same
from tests.training.optimisation.test_trainer import recipe
from training.objectives.base import ObjectiveInputs
from training.objectives.step_statistics import joined, max_of, mean_of, policy_statistics


@pytest.mark.parametrize(
    ("table", "place", "said"),
    [
        ({"kind": "nonsense"}, ("objective",), "'jepo', 'sft', 'soft'"),
        ({"kind": "aipo", "eps_high": 0.3}, ("objective", "aipo", "eps_high"), "not permitted"),
        ({"tau": 0.1}, ("objective", "grpo", "tau"), "not permitted"),  # without a kind it is the paper's
        ({"kind": "soft", "tau": -1.0}, ("objective", "soft", "tau"), "greater than"),
    ],
)
def test_a_key_of_another_kind_is_refused(table: dict[str, Any], place: tuple[str, ...], said: str) -> None:
    with pytest.raises(ValidationError) as refused:
        recipe().model_validate({**recipe().model_dump(exclude={"objective"}), "objective": table})
    (detail,) = refused.value.errors()
    assert detail["loc"] == place
    assert said in detail["msg"]


def test_each_reduction_adds_up_as_it_says() -> None:
    values, all_count = torch.tensor([1.0, -4.0, 2.0]), torch.tensor([True, True, True])
    one, other = torch.tensor([True, False, False]), torch.tensor([False, True, True])
    for make in (mean_of, max_of):
        whole, parts = make(values, all_count), make(values, one) + make(values, other)
        assert (whole.total, whole.count) == (parts.total, parts.count)
    assert max_of(-values, torch.tensor([True, False, True])).total == -1  # what does not count is no 0


def test_a_statistic_under_a_name_that_is_taken_is_refused() -> None:
    numbers = torch.tensor([-1.0])
    inputs = ObjectiveInputs(numbers, numbers, torch.tensor([0]), numbers, numbers)
    own = mean_of(numbers, torch.tensor([True]))
    for taken, name in ((policy_statistics(inputs), "ratio_max"), ({}, "loss")):
        with pytest.raises(ValueError, match=name):
            joined(taken, {name: own})


@pytest.mark.parametrize("kind", ["grpo", "soft"])
def test_a_step_is_the_sum_over_micro_batches_also_of_parts_of_groups(kind: str) -> None:
    whole, cut = (alone(kind, room) for room in (512, 60))
    assert cut["parts"] > whole["parts"] == 1
    require_same(cut, whole)


@pytest.mark.slow
@in_gate("training/two-ranks")
def test_two_ranks_have_the_gradient_and_the_statistics_of_one() -> None:
    require_same(on_two_ranks()["grpo"], alone("grpo", 60))
