"""An objective in a file of the user's own: loaded by a recipe, trained with, and known again by its digest."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from curation.config.loading import load_settings, parse_settings
from curation.records import ConfigError
from flows.run.training import load_train_recipe
from training.engines.embedded.run import train
from training.evaluation.metrics import read_metrics
from training.objectives.base import CreditInputs, ObjectiveInputs
from training.objectives.registry import ObjectiveError, objective_of, own_settings
from training.recipe import TrainRecipe
from training.rewards import Reward

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
    train(recipe, folder, folder / "run")
    (row,) = read_metrics(folder / "run")
    assert 0 < row["policy/bounded"] <= 1

    assert recipe.objective.kind.startswith("my_loss.py:MyLoss@")


def test_a_run_that_goes_on_refuses_a_changed_file(folder: Path) -> None:
    (folder / "my_loss.py").write_text(FILE + f"\n# {folder}\n")
    table = load_train_recipe(folder / "own.toml").model_dump(mode="json")
    assert parse_settings(TrainRecipe, table, "run.json", (), folder).model_dump(mode="json") == table
    table["objective"]["kind"] = table["objective"]["kind"][:-4] + "0000"
    with pytest.raises(ConfigError, match="has changed since the run began"):
        parse_settings(TrainRecipe, table, "run.json", (), folder)


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


def per_token(inputs, settings):
    return inputs.logprobs, {}


def failing(inputs, settings):
    return inputs.nothing


BAD = Objective(GroupCreditSettings, per_token, credit=short)
FAILS = Objective(GroupCreditSettings, failing)
"""


def test_its_mistakes_are_named(folder: Path) -> None:
    (folder / "bad.py").write_text(FAULTY)
    bad, fails = (own_settings({"kind": f"bad.py:{name}"}, folder) for name in ("BAD", "FAILS"))
    batch = CreditInputs([Reward(), Reward()], torch.tensor([3, 3]), torch.tensor([0, 0]))
    part = ObjectiveInputs(torch.zeros(3), torch.zeros(3), torch.tensor([0, 0, 1]), torch.zeros(2), torch.ones(2))
    with pytest.raises(ObjectiveError, match=r"bad.py:BAD@\w+: `advantages` of `credit` is a tensor of shape \[1\]"):
        objective_of(bad).credit(batch, bad)
    with pytest.raises(ObjectiveError, match=r"result of `loss` is a tensor of shape \[3\]; return one number"):
        objective_of(bad).loss(part, bad)
    with pytest.raises(ObjectiveError, match=r"bad.py:16: AttributeError: .*\(in `loss`\)"):
        objective_of(fails).loss(part, fails)
