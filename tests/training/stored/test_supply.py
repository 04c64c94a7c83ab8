"""Which stored attempts a step trains on: caps and shares exact on a small store, draws by seed and step alone."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from curation.policies.completions import TokenCompletion
from curation.records import AttemptKey, Completion, Domain, Outcome, PromptRequest
from curation.storage.attempts import AttemptStore
from tests.training.optimisation.test_trainer import recipe
from training.config import ObjectiveSettings, StoredSettings
from training.objectives.sft import SftSettings
from training.objectives.soft import SoftSettings
from training.recipe import CuratedData, EmbeddedData
from training.rewards import Reward
from training.rollouts.rollouts import Rollout
from training.rollouts.tasks import TrainingTask
from training.stored.batches import StoredBatches
from training.stored.supply import StoredSupply, stored_sources

SOLVED = {"always": 8, "half": 4, "seldom": 1, "never": 0}
"""Correct attempts of 8, by problem."""


NO_SETS = EmbeddedData(kind="embedded")


class Judge:
    """Judges a text that says itself whether it is right."""

    def prompt_ids(self, task: TrainingTask) -> tuple[int, ...]:
        return (len(task.id),)

    async def verify(self, task: TrainingTask, completion: TokenCompletion, _: int) -> Rollout:
        right = completion.text.startswith("right")
        reward = Reward(correctness=float(right), correct=right)
        return Rollout(task.id, completion, reward, Outcome.CORRECT if right else Outcome.WRONG, "said")


class Writer:
    """One token a letter."""

    def completion(self, prompt_ids: tuple[int, ...], row: Any) -> TokenCompletion | str:
        if row["text"] == "strange":
            return "other_text"
        ids, finish = tuple(map(ord, row["text"])), row["finish"] or "stop"
        return TokenCompletion(prompt_ids, ids, (), (), row["text"], finish)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A curation run with 8 attempts a problem, some with the same text, one that no tokens give, and a rewriting."""
    store = AttemptStore(tmp_path / "attempts", AttemptKey("model@1", "solve@1", "a"))
    for problem, correct in (*SOLVED.items(), ("elsewhere", 8)):
        for index in range(8):
            text = f"right {index}" if index < correct else f"wrong {index % 2}"
            store.add([(problem, index, Completion(text, "stop", 7))])
    store.add([("half", 8, Completion("strange", "stop", 1)), ("half", 9, Completion("right 0", "stop", 7))])
    store.add([("half", 10, Completion(None, None, None, answer="3"))])
    store.compact()
    store.close()
    other = AttemptStore(tmp_path / "attempts", AttemptKey("model@1", "rewrite-choices@1", "a"))
    other.add([("half", 0, Completion("right, but a rewriting", "stop", 7))])
    other.close()
    return tmp_path


def supply(
    run: Path, settings: StoredSettings, objective: ObjectiveSettings | None = None, size: int = 4, seed: int = 1
) -> StoredSupply:
    tasks = {name: TrainingTask(PromptRequest(name, name, Domain.MATH, "en"), "1") for name in SOLVED}
    judge: Any = Judge()
    writer: Any = Writer()
    made = StoredSupply(
        stored_sources((str(run),), NO_SETS, Path()),
        tasks,
        judge,
        writer,
        settings,
        objective or SftSettings(),
        size,
        seed,
    )
    asyncio.run(made.load())
    return made


def drawn(made: StoredSupply, start: int, count: int) -> list[tuple[str, tuple[str, ...]]]:
    return [
        (group.problem, tuple(rollout.completion.text for _, rollout in group.rollouts))
        for group in made.groups(start, count, 0)
    ]


