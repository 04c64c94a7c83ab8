"""The curriculum: pools by pass rate, draws, plateaus, stages in order, and a state that goes on."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pydantic import ValidationError

from curation.records import Domain, PromptRequest
from tests.training.optimisation.test_trainer import recipe
from training.embedded_model.problems import Split
from training.recipe import CuratedData
from training.rollouts import curriculum
from training.rollouts.curriculum import (
    Change,
    CurriculumController,
    PassWeights,
    Pool,
    StepMeans,
    length_plateau,
    pool_gate,
    reward_plateau,
)
from training.rollouts.tasks import TrainingTask, load_tasks

PAPER: list[dict[str, Any]] = [
    {"until": "reward", "lengths": 16384, "n_batch": 8192, "n_async": 8192},
    {"until": "length", "lengths": 24576, "n_batch": 4096, "steps": 50},
    {"lengths": 32768, "n_batch": 2048, "n_async": 4096, "hard": True},
]


@pytest.fixture
def short_window(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curriculum, "PLATEAU_WINDOW", 4)
    monkeypatch.setattr(curriculum, "PATIENCE", 0)
    monkeypatch.setattr(curriculum, "LENGTH_MIN_GAIN", 0.02)


def controller(
    table: dict[str, Any],
    problems: int | list[str] = 4,
    deferred: Collection[str] = (),
    levels: Mapping[str, str] | None = None,
) -> CurriculumController:
    names = problems if isinstance(problems, list) else [f"p{number}" for number in range(problems)]
    made = recipe(
        seed=1,
        curriculum=table,
        rewards={"max_length": 12384, "length_cache": 4000},
        collector={"group_size": 16, "n_async": 2048, "n_batch": 2048},
    )
    tasks = {}
    for name in names:
        request = PromptRequest(name, "1 + 1", Domain.MATH, "en")
        tasks[name] = TrainingTask(request, "2", deferred=name in deferred, level=(levels or {}).get(name))
    return CurriculumController(made, tasks)


def after(
    one: CurriculumController, step: int, reward: float, length: float, **more: float
) -> tuple[list[Change], list[Change]]:
    return one.after_step(step, StepMeans(reward, length, **more))


@pytest.mark.parametrize(
    ("pool", "correct", "judged", "new"),
    [
        (Pool.ACTIVE, 16, 16, Pool.RETIRED),
        (Pool.ACTIVE, 14, 16, None),  # on the edge: it stays
        (Pool.ACTIVE, 0, 32, Pool.DEFERRED),
        (Pool.ACTIVE, 0, 2, None),  # too few attempts to say anything
        (Pool.DEFERRED, 5, 16, Pool.ACTIVE),
        (Pool.RETIRED, 8, 16, Pool.ACTIVE),
        (Pool.DEFERRED, 0, 16, None),
    ],
)
def test_a_problem_changes_its_pool_when_its_pass_rate_is_sure(
    pool: Pool, correct: int, judged: int, new: Pool | None
) -> None:
    found = pool_gate("p", pool, PassWeights(correct, judged - correct))
    assert (found.new if found else None) is new


def test_an_attempt_of_one_half_life_ago_counts_half() -> None:
    one = controller({}, 1)
    one.record_group("p0", 0, 4, 8)
    one.record_group("p0", 50, 8, 8)
    assert one.state()["weights"] == {"p0": [10.0, 2.0, 50]}


def test_a_problem_without_rollouts_follows_its_level_and_its_own_rollouts_decide() -> None:
    names = [f"{level}{number}" for level in ("easy", "hard") for number in range(5)]
    one = controller({}, names, levels={name: name[:4] for name in names})
    for number in range(2):
        one.record_group(f"easy{number}", 1, 16, 16)
        one.record_group(f"hard{number}", 1, 0, 40)
    one.record_group("hard2", 1, 10, 16)  # the level is at 1 in 10
    moves, _ = after(one, 1, 0.5, 100.0)
    assert {move.subject for move in moves} == {*names[:5], "hard0", "hard1"}
    assert "easy: pass rate 0.97 on 32.0 attempts, " in {move.subject: move.reason for move in moves}["easy4"]
    assert [one.pools[name].value for name in names] == ["retired"] * 5 + ["deferred"] * 2 + ["active"] * 3
    again = controller({}, names, levels={name: name[:4] for name in names})
    again.restore(json.loads(json.dumps(one.state())))
    for name in ("easy2", "easy3"):  # the level became harder: what has no rollouts comes back
        again.record_group(name, 2, 2, 16)
    after(again, 2, 0.5, 100.0)
    assert again.pools["easy4"] is Pool.ACTIVE
    assert again.pools["easy0"] is Pool.RETIRED


def curve(values: list[float], noise: float, pass_rate: float = 0.5, limited: float = 0.2) -> list[StepMeans]:
    draw = random.Random(3)
    noisy = [value + draw.gauss(0, noise) for value in values]
    return [StepMeans(value, 10_000 * value, pass_rate, limited) for value in noisy]


PLATEAU = [0.6] * 40


@pytest.mark.parametrize(
    ("plateau", "steps", "flat"),
    [
        (reward_plateau, curve(PLATEAU, 0.01), True),
        (reward_plateau, curve([0.3 + 0.0009 * step for step in range(40)], 0.0005), False),  # a slow climb
        (reward_plateau, curve([0.6 - 0.01 * step for step in range(40)], 0.01), False),
        (reward_plateau, curve(PLATEAU, 0.01, pass_rate=0.02), False),
        (reward_plateau, curve(PLATEAU[:3], 0.01), False),
        (length_plateau, curve([0.9] * 30, 0.005), True),
        (length_plateau, curve([0.9] * 30, 0.005, limited=0.01), False),  # the limit does not bind
        (length_plateau, curve([0.5 + 0.02 * step for step in range(30)], 0.005), False),
        (length_plateau, curve([0.9] * 3, 0), False),
    ],
)
def test_when_a_curve_is_flat(plateau: Callable[..., str | None], steps: list[StepMeans], flat: bool) -> None:
    assert (plateau(steps) is not None) is flat


def test_deferred_problems_come_in_on_a_plateau_and_then_wait() -> None:
    one = controller({}, 10, deferred=["p7", "p8", "p9"])
    changes = [(step, change) for step in range(1, 101) for change in after(one, step, 0.6, 100.0, pass_rate=0.5)[1]]
    came = [(step, change.subject, change.old, change.new) for step, change in changes]
    assert came == [(20, "active", 7, 9), (60, "active", 9, 10)]


def test_no_pool_is_a_dead_end() -> None:
    names = [f"{kind}{number}" for kind, count in (("a", 10), ("r", 3), ("d", 4)) for number in range(count)]
    one = controller({}, names, deferred=[name for name in names if name[0] == "d"])
    one.pools.update({name: Pool.RETIRED for name in names if name[0] == "r"})
    drawn = [one.draw_problem() for _ in range(1000)]
    # at the thousandth both are due: one waits for the next draw
    assert Counter(name[0] for name in drawn) == {"a": 931, "d": 49, "r": 20}
    assert set(drawn) == set(names)
    assert len(set([name for name in drawn if name[0] == "a"][:10])) == 10


def present(one: CurriculumController) -> tuple[int, int, int]:
    allowed = one.rewards.max_length - one.rewards.effective_length_cache
    return allowed, one.collector.n_batch, one.collector.n_async


@pytest.mark.usefixtures("short_window")
def test_the_papers_table_is_walked_through_as_its_curves_flatten() -> None:
    one = controller({"stages": PAPER}, deferred=["p2", "p3"])
    assert one.pools["p3"] is Pool.DEFERRED
    assert present(one) == (16384, 8192, 8192)
    rising = [after(one, step, 0.1 * step, 1000)[1] for step in range(1, 6)]
    assert rising == [[]] * 5
    for step in range(6, 9):  # flat from here: a window of four values
        assert after(one, step, 0.6, 1000 + 500 * step)[1] == []
    changes = after(one, 9, 0.6, 5500)[1]
    # a flat reward brings harder problems in, as ever
    wanted = {"stage": 2, "length": 24576, "n_batch": 4096, "active": 3}
    assert {change.subject: change.new for change in changes} == wanted
    assert "reward flat" in changes[0].reason
    assert present(one) == (24576, 4096, 8192)  # what a stage does not name stays
    for step in range(10, 13):
        assert after(one, step, 0.6, 6000)[1] == []
    changes = after(one, 13, 0.6, 6000)[1]
    assert [change.subject for change in changes] == ["stage", "length", "n_batch", "n_async", "active"]
    assert present(one) == (32768, 2048, 4096)
    assert set(one.pools.values()) == {Pool.ACTIVE}
    assert after(one, 14, 0.6, 6000)[1] == []  # the last one ends with the run


@pytest.mark.usefixtures("short_window")
def test_a_stage_with_longer_responses_waits_until_the_limit_binds() -> None:
    one = controller({"stages": [{"until": "reward", "lengths": 16384}, {"lengths": 24576}]})
    free = [change for step in range(1, 9) for change in after(one, step, 0.6, 2000, limited=0.0)[1]]
    assert free == []
    bound = [change for step in range(9, 14) for change in after(one, step, 0.6, 16000, limited=0.3)[1]]
    assert [change.subject for change in bound] == ["stage", "length"]


def test_a_stage_ends_after_its_steps_and_a_resumed_run_knows_where_it_is() -> None:
    table = {"stages": [{"steps": 3, "n_batch": 1024}, {"steps": 2, "lengths": 9000}, {"n_batch": 512}]}
    one, other = controller(table), controller(table)
    ended = []
    for step in range(1, 9):
        ended += [step for change in after(one, step, 0.5, 100.0)[1] if change.subject == "stage"]
        if step == 4:
            other.restore(one.state())
        if step > 4:
            after(other, step, 0.5, 100.0)
    assert ended == [3, 5]
    assert present(other) == present(one) == (9000, 512, 2048)
    assert other.state() == one.state()


def test_hard_problems_return_from_what_was_dropped(tmp_path: Path) -> None:
    row = {"id": "kept", "domain": "math", "statement": "1 + 1", "answer": "2", "lang": "en"}
    row |= {"group": None, "meta": None}
    (tmp_path / "data").mkdir()
    (tmp_path / "dropped").mkdir()
    pl.DataFrame([row | {"judged": 16, "correct": 4}]).write_parquet(tmp_path / "data" / "train-0.parquet")
    reasons = ("never_solved", "too_easy", "never_solved")
    dropped = [row | {"id": f"d{number}", "reason": reason} for number, reason in enumerate(reasons)]
    dropped[2]["domain"] = Domain.CODE.value
    pl.DataFrame(dropped).write_parquet(tmp_path / "dropped" / "dropped-0.parquet")
    data = CuratedData(kind="curated", folders=(str(tmp_path),))
    assert set(load_tasks(data, Split.TRAIN, Path())) == {"kept"}
    tasks = load_tasks(data.model_copy(update={"hard": True}), Split.TRAIN, Path())
    found = {name: (task.deferred, task.correct, task.judged) for name, task in tasks.items()}
    assert found == {"kept": (False, 4, 16), "d0": (True, 0, 0)}


@pytest.mark.parametrize(
    ("stages", "changes", "said"),
    [
        ([{"lengths": 10}, {}], {}, "a stage before the last never ends"),
        ([{"n_batch": 18}], {}, "n_batch = 18 is no multiple of group_size"),
        ([{"n_batch": 16}], {"stored": {}, "objective": {"kind": "sft"}}, "batches with stored groups keep their size"),
    ],
)
def test_stages_that_cannot_be_meant_are_refused(stages: list[Any], changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        recipe(curriculum={"stages": stages}, **changes)


def test_rows_that_a_refresh_drew_come_in_and_a_resumed_run_draws_the_same_ones() -> None:
    first = controller({}, 12)
    for step in range(1, 4):
        for problem in [first.draw_problem() for _ in range(4)]:
            first.record_group(problem, step, 16, 16)
        after(first, step, 0.5, 50.0)
    refreshed = [*(f"p{number}" for number in range(6, 12)), *(f"level 3, seed {seed}" for seed in range(40, 46))]
    runs = [controller({}, refreshed) for _ in range(3)]
    for run in runs[:2]:
        run.restore(json.loads(json.dumps(first.state())))
    drawn = [[run.draw_problem() for _ in range(7)] for run in runs[:2]]
    runs[2].restore(json.loads(json.dumps(runs[1].state())))  # killed and resumed
    rest = [[run.draw_problem() for _ in range(20)] for run in (runs[0], runs[2])]
    assert drawn[0] == drawn[1]
    assert rest[0] == rest[1]
    assert set(refreshed[6:]) <= {*drawn[0], *rest[0]} <= set(refreshed)
