"""Another objective through the same seam: registered in one line, chosen by a recipe, trained on 1 and on 2 ranks.

The toy is `tests.training.objectives.reinforce`; nothing in the trainer, the loop or the metrics knows its name or its
statistics.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import ValidationError

from curation.config import to_plain
from flows.cli.settings import settings_of
from tests.places import ROOT
from tests.training.engines.embedded.test_run import lines
from tests.training.objectives.reinforce import REINFORCE, TABLE, ReinforceSettings, run_recipe, step
from tests.training.optimisation.test_trainer import recipe
from training.config import ComputeSettings
from training.engines.embedded.run import train
from training.evaluation.metrics import STEP_METRICS, read_metrics
from training.objectives.base import ObjectiveInputs, Statistic
from training.objectives.grpo import GrpoSettings
from training.objectives.registry import OBJECTIVES, objective_of
from training.objectives.step_statistics import added, joined, max_of, mean_of, policy_statistics, sum_of
from training.optimisation.distributed import DistributedContext
from training.recipe import TrainRecipe

OWN = {"surprise", "surprise_max", "surprising_tokens"}


@pytest.fixture
def registered() -> Iterator[None]:
    OBJECTIVES["reinforce"] = REINFORCE
    yield
    del OBJECTIVES["reinforce"]


def on_two_ranks(out: Path) -> None:
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    command = [sys.executable, *launcher, "-m", "tests.training.objectives.reinforce", str(out)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]


def test_without_a_kind_an_objective_is_the_papers() -> None:
    old = recipe(objective={"kl_coef": 0.5, "eps_high": 0.3})
    assert old == recipe(objective={"kind": "grpo", "kl_coef": 0.5, "eps_high": 0.3})
    assert recipe().objective == GrpoSettings()
    assert objective_of(old.objective).kind == "grpo"


def test_a_run_keeps_the_whole_table_and_reads_it_again(registered: None) -> None:
    made = recipe(objective=TABLE)
    held = made.model_dump(mode="json")
    assert held["objective"] == {"kind": "reinforce", "baseline": 0.5, "confidence": 0.01}
    assert TrainRecipe.model_validate(to_plain(json.loads(json.dumps(held)))) == made


@pytest.mark.parametrize(
    ("table", "place", "said"),
    [
        ({"kind": "nonsense"}, ("objective",), "'jepo', 'sft', 'soft', 'reinforce'"),
        ({"kind": "reinforce", "eps_high": 0.3}, ("objective", "reinforce", "eps_high"), "not permitted"),
        ({"baseline": 0.1}, ("objective", "grpo", "baseline"), "not permitted"),
        ({"kind": "reinforce", "confidence": -1.0}, ("objective", "reinforce", "confidence"), "greater than"),
    ],
)
def test_a_key_of_another_kind_is_refused(
    registered: None, table: dict[str, Any], place: tuple[str, ...], said: str
) -> None:
    with pytest.raises(ValidationError) as refused:
        recipe().model_validate({**recipe().model_dump(exclude={"objective"}), "objective": table})
    (detail,) = refused.value.errors()
    assert detail["loc"] == place
    assert said in detail["msg"]


def test_a_registered_objective_stands_among_the_settings(registered: None) -> None:
    keys = {row.key for row in settings_of(TrainRecipe)}
    assert {"objective", "objective(grpo).kl_coef", "objective(reinforce).baseline"} <= keys
    schema = TrainRecipe.model_json_schema()
    assert schema["properties"]["objective"]["discriminator"]["mapping"].keys() == {*OBJECTIVES}
    assert "baseline" in schema["$defs"]["ReinforceSettings"]["properties"]


def test_each_reduction_adds_up_as_it_says() -> None:
    values, all_count = torch.tensor([1.0, -4.0, 2.0]), torch.tensor([True, True, True])
    one, other = torch.tensor([True, False, False]), torch.tensor([False, True, True])
    for make in (mean_of, sum_of, max_of):
        whole, parts = make(values, all_count), make(values, one) + make(values, other)
        assert (whole.total, whole.count) == (parts.total, parts.count)
    assert max_of(-values, torch.tensor([True, False, True])).total == -1  # what does not count is no 0
    table = {"x": mean_of(values, one)}
    assert added(table, table)["x"].count == 2


def test_a_statistic_under_a_name_that_is_taken_is_refused() -> None:
    numbers = torch.tensor([-1.0])
    inputs = ObjectiveInputs(numbers, numbers, torch.tensor([0]), numbers, numbers)
    own: dict[str, Statistic] = {"ratio_max": sum_of(numbers, torch.tensor([True]))}
    with pytest.raises(ValueError, match="ratio_max"):
        joined(policy_statistics(inputs), own)
    with pytest.raises(ValueError, match="loss"):
        joined({}, {"loss": own["ratio_max"]})


def test_it_trains_a_whole_run_and_reports_its_own_statistics(registered: None, tmp_path: Path) -> None:
    train(run_recipe(), Path(), tmp_path / "run")
    rows = read_metrics(tmp_path / "run")
    assert len(rows) == 3
    for row in rows:
        assert not {*STEP_METRICS, *(f"policy/{name}" for name in OWN)} - set(row)
        assert not {"policy/clip_low", "policy/clip_high", "policy/kl_reference"} & set(row)
        assert row["policy/surprise_max"] > row["policy/surprise"] > 0
        assert row["policy/surprising_tokens"] == int(row["policy/surprising_tokens"])
    trained = {tuple(one) for row in lines(tmp_path / "run/batches.jsonl") for one in row["attempts"]}
    attempts = {(row["group"], row["index"]): row["reward"] for row in lines(tmp_path / "run/attempts.jsonl")}
    groups = {group for group, _ in trained}
    totals = {group: {attempts[one]["total"] for one in trained if one[0] == group} for group in groups}
    assert any(len(same) == 1 for same in totals.values())  # groups that GRPO drops teach here


def test_the_gradient_is_the_sum_over_micro_batches(registered: None) -> None:
    whole, cut = (step(DistributedContext(ComputeSettings()), room) for room in (512, 60))
    assert whole is not None
    assert cut is not None
    assert cut["parts"] > whole["parts"] == 1
    assert cut["loss"] == pytest.approx(whole["loss"], abs=1e-6)
    assert cut["statistics"] == pytest.approx(whole["statistics"], rel=1e-5, abs=1e-6)
    assert torch.allclose(cut["gradient"], whole["gradient"], rtol=0, atol=1e-6)
    assert whole["gradient"].abs().max() > 1e-3


@pytest.mark.slow
def test_two_ranks_have_the_gradient_and_the_statistics_of_one(registered: None, tmp_path: Path) -> None:
    alone = step(DistributedContext(ComputeSettings()), 60)
    assert alone is not None
    on_two_ranks(tmp_path)
    both = json.loads((tmp_path / "step.json").read_text())
    assert both["parts"] >= 2
    assert both["loss"] == pytest.approx(alone["loss"], abs=1e-6)
    assert both["statistics"].keys() == alone["statistics"].keys() >= OWN
    assert both["statistics"] == pytest.approx(alone["statistics"], rel=1e-5, abs=1e-6)
    assert torch.allclose(torch.load(tmp_path / "gradient.pt"), alone["gradient"], rtol=0, atol=1e-6)


def test_the_toys_settings_are_its_own() -> None:
    assert "reinforce" not in OBJECTIVES
    assert REINFORCE.kind == ReinforceSettings().kind == "reinforce"
