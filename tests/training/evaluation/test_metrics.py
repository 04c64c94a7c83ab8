"""The numbers of a run by hand: batches, groups, estimators against enumeration, comparisons of arms, monitoring."""

from __future__ import annotations

import itertools
import json
import math
import statistics
import sys
from collections import Counter
from itertools import combinations
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from safetensors.torch import load_file, save_file

from curation.config.base import to_plain
from curation.config.schedule import MonitorSettings
from curation.policies.completions import TokenCompletion
from curation.records import ConfigError, Outcome
from training.embedded_model import WEIGHTS
from training.evaluation.ablations import Ablation, TrainedArm, ablation_lines, compare_arms
from training.evaluation.directions import Point, fit_log_length, principal_directions, write_point
from training.evaluation.estimators import crossed_interval, majority_at_k, mean_interval, pass_at_k
from training.evaluation.metrics import MetricsLogger, SampledGroupStats, open_monitors, summarise_evaluation
from training.evaluation.scores import paired_difference
from training.objectives.base import Statistic
from training.optimisation.checkpoint import JsonlLog
from training.optimisation.model import load_model, load_tokenizer, save_model
from training.optimisation.trainer import StepResult
from training.rewards import Reward
from training.rollouts.batches import batch_metrics, policy_metrics
from training.rollouts.rollout_scheduler import RolloutGroup, RolloutRequest
from training.rollouts.rollouts import Rollout


def rollout(correct: bool, tokens: int, versions: tuple[int, ...] | None = None) -> Rollout:
    made = TokenCompletion((1, 2), (5,) * tokens, (-0.5,) * tokens, versions or (3,) * tokens, "text", "stop")
    reward = Reward(0.1, 0.9 * correct, correct=correct)
    return Rollout("p", made, reward, Outcome.CORRECT if correct else Outcome.WRONG, "number")


def group(number: int, *rollouts: Rollout) -> RolloutGroup[Rollout]:
    pairs = tuple((RolloutRequest(number, index, "p", 0), one) for index, one in enumerate(rollouts))
    return RolloutGroup(number, "p", 0, pairs, ())


GROUPS = (group(0, rollout(True, 2), rollout(False, 4, (2, 2, 3, 3))), group(1, rollout(True, 3), rollout(False, 3)))


def test_batch_numbers_by_hand() -> None:
    numbers = batch_metrics(GROUPS, version=4)
    wanted = {"reward/total": 0.55, "batch/pass_rate": 0.5, "length/trained_mean": 3}
    wanted |= {"age/token_mean": (10 * 1 + 2 * 2) / 12, "age/token_max": 2}
    assert {name: numbers[name] for name in wanted} == pytest.approx(wanted)


def test_what_was_sampled_counts_groups_that_are_dropped_too() -> None:
    count, right, wrong = SampledGroupStats(), Reward(0.1, 0.9, correct=True), Reward(0.1)
    count.add([right, right], [2, 2], ["stop", "stop"], is_dropped=True)
    count.add([wrong, right, Reward(excluded_by="timeout")], [4, 4, 4], ["stop", "length", "stop"], is_dropped=False)
    wanted = {"sampled/all": 0.5, "sampled/some": 0.5, "sampled/none": 0, "sampled/dropped": 0.5}
    wanted |= {"sampled/pass_rate": 0.75, "sampled/excluded": 1, "length/cut_share": 0.2, "length/sampled_mean": 16 / 5}
    assert {name: count.numbers()[name] for name in wanted} == pytest.approx(wanted)
    assert count.tokens == 16
    assert SampledGroupStats().numbers() == {}