def test_every_attempt_is_trained_on_or_counted_under_its_reason(run: Path) -> None:
    made = supply(run, StoredSettings())
    assert made.counts.found == 42  # those without a text are no texts
    assert made.counts.used == 13
    assert made.counts.left_out == {"no_problem": 8, "not_correct": 19, "other_text": 1, "same_text": 1}
    assert made.counts.found == made.counts.used + sum(made.counts.left_out.values())
    assert {one.problem: one.pass_rate for one in made.problems} == {"always": 1, "half": 5 / 9, "seldom": 1 / 8}
    capped = supply(run, StoredSettings(per_problem=2))
    sizes = {one.problem: sum(map(len, one.chunks)) for one in capped.problems}
    assert sizes == {"always": 2, "half": 2, "seldom": 1}
    assert capped.counts.left_out["per_problem"] == 6 + 2


def test_an_epoch_has_every_chunk_once_in_an_order_of_its_own(run: Path) -> None:
    made = supply(run, StoredSettings())
    assert made.epoch_groups == 2 + 1 + 1
    first, second = drawn(made, 0, 4), drawn(made, 4, 4)
    assert Counter(first) == Counter(second)
    assert sum(len(texts) for _, texts in first) == 13
    orders = {tuple(drawn(made, 4 * epoch, 4)) for epoch in range(8)}
    assert len(orders) > 2


def test_hard_problems_come_in_proportion_to_what_they_lack(run: Path) -> None:
    made = supply(run, StoredSettings(hardness=2.0), size=8)
    seen = Counter(problem for problem, _ in drawn(made, 0, 1500))
    weights = {"half": (4 / 9) ** 2, "seldom": (7 / 8) ** 2}
    assert set(seen) == set(weights)  # what is always solved teaches nothing
    expected = weights["seldom"] / sum(weights.values())
    assert seen["seldom"] / 1500 == pytest.approx(expected, abs=4 * (expected * (1 - expected) / 1500) ** 0.5)


def test_soft_takes_wrong_attempts_too_and_leaves_single_ones_out(run: Path) -> None:
    made = supply(run, StoredSettings(), SoftSettings())
    texts = {
        problem: sum((texts for name, texts in drawn(made, 0, made.epoch_groups) if name == problem), ())
        for problem in SOLVED
    }
    assert sorted(texts["never"]) == ["wrong 0", "wrong 1"]
    assert len(texts["half"]) == 6
    assert made.counts.left_out["same_text"] == (1 + 2) + 5 + 6  # of half, seldom, never
    assert made.counts.found == made.counts.used + sum(made.counts.left_out.values())


def test_runs_are_those_that_the_sets_were_made_by(run: Path) -> None:
    data = CuratedData(kind="curated", folders=(str(run / "curated"),))
    for runs, folder in (((), Path()), ((run.name,), run.parent)):
        assert {source.run for source in stored_sources(runs, data, folder)} == {run}


def plan_of(steps: int, **settings: Any) -> StoredBatches:
    """Plan batches of 16 groups on 40 stored ones."""
    found: Any = SimpleNamespace(epoch_groups=40)
    sizes = {"group_size": 4, "n_batch": 64}
    return StoredBatches(recipe(steps=steps, stored=settings, objective={"kind": "sft"}, collector=sizes), found)


@pytest.mark.parametrize(
    ("settings", "counts"),
    [
        ({"epochs": 1.0}, [16, 16, 16, 4, 4, 4]),
        ({"epochs": 1.0, "half_life": 1.0}, [16, 16, 16, 4, 2, 1]),
        ({"epochs": 0.0, "share": 0.99}, [15, 15, 15, 15, 15, 15]),
        ({"epochs": 0.5, "share": 0.0}, [16, 16, 0, 0, 0, 0]),
    ],
)
def test_the_plan_says_how_many_groups_of_a_step_are_stored(settings: dict[str, Any], counts: list[int]) -> None:
    plan = plan_of(6, **settings)
    assert [plan.count(step) for step in range(1, 7)] == counts
    assert [plan.before(step) for step in range(1, 8)] == [sum(counts[:step]) for step in range(7)]
    assert plan.steps == 6
    only = plan_of(100, only=True, epochs=2.0)
    assert only.steps == only.offline_steps == 5
