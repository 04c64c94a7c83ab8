"""The curriculum in the loop: moves with reasons, stages in order, problems that return, and a state that goes on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pydantic import ValidationError

from curation.records import Domain
from tests.training.optimisation.test_trainer import recipe
from training.config import CollectorSettings, RewardSettings
from training.embedded_model.problems import Split
from training.objectives.grpo import GrpoSettings
from training.recipe import CuratedData
from training.rollouts.curriculum import triggers
from training.rollouts.curriculum.controller import CurriculumController
from training.rollouts.curriculum.pools import Pool
from training.rollouts.curriculum.settings import CurriculumSettings
from training.rollouts.tasks import load_tasks

PAPER: list[dict[str, Any]] = [
    {"until": "reward", "lengths": 16384, "n_batch": 8192, "n_async": 8192},
    {"until": "length", "lengths": 24576, "n_batch": 4096, "steps": 50},
    {"lengths": 32768, "n_batch": 2048, "n_async": 4096, "hard": True},
]
REWARDS = RewardSettings(max_length=12384, length_cache=4000)


@pytest.fixture(autouse=True)
def short_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triggers, "PLATEAU_WINDOW", 4)
    monkeypatch.setattr(triggers, "PATIENCE", 0)
    monkeypatch.setattr(triggers, "LENGTH_MIN_GAIN", 0.02)


def controller(table: dict[str, Any], problems: int = 4, **more: Any) -> CurriculumController:
    settings = CurriculumSettings.model_validate(table)
    names = [f"p{number}" for number in range(problems)]
    sizes = CollectorSettings(group_size=16, n_async=2048, n_batch=2048)
    return CurriculumController(names, settings, REWARDS, GrpoSettings(), 1, sizes, **more)


def present(one: CurriculumController) -> tuple[int, int, int]:
    allowed = one.rewards.max_length - one.rewards.effective_length_cache
    return allowed, one.collector.n_batch, one.collector.n_async


def test_the_papers_table_is_walked_through_as_its_curves_flatten() -> None:
    one = controller({"stages": PAPER}, deferred=["p2", "p3"])
    assert one.pools["p3"] is Pool.DEFERRED
    assert present(one) == (16384, 8192, 8192)
    rising = [one.after_step(step, 0.1 * step, 1000)[1] for step in range(1, 6)]
    assert rising == [[]] * 5
    for step in range(6, 9):  # flat from here: a window of four values
        assert one.after_step(step, 0.6, 1000 + 500 * step)[1] == []
    changes = one.after_step(9, 0.6, 5500)[1]
    assert {change.setting: change.new for change in changes} == {
        "stage": 2,
        "length": 24576,
        "n_batch": 4096,
        "active": 3,  # a flat reward brings harder problems in, as ever
    }
    assert "reward flat" in changes[0].reason
    assert present(one) == (24576, 4096, 8192)  # what a stage does not name stays
    for step in range(10, 13):
        assert one.after_step(step, 0.6, 6000)[1] == []
    changes = one.after_step(13, 0.6, 6000)[1]
    assert [change.setting for change in changes] == ["stage", "length", "n_batch", "n_async", "active"]
    assert present(one) == (32768, 2048, 4096)
    assert set(one.pools.values()) == {Pool.ACTIVE}
    assert one.after_step(14, 0.6, 6000)[1] == []  # the last one ends with the run


def test_a_stage_with_longer_responses_waits_until_the_limit_binds() -> None:
    one = controller({"stages": [{"until": "reward", "lengths": 16384}, {"lengths": 24576}]})
    free = [change for step in range(1, 9) for change in one.after_step(step, 0.6, 2000, limited=0.0)[1]]
    assert free == []
    bound = [change for step in range(9, 14) for change in one.after_step(step, 0.6, 16000, limited=0.3)[1]]
    assert [change.setting for change in bound] == ["stage", "length"]


def test_a_stage_ends_after_its_steps_and_a_resumed_run_knows_where_it_is() -> None:
    table = {"stages": [{"steps": 3, "n_batch": 1024}, {"steps": 2, "lengths": 9000}, {"n_batch": 512}]}
    one, other = controller(table), controller(table)
    ended = []
    for step in range(1, 9):
        ended += [step for change in one.after_step(step, 0.5, 100.0)[1] if change.setting == "stage"]
        if step == 4:
            other.restore(one.state())
        if step > 4:
            other.after_step(step, 0.5, 100.0)
    assert ended == [3, 5]
    assert present(other) == present(one) == (9000, 512, 2048)
    assert other.state() == one.state()


def test_hard_problems_return_from_what_was_dropped(tmp_path: Path) -> None:
    row: dict[str, Any] = {"id": "kept", "domain": "math", "statement": "1 + 1", "answer": "2", "lang": "en"}
    row |= {"group": None, "meta": None}
    (tmp_path / "data").mkdir()
    (tmp_path / "dropped").mkdir()
    pl.DataFrame([row | {"judged": 16, "correct": 4}]).write_parquet(tmp_path / "data" / "train-0.parquet")
    reasons = ("never_solved", "too_easy", "never_solved")
    dropped = [row | {"id": f"d{number}", "reason": reason} for number, reason in enumerate(reasons)]
    dropped[2]["domain"] = Domain.CODE.value
    pl.DataFrame(dropped).write_parquet(tmp_path / "dropped" / "dropped-0.parquet")
    folders = (str(tmp_path),)
    assert set(load_tasks(CuratedData(kind="curated", folders=folders), Split.TRAIN, Path())) == {"kept"}
    tasks = load_tasks(CuratedData(kind="curated", folders=folders, hard=True), Split.TRAIN, Path())
    assert {name: (task.deferred, task.correct, task.judged) for name, task in tasks.items()} == {
        "kept": (False, 4, 16),
        "d0": (True, 0, 0),
    }


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"curriculum": {"stages": [{"lengths": 10}, {}]}}, "a stage before the last never ends"),
        ({"curriculum": {"stages": [{"n_batch": 18}]}}, "n_batch = 18 holds no whole number of groups"),
        ({"curriculum": {"stages": [{"n_batch": 16, "n_async": 64}]}}, "more than twice|twice the second"),
        (
            {"curriculum": {"stages": [{"n_batch": 16}]}, "stored": {}, "objective": {"kind": "sft"}},
            "batches with stored groups keep their size",
        ),
    ],
)
def test_stages_that_cannot_be_meant_are_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        recipe(**changes)


PROBLEMS = [f"p{number}" for number in range(12)]


DEFAULT = CurriculumSettings()


def course(problems: Sequence[str] = PROBLEMS, settings: CurriculumSettings | None = DEFAULT) -> CurriculumController:
    rewards = RewardSettings(max_length=125, length_cache=25)
    return CurriculumController(problems, settings, rewards, GrpoSettings(eps_high=0.27), seed=3)


def test_rows_that_a_refresh_drew_come_in_and_a_resumed_run_draws_the_same_ones() -> None:
    first = course()
    for step in range(1, 4):
        for problem in [first.draw_problem() for _ in range(4)]:
            first.record_group(problem, step, 16, 16)
        first.after_step(step, 0.5, 50.0)
    refreshed = [*PROBLEMS[6:], *(f"level 3, seed {seed}" for seed in range(40, 46))]
    runs = [course(refreshed) for _ in range(3)]
    for run in runs[:2]:
        run.restore(json.loads(json.dumps(first.state())))
    drawn = [[run.draw_problem() for _ in range(7)] for run in runs[:2]]
    runs[2].restore(json.loads(json.dumps(runs[1].state())))  # killed and resumed
    rest = [[run.draw_problem() for _ in range(20)] for run in (runs[0], runs[2])]
    assert drawn[0] == drawn[1]
    assert rest[0] == rest[1]
    assert set(refreshed[6:]) <= {*drawn[0], *rest[0]} <= set(refreshed)