def test_several_optimiser_steps_are_weighted_by_their_tokens() -> None:
    first = {"mean": Statistic("mean", 10.0, 10.0), "largest": Statistic("max", 3.0)}
    second = {"mean": Statistic("mean", 60.0, 30.0), "largest": Statistic("max", 2.0)}
    steps = [StepResult(0.5, 2.0, 1e-3, first, 1, 20, 10, 0.5), StepResult(-0.25, 1.0, 2e-3, second, 1, 40, 30, 0.5)]
    numbers = policy_metrics(steps)
    wanted = {"loss": 0.25, "mean": 1.75, "largest": 3, "gradient_norm": 2, "learning_rate": 2e-3}
    assert {name: numbers[f"policy/{name}"] for name in wanted} == pytest.approx(wanted)


class Noted(ModuleType):
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
    for step in (1, 2):
        log = JsonlLog(tmp_path / "metrics.jsonl")
        monitors = open_monitors(MonitorSettings(wandb="sums"), "my-run", tmp_path, {"seed": 3})
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


def test_pass_at_k_is_the_share_of_subsets_with_a_correct_one() -> None:
    for correct, k in itertools.product(range(7), range(1, 7)):
        subsets = list(combinations(range(6), k))
        share = sum(min(subset) < correct for subset in subsets) / len(subsets)
        assert pass_at_k(6, correct, k) == pytest.approx(share, abs=1e-12)


def by_enumeration(ballots: list[str | None], k: int) -> float:
    """Vote in every subset of k attempts; "r" is right, None does not vote."""
    won = []
    for subset in combinations(ballots, k):
        counts = Counter(ballot for ballot in subset if ballot is not None)
        top = max(counts.values(), default=0)
        leaders = [ballot for ballot, votes in counts.items() if votes == top]
        won.append(1 / len(leaders) if "r" in leaders else 0.0)
    return statistics.fmean(won)


@pytest.mark.parametrize(("right", "silent"), [("a", 0), ("b", 2), ("nobody", 2)])
def test_majority_against_enumeration(right: str, silent: int) -> None:
    votes = {"a": 3, "b": 2, "c": 2, "d": 1}
    ballots = ["r" if name == right else name for name, count in votes.items() for _ in range(count)] + [None] * silent
    rivals = [count for name, count in votes.items() if name != right]
    for k in range(1, len(ballots) + 1):
        exact = majority_at_k(len(ballots), votes.get(right, 0), rivals, k)
        assert exact == pytest.approx(by_enumeration(ballots, k), abs=1e-12)


def test_k_beyond_the_attempts_is_refused() -> None:
    for k in (0, 5):
        with pytest.raises(ValueError, match="between 1 and the number of attempts"):
            pass_at_k(4, 2, k)
        with pytest.raises(ValueError, match="between 1 and the number of attempts"):
            majority_at_k(4, 2, [1], k)


def test_a_paired_interval_is_that_of_the_differences() -> None:
    first, second = {"a": 0.0, "b": 0.5, "d": 1.0, "e": 0.25}, {"a": 0.5, "b": 0.5, "c": 1.0, "d": 1.0, "e": 0.5}
    estimate = paired_difference(first, second)
    assert estimate.count == 4
    assert estimate.mean == pytest.approx(0.1875)
    reach = 3.182 * statistics.stdev([0.5, 0, 0, 0.25]) / 2  # t of 3 degrees
    assert estimate.high - estimate.mean == pytest.approx(reach)


def test_values_that_are_all_the_same_tell_no_interval_and_no_verdict() -> None:
    """Two problems of which each got better by a half do not prove that a policy did."""
    estimate = mean_interval([0.5, 0.5], -1, 1)
    assert (estimate.mean, estimate.count) == (0.5, 2)
    assert math.isnan(estimate.low)
    assert not estimate.excludes_zero
    assert math.isnan(mean_interval([0.5]).low)
    assert mean_interval([]).count == 0
    assert not crossed_interval([[0.5, 0.5], [0.5, 0.5]]).excludes_zero
    assert crossed_interval([[0.1, 0.3]]) == mean_interval([0.1, 0.3], -1, 1)
    assert not mean_interval([0.5, 0.75], -1, 1).excludes_zero  # two that differ hardly more


