"""The curriculum in the loop: draws, moves with reasons, longer answers, and a state that goes on as if undisturbed."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from training.config import RewardSettings
from training.objectives.grpo import GrpoSettings
from training.rollouts.curriculum import triggers
from training.rollouts.curriculum.controller import CurriculumController
from training.rollouts.curriculum.pools import Pool
from training.rollouts.curriculum.settings import CurriculumSettings

PROBLEMS = [f"p{number}" for number in range(12)]
SETTINGS = CurriculumSettings()


@pytest.fixture(autouse=True)
def short_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triggers, "PLATEAU_WINDOW", 4)
    monkeypatch.setattr(triggers, "PATIENCE", 0)


def course(settings: CurriculumSettings | None = SETTINGS, problems: Sequence[str] = PROBLEMS) -> CurriculumController:
    rewards = RewardSettings(max_length=125, length_cache=25)
    return CurriculumController(problems, settings, rewards, GrpoSettings(eps_high=0.27), seed=3)


def test_without_a_curriculum_every_problem_comes_once_a_pass() -> None:
    plain = course(None)
    assert sorted(plain.draw_problem() for _ in PROBLEMS) == sorted(PROBLEMS)
    plain.record_group("p0", 1, 16, 16)
    assert plain.after_step(1, 0.5, 50.0) == ([], [])


def test_what_is_always_solved_retires_and_what_never_is_waits() -> None:
    made = course()
    made.record_group("p0", 1, 16, 16)
    made.record_group("p1", 1, 0, 64)
    moved, _ = made.after_step(1, 0.5, 50.0)
    assert {(one.problem, one.new) for one in moved} == {("p0", Pool.RETIRED), ("p1", Pool.DEFERRED)}
    assert all("pass rate" in one.reason for one in moved)
    assert made.pool_sizes() == {"active": 10, "deferred": 1, "retired": 1}
    drawn = [made.draw_problem() for _ in range(10)]
    assert not {"p0", "p1"} & set(drawn)


def test_rows_that_a_refresh_drew_come_in_and_a_resumed_run_draws_the_same_ones() -> None:
    first = course()
    for step in range(1, 4):
        for problem in [first.draw_problem() for _ in range(4)]:
            first.record_group(problem, step, 16, 16)
        first.after_step(step, 0.5, 50.0)
    refreshed = [*PROBLEMS[6:], *(f"level 3, seed {seed}" for seed in range(40, 46))]
    runs = [course(problems=refreshed) for _ in range(3)]
    for run in runs[:2]:
        run.restore(json.loads(json.dumps(first.state())))
    drawn = [[run.draw_problem() for _ in range(7)] for run in runs[:2]]
    runs[2].restore(json.loads(json.dumps(runs[1].state())))  # killed and resumed
    rest = [[run.draw_problem() for _ in range(20)] for run in (runs[0], runs[2])]
    assert drawn[0] == drawn[1]
    assert rest[0] == rest[1]
    assert set(refreshed[6:]) <= {*drawn[0], *rest[0]} <= set(refreshed)
