"""Reward components of the user's own: added to the reward, pinned by the digest of their file, errors with the row."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from curation.config.loading import parse_settings
from curation.records import ConfigError, Domain, Outcome
from training.config import RewardSettings
from training.own_rewards import RewardError
from training.rewards import RewardInputs, compute_reward

BRIEF = """
class Brief:
    def reward(self, problem, response, correct):
        if "zero" in problem:
            return 1 / 0
        if "nan" in problem:
            return float("nan")
        return 0.25 if correct and len(response) < 100 else 0.0

BRIEF = Brief()
"""
SOLVED = RewardInputs(Domain.MATH, "2 + 2?", "<think>x</think> \\boxed{4}", 9, Outcome.CORRECT, row="m7")


def settings(folder: Path, name: str = "brief.py:BRIEF") -> RewardSettings:
    (folder / "brief.py").write_text(BRIEF)
    return parse_settings(RewardSettings, {"language": 0.0, "components": [name]}, "rewards", folder=folder)


def test_a_component_is_added_to_the_reward_of_rollouts_that_keep_the_format(tmp_path: Path) -> None:
    own = settings(tmp_path)
    found = compute_reward(SOLVED, own)
    assert found.own == 0.25
    assert found.total == pytest.approx(1.25)
    assert found.components()["own"] == 0.25
    assert compute_reward(replace(SOLVED, outcome=Outcome.WRONG), own).total == pytest.approx(0.1)
    assert compute_reward(replace(SOLVED, text="4"), own).total == 0
    assert compute_reward(replace(SOLVED, outcome=Outcome.TIMEOUT), own).excluded


@pytest.mark.parametrize(
    ("problem", "message"),
    [("zero", r"brief\.py:5: ZeroDivisionError: .* \(problem m7\)"), ("nan", r"brief\.py:BRIEF@.* returned nan .*m7")],
)
def test_a_failure_names_file_line_and_problem(tmp_path: Path, problem: str, message: str) -> None:
    with pytest.raises(RewardError, match=message):
        compute_reward(replace(SOLVED, problem=problem), settings(tmp_path))


def test_a_run_keeps_the_digest_and_refuses_a_changed_file(tmp_path: Path) -> None:
    kept = json.loads(settings(tmp_path).model_dump_json())
    assert parse_settings(RewardSettings, kept, "rewards", folder=tmp_path).model_dump(mode="json") == kept
    other = {**kept, "components": ["brief.py:BRIEF@" + "0" * 32]}
    with pytest.raises(ConfigError, match=r"the file of brief\.py:BRIEF has changed since the run began"):
        parse_settings(RewardSettings, other, "rewards", folder=tmp_path)
    with pytest.raises(ConfigError, match="is a class; it must be an object with the method `reward`"):
        settings(tmp_path, "brief.py:Brief")
