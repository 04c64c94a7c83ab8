"""The numbers of a run: shares of time and of groups, batches by hand, and what a package for monitoring is told."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from curation.config.schedule import MonitorSettings
from curation.policies.completions import TokenCompletion
from curation.records import ConfigError, Outcome
from training.evaluation.metrics import MetricsLogger, SampledGroupStats, open_monitors
from training.objectives.base import Statistic
from training.optimisation.checkpoint import JsonlLog
from training.optimisation.trainer import StepResult
from training.rewards import Reward
from training.rollouts.batches import batch_metrics, policy_metrics
from training.rollouts.rollout_scheduler import RolloutGroup, RolloutRequest
from training.rollouts.rollouts import Rollout


def rollout(
    correct: bool, tokens: int, versions: tuple[int, ...] | None = None, excluded: str | None = None
) -> Rollout:
    made = TokenCompletion((1, 2), (5,) * tokens, (-0.5,) * tokens, versions or (3,) * tokens, "text", "stop")
    reward = Reward(excluded_by=excluded) if excluded else Reward(0.1, 0.9 * correct, correct=correct)
    return Rollout("p", made, reward, Outcome.CORRECT if correct else Outcome.WRONG, "number")


def group(number: int, *rollouts: Rollout) -> RolloutGroup[Rollout]:
    pairs = tuple((RolloutRequest(number, index, "p", 0), one) for index, one in enumerate(rollouts))
    return RolloutGroup(number, "p", 0, pairs, ())


GROUPS = (
    group(0, rollout(True, 2), rollout(False, 4, (2, 2, 3, 3))),
    group(1, rollout(True, 3), rollout(False, 3)),
)


def test_batch_numbers_by_hand() -> None:
    numbers = batch_metrics(GROUPS, version=4)
    assert numbers["reward/total"] == pytest.approx(0.55)
    assert numbers["batch/pass_rate"] == 0.5
    assert numbers["length/trained_mean"] == 3
    assert numbers["age/token_mean"] == pytest.approx((10 * 1 + 2 * 2) / 12)
    assert numbers["age/token_max"] == 2


def test_what_was_sampled_counts_groups_that_are_dropped_too() -> None:
    count, right, wrong = SampledGroupStats(), Reward(0.1, 0.9, correct=True), Reward(0.1)
    count.add([right, right], [2, 2], ["stop", "stop"], is_dropped=True)
    count.add([wrong, right, Reward(excluded_by="timeout")], [4, 4, 4], ["stop", "length", "stop"], is_dropped=False)
    numbers = count.numbers()
    assert (numbers["sampled/all"], numbers["sampled/some"], numbers["sampled/none"]) == (0.5, 0.5, 0)
    assert (numbers["sampled/dropped"], numbers["length/cut_share"]) == (0.5, 0.2)
    assert numbers["sampled/pass_rate"] == pytest.approx(0.75)
    assert numbers["sampled/excluded"] == 1
    assert numbers["length/sampled_mean"] == pytest.approx(16 / 5)
    assert count.tokens == 16
    assert SampledGroupStats().numbers() == {}


def test_several_optimiser_steps_are_weighted_by_their_tokens() -> None:
    first = {"mean": Statistic("mean", 10.0, 10.0), "largest": Statistic("max", 3.0)}
    second = {"mean": Statistic("mean", 60.0, 30.0), "largest": Statistic("max", 2.0)}
    steps = [
        StepResult(0.5, 2.0, 1e-3, first, 1, 20, 10, 0.5),
        StepResult(-0.25, 1.0, 2e-3, second, 1, 40, 30, 0.5),
    ]
    numbers = policy_metrics(steps)
    assert numbers["policy/loss"] == 0.25
    assert numbers["policy/mean"] == pytest.approx(1.75)
    assert numbers["policy/largest"] == 3
    assert numbers["policy/gradient_norm"] == 2
    assert numbers["policy/learning_rate"] == 2e-3


class Noted(ModuleType):
    """A package that notes what it is told."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.calls: list[tuple[str, Any]] = []

    def init(self, **options: Any) -> None:
        self.calls.append(("init", options))

    def log(self, numbers: dict[str, float], *, step: int) -> None:
        self.calls.append(("log", (step, numbers)))

    def finish(self) -> None:
        self.calls.append(("finish", None))


def test_every_step_is_shown_and_a_run_that_goes_on_is_the_same_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted = Noted("wandb")
    monkeypatch.setitem(sys.modules, "wandb", noted)
    settings = MonitorSettings(wandb="sums")
    for step in (1, 2):
        log = JsonlLog(tmp_path / "metrics.jsonl")
        monitors = open_monitors(settings, "my-run", tmp_path, {"seed": 3})
        logger = MetricsLogger(tmp_path, log, 2, step, monitors)
        logger.log_step(step, {"policy/loss": 0.5 * step, "speed/nan": float("nan")})
        logger.close()
        log.close()
    assert [name for name, _ in noted.calls] == ["init", "log", "finish"] * 2
    first, again = (options for name, options in noted.calls if name == "init")
    assert first == again
    assert (first["project"], first["name"], first["config"]) == ("sums", "my-run", {"seed": 3})
    assert first["id"].startswith("my-run-")
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    shown = [{"step": step, **numbers} for name, (step, numbers) in noted.calls[1:5:3]]
    assert shown == rows == [{"step": 1, "policy/loss": 0.5}, {"step": 2, "policy/loss": 1.0}]


def test_nothing_is_shown_unless_asked_for_and_a_missing_package_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert open_monitors(MonitorSettings(), "a", tmp_path, {}) == []
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(ConfigError, match=r"monitor.wandb needs the package wandb"):
        open_monitors(MonitorSettings(wandb="sums"), "a", tmp_path, {})
