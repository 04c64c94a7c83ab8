"""The seam of objectives: keys, statistics, steps on micro-batches and ranks, and an objective of the user's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import ValidationError

from curation.config.loading import load_settings
from curation.records import ConfigError
from flows.run.training import load_train_recipe
from tests.places import in_gate
from tests.training.objectives.ranks import alone, on_two_ranks, require_same
from tests.training.optimisation.test_trainer import recipe
from training.engines.embedded.run import train
from training.evaluation.metrics import read_metrics
from training.objectives.base import ObjectiveInputs
from training.objectives.registry import ObjectiveError, own_settings
from training.objectives.step_statistics import joined, max_of, mean_of, policy_statistics
from training.recipe import TrainRecipe


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


FILE = '''"""REINFORCE whose gain is bounded."""

from pydantic import Field

from training.objectives import GroupCreditSettings, Objective, counted, mean_of


class Settings(GroupCreditSettings):
    bound: float = Field(1.0, gt=0)


def loss(inputs, settings):
    counts, gain = counted(inputs), inputs.per_token(inputs.advantages)
    bounded = gain.clamp(-settings.bound, settings.bound)
    value = -(inputs.per_token(inputs.token_weights) * bounded * inputs.logprobs)[counts].sum()
    return value, {"bounded": mean_of(gain.abs() > settings.bound, counts)}


MyLoss = Objective(Settings, loss)
NUMBER = 3
'''
RECIPE = """
steps = 1
model = "student"
models.student = { kind = "torch", model = "embedded", prompt = "plain" }
checks = false
data = { kind = "embedded", problems = 40 }
collector = { group_size = 4, n_batch = 16, n_async = 16, max_staleness = 0 }
rewards = { max_length = 60 }
objective = { kind = "my_loss.py:MyLoss", bound = 0.5 }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "my_loss.py").write_text(FILE)
    (tmp_path / "own.toml").write_text(RECIPE)
    return tmp_path


@pytest.mark.slow
def test_a_run_trains_with_it_and_reports_its_statistic(folder: Path) -> None:
    recipe = load_train_recipe(folder / "own.toml")
    assert recipe.objective.kind.startswith("my_loss.py:MyLoss@")
    train(recipe, folder, folder / "run")
    (row,) = read_metrics(folder / "run")
    assert 0 < row["policy/bounded"] <= 1


@pytest.mark.parametrize(
    ("override", "refusal"),
    [
        ('objective.kind="my_loss.py:NUMBER"', "is a int; it must be an Objective"),
        ('objective.kind="my_loss.py:MyLos"', "did you mean MyLoss"),
        ('objective.kind="nowhere.py:MyLoss"', "there is no file"),
        ("objective.bond=1.0", "unknown key `bond`; did you mean `bound`"),
        ("objective.bound=-1.0", "greater than 0"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_a_sentence(folder: Path, override: str, refusal: str) -> None:
    with pytest.raises(ConfigError, match=refusal):
        load_settings(TrainRecipe, folder / "own.toml", (override,))


FAULTY = """
import torch
from training.objectives import GroupCredit, GroupCreditSettings, Objective

def short(inputs, settings):
    return GroupCredit(torch.zeros(1), torch.zeros(2))

def loss(inputs, settings):
    return {returned}

BAD = Objective(GroupCreditSettings, loss{more})
"""


@pytest.mark.parametrize(
    ("returned", "more", "mistake"),
    [
        ("inputs.logprobs", ", credit=short", r"bad.py:BAD@\w+: `advantages` of `credit` is a tensor of shape \[1\]"),
        ("inputs.logprobs, {}", "", r"result of `loss` is a tensor of shape \[48\]; return one number"),
        ("inputs.nothing", "", r"bad.py:9: AttributeError: .*\(in `loss`\)"),
        ("inputs.logprobs.sum()", "", r"`loss` returns tensor\(.*; return \(loss, statistics\)"),
        ("inputs.logprobs.detach().sum(), {}", "", "`loss` has no gradient"),
        ("inputs.logprobs, {}", ", needs=lambda settings: None", "`needs` returns None; return ObjectiveNeeds"),
        (
            "inputs.logprobs, {}",
            ", decide=lambda rewards, settings: None",
            "`decide` returns None; return a GroupDecision",
        ),
        (
            "inputs.logprobs, {}",
            ", decide=lambda rewards, settings: rewards.best",
            r"AttributeError: .*\(in `decide`\)",
        ),
        (
            "inputs.logprobs, {}",
            ", second_pass=lambda scored, settings: scored.best",
            r"AttributeError: .*\(in `second_pass`\)",
        ),
        (
            "inputs.logprobs, {}",
            ", second_pass=lambda scored, settings: scored",
            "`second_pass` returns ScoredGroups.*; return GroupWeights",
        ),
    ],
)
def test_its_mistakes_are_named_before_a_run(folder: Path, returned: str, more: str, mistake: str) -> None:
    (folder / "bad.py").write_text(FAULTY.replace("{returned}", returned).replace("{more}", more))
    with pytest.raises(ObjectiveError, match=mistake):
        own_settings({"kind": "bad.py:BAD"}, folder)
