"""Groups of verl's rollouts: decided once, logged as the embedded engine does, shown to the curriculum, resumed."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

from curation.records import Domain, PromptRequest
from tests.training.students import student
from training.engines.verl.groups import GroupLedger, JudgedRollout, reward_fields
from training.engines.verl.stages import STATE
from training.recipe import TrainRecipe
from training.rewards import Reward
from training.rollouts.curriculum import CurriculumController
from training.rollouts.tasks import TrainingTask

RIGHT, WRONG = Reward(0.1, 0.9, correct=True), Reward(0.1)
FAILED = Reward(excluded_by="timeout")
TASKS = {name: TrainingTask(PromptRequest(name, f"What is {name}?", Domain.MATH, "en"), "1") for name in "abcdefgh"}


def recipe(**changes: Any) -> TrainRecipe:
    table = {"name": "t", "steps": 7, **student(kind="vllm"), "engine": "verl", "data": {"kind": "embedded"}, **changes}
    return TrainRecipe.model_validate(table)


def rollout(reward: Reward, answer: str = "1") -> JudgedRollout:
    told = reward_fields(reward, {"outcome": None, "method": "m", "answer": answer, "finish": "stop", "tokens": 5})
    return JudgedRollout.of(json.loads(json.dumps(told)), oldest=2, newest=3)  # it travels between processes


def test_a_group_is_decided_and_logged_once(tmp_path: Path) -> None:
    with closing(GroupLedger(recipe(), TASKS, tmp_path)) as ledger:
        _decide_twice(ledger)
    rows = [json.loads(line) for line in (tmp_path / "attempts.jsonl").read_text().splitlines()]
    assert [(row["group"], row["index"], row["problem"]) for row in rows[:4]] == [
        (0, 0, "a"),
        (0, 1, "a"),
        (0, 2, "a"),
        (1, 0, "b"),
    ]
    assert (rows[0]["step"], rows[0]["oldest"], rows[0]["newest"], rows[2]["excluded"]) == (3, 2, 3, "timeout")
    assert rows[0]["reward"]["total"] == 1.0


def _decide_twice(ledger: GroupLedger) -> None:
    mixed = [rollout(reward) for reward in (RIGHT, WRONG, FAILED)]
    assert ledger.decide("x", "a", mixed, 4).drop_reason is None
    assert ledger.decide("x", "a", mixed, 4).exclusion_reasons == (None, None, "timeout")
    assert ledger.decide("y", "b", [rollout(RIGHT)] * 3, 4).drop_reason == "all_correct"
    metrics = ledger.after_step(4)
    assert (metrics["sampled/attempts"], metrics["sampled/excluded"], metrics["dropped/all_correct"]) == (6.0, 1.0, 3.0)
    assert metrics["sampled/pass_rate"] == 4 / 5
    assert (metrics["sampled/some"], metrics["sampled/all"], metrics["length/sampled_mean"]) == (0.5, 0.5, 5.0)
    assert ledger.after_step(4) == {}


def test_problems_come_in_the_curriculums_order_and_easy_ones_retire(tmp_path: Path) -> None:
    made = recipe(curriculum={})
    with closing(GroupLedger(made, TASKS, tmp_path)) as ledger:
        alone = CurriculumController(made, TASKS)
        names = list(TASKS)
        assert [names[ledger.draw()] for _ in range(8)] == [alone.draw_problem() for _ in range(8)]
        for number in range(8):
            ledger.decide(str(number), "a", [rollout(RIGHT)] * 16, 1)
        ledger.after_step(1)
        assert ledger.curriculum.pool_sizes()["retired"] == 1
    assert "retired" in (tmp_path / "changes.jsonl").read_text()


def test_a_group_that_waits_in_verls_queue_over_a_kill_is_decided_once(tmp_path: Path) -> None:
    mixed = [rollout(RIGHT), rollout(WRONG)]
    with closing(GroupLedger(recipe(), TASKS, tmp_path)) as first:
        for name in ("trained", "waits", "dropped"):
            first.decide(name, "a", [rollout(RIGHT)] * 2 if name == "dropped" else mixed, 1)
        first.keep({"waits", "dropped"})
        first.save(1, tmp_path)
        state = json.loads((tmp_path / STATE).read_text())
    with closing(GroupLedger(recipe(), TASKS, tmp_path)) as again:
        again.restore(state)
        assert again.decide("waits", "a", mixed, 2).drop_reason is None
        assert again.decide("dropped", "a", mixed, 2).drop_reason == "all_correct"
        assert set(again.state()["decided"]) == {"waits", "dropped"}
        assert again.state()["groups"] == 3
        again.keep({"new"})
        assert again.state()["decided"] == {}
    assert len((tmp_path / "attempts.jsonl").read_text().splitlines()) == 6