def test_none_of_few_is_not_surely_none() -> None:
    """Of 30 problems none solved: the interval ends where 30 misses have a chance of 2.5 %."""
    estimate = mean_interval([0.0] * 30, 0.0, 1.0)
    assert (estimate.mean, estimate.low) == (0.0, 0.0)
    assert (1 - estimate.high) ** 30 == pytest.approx(0.025)
    assert mean_interval([1.0] * 30, 0.0, 1.0).low == pytest.approx(1 - estimate.high)


def one(outcome: Outcome | None, tokens: int = 2) -> Rollout:
    made = TokenCompletion((1,), (5,) * tokens, (-0.1,) * tokens, (0,) * tokens, "", "stop")
    return Rollout("p", made, Reward(), outcome, "")


def test_pass_rates_by_hand_and_what_was_not_judged_counts_neither_way() -> None:
    right, wrong, timeout, broken = map(one, (Outcome.CORRECT, Outcome.WRONG, Outcome.TIMEOUT, Outcome.BROKEN))
    cases: tuple[tuple[list[list[Rollout | None]], float, int, int], ...] = (
        ([[right, right], [right, wrong], [one(None), wrong]], 0.5, 3, 0),
        ([[right, timeout], [broken]], 1.0, 1, 2),
        ([[right, wrong], [right, None]], 0.5, 1, 2),
    )
    for attempts, rate, problems, unjudged in cases:
        found = summarise_evaluation(attempts)
        assert (found.pass_rate, found.problems, found.unjudged) == (rate, problems, unjudged)
    found = summarise_evaluation([[right, right], [right, wrong], [one(None), one(Outcome.WRONG, tokens=4)]])
    reach = 1.96 * 0.5 / math.sqrt(3)  # rates 1, 1/2, 0 have a deviation of 1/2
    assert (found.low, found.high) == pytest.approx((max(0.5 - reach, 0), min(0.5 + reach, 1)))
    assert found.mean_tokens == pytest.approx((2 * 5 + 4) / 6)
    assert math.isnan(summarise_evaluation([[broken]]).pass_rate)


BASE = {"name": "x", "recipe": "train.toml", "benches": ["demo"]}
TABLE = {
    **BASE,
    "set": ["steps=3"],
    "seeds": [1, 2, 3],
    "axes": [
        {"name": "a", "values": [{"name": "one"}, {"name": "two", "set": ["x=2"], "recipe": "other.toml"}]},
        {"name": "b", "values": [{"name": "low", "set": ["x=0"]}, {"name": "high", "set": ["y=1"]}]},
    ],
}


def test_arms_are_all_combinations_the_base_first() -> None:
    arms = Ablation.model_validate(to_plain(TABLE)).arms()
    assert [arm.name for arm in arms] == ["one-low", "one-high", "two-low", "two-high"]
    assert arms[2].changes(["steps=3"], 7) == ["steps=3", "x=2", "x=0", "seed=7"]
    assert [arm.recipe("train.toml") for arm in arms] == ["train.toml", "train.toml", "other.toml", "other.toml"]


def trained(*rates: float) -> TrainedArm:
    return TrainedArm({"demo": {f"p{n}": rate for n, rate in enumerate(rates)}}, 1000.0, 0.25)


def test_an_arm_may_start_from_another_of_its_axis() -> None:
    start = {"name": "start", "values": [{"name": "rl"}, {"name": "sft"}, {"name": "both", "after": "sft"}]}
    clip = {"name": "clip", "values": [{"name": "low"}, {"name": "high"}]}
    arms = Ablation.model_validate(to_plain({**BASE, "axes": [start, clip]})).arms()
    assert {arm.name: arm.after for arm in arms if arm.after} == {"both-low": "sft-low", "both-high": "sft-high"}
    later = {"name": "start", "values": [{"name": "both", "after": "sft"}, {"name": "sft"}]}
    with pytest.raises(ValidationError, match=r"after = sft is no earlier value \(none\)"):
        Ablation.model_validate(to_plain({**BASE, "axes": [later]}))
    with pytest.raises(ValidationError, match="`after` is in two axes"):
        Ablation.model_validate(to_plain({**BASE, "axes": [start, {**start, "name": "again"}]}))


def test_a_verdict_stands_only_where_the_interval_excludes_0() -> None:
    base = {seed: trained(*[0.5, 0.4, 0.6, 0.5] * 5) for seed in (1, 2, 3)}
    better = {seed: trained(*[0.7 + 0.01 * seed, 0.6, 0.8, 0.7] * 5) for seed in (1, 2, 3)}
    mixed = {seed: trained(*[0.5 + 0.1 * (seed - 2), 0.4, 0.6, 0.6] * 5) for seed in (1, 2, 3)}
    results = compare_arms({"base": base, "better": better, "mixed": mixed})
    verdicts = {"base": "", "better": "better", "mixed": "no difference shown"}
    assert {result.arm: result.verdict for result in results} == verdicts
    assert results[1].difference.mean == pytest.approx((0.22 + 0.2 * 3) / 4)
    assert results[0].pass_1.mean == pytest.approx(0.5)
    lines = "\n".join(ablation_lines(Ablation.model_validate(to_plain(TABLE)), results))
    assert "| better | 3 |" in lines
    assert "no difference shown" in lines


def test_a_planted_slope_is_found() -> None:
    noise = [0.01, -0.01, 0.005, -0.005, 0.0]
    points = [Point(0, 0, 0.3 * math.log(20 + n) + 0.1 + noise[n % 5], 20.0 + n) for n in range(30)]
    fit = fit_log_length(points)
    assert fit.low < 0.3 < fit.high
    assert fit.slope == pytest.approx(0.3, abs=0.02)
    assert fit.explained > 0.98
    assert fit_log_length([Point(0, 0, 0.5, 20.0)] * 5) is None


def test_the_directions_are_those_of_the_singular_values(tmp_path: Path) -> None:
    torch.manual_seed(4)
    rows = torch.randn(7, 50, dtype=torch.float64).cumsum(0)
    places = [tmp_path / f"v{place:08}" for place in range(len(rows))]
    for path, row in zip(places, rows, strict=True):
        path.mkdir()
        save_file({"a": row[:30].reshape(5, 6).clone(), "b": row[30:].clone()}, str(path / "model.safetensors"))
    found = principal_directions(places)
    centred = rows - rows.mean(0)
    _, values, directions = torch.linalg.svd(centred, full_matrices=False)
    made = torch.tensor(found.weights, dtype=torch.float64).T @ centred
    assert torch.allclose((made @ directions[:2].T).abs(), torch.eye(2, dtype=torch.float64), atol=1e-9)
    assert found.explained[0] == pytest.approx(float(values[0] ** 2 / (values**2).sum()))


def test_the_origin_is_the_trained_model_and_a_state_lies_where_it_is(tmp_path: Path) -> None:
    model, tokenizer, places = load_model(WEIGHTS), load_tokenizer(WEIGHTS), [WEIGHTS]
    start = load_file(WEIGHTS / "model.safetensors")
    torch.manual_seed(5)
    ways = [{name: torch.randn_like(value) * 1e-3 for name, value in start.items()} for _ in range(2)]
    for a, b in ((1.0, 0.2), (2.0, -0.1), (3.0, 0.0)):
        moved = {name: value + a * ways[0][name] + b * ways[1][name] for name, value in start.items()}
        places.append(tmp_path / f"v{len(places):08}")
        save_model(model, tokenizer, places[-1], state=moved)
    found = principal_directions(places)
    origin = write_point(found, 0.0, 0.0, tmp_path / "origin") / "model.safetensors"
    assert origin.read_bytes() == (places[-1] / "model.safetensors").read_bytes()
    there = load_file(write_point(found, *found.coordinates[1], tmp_path / "there") / "model.safetensors")
    second = load_file(places[1] / "model.safetensors")
    assert all(torch.allclose(there[name], second[name], atol=1e-5) for name in second)
