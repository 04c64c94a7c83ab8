"""Drive the curriculum in the training loop.

Invariant: a restored `state` continues the same run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from training.config import CollectorSettings, ObjectiveSettings, RewardSettings
from training.rollouts.curriculum import triggers
from training.rollouts.curriculum.drawing import DrawCounts, draw_from_pools
from training.rollouts.curriculum.pools import (
    BAND,
    PassCounts,
    Pool,
    PoolChange,
    estimate_pass_rate,
    pool_change,
)
from training.rollouts.curriculum.settings import CurriculumSettings
from training.rollouts.curriculum.triggers import SettingChange, TrainingCurves, stage_end

if TYPE_CHECKING:
    from training.recipe import TrainRecipe
    from training.rollouts.tasks import TrainingTask


class CurriculumController:
    """Pools, draws and triggers of a run.

    Args:
        settings: None: pools never change.
        deferred: problems that are too hard at first; others are active.
    """

    def __init__(
        self,
        problems: Iterable[str],
        settings: CurriculumSettings | None,
        rewards: RewardSettings,
        objective: ObjectiveSettings,
        seed: int,
        collector: CollectorSettings | None = None,
        deferred: Iterable[str] = (),
    ) -> None:
        self.pools = dict.fromkeys(problems, Pool.ACTIVE)
        self.rewards, self.objective = rewards, objective
        self._settings, self._seed = settings, seed
        self._draw_counts = DrawCounts()
        self._pass_counts: dict[str, list[PassCounts]] = {}
        self._judged_problems: set[str] = set()
        self._curves = TrainingCurves()
        self._last_changes: dict[str, int] = {}
        self._members: Mapping[Pool, list[str]] | None = None
        self.collector = collector if collector is not None else CollectorSettings()
        self._stage = self._stage_began = 0
        self.pools.update(dict.fromkeys(deferred, Pool.DEFERRED))
        if settings is not None and settings.stages:
            self.begin_stage(0)

    @property
    def stage(self) -> tuple[int, int]:
        """Return the current stage, from 0, and the last step before it."""
        return self._stage, self._stage_began

    def draw_problem(self) -> str:
        """Draw the next problem and return its id."""
        if self._members is None:
            members: dict[Pool, list[str]] = {pool: [] for pool in Pool}
            for problem, pool in sorted(self.pools.items()):
                members[pool].append(problem)
            self._members = members
        return draw_from_pools(self._members, self._draw_counts, self._seed)

    def record_group(self, problem: str, step: int, correct: int, judged: int) -> None:
        """Record a group's judged and correct rollouts."""
        if self._settings is None or not judged:
            return
        self._pass_counts.setdefault(problem, []).append(PassCounts(step, correct, judged))
        self._judged_problems.add(problem)

    def after_step(
        self,
        step: int,
        reward: float,
        length: float,
        *,
        pass_rate: float = 1.0,
        limited: float = 1.0,
        may_end_stage: bool = True,
    ) -> tuple[list[PoolChange], list[SettingChange]]:
        """Apply and return the changes of pools and settings after a step, from 1.

        Args:
            reward: mean total reward of what was sampled since the last step.
            length: its mean length in tokens.
            pass_rate: its share of correct rollouts.
            limited: its share of rollouts that reached the length penalty or were cut.
            may_end_stage: False if sizes change at checkpoints only.
        """
        settings = self._settings
        if settings is None:
            return [], []
        self._curves.add(reward, length, pass_rate, limited)
        moves = [
            move for problem in sorted(self._judged_problems) if (move := self._update_pool(problem, step)) is not None
        ]
        self._judged_problems.clear()
        changes = [
            *(self._next_stage(step, settings) if may_end_stage else ()),
            self._activate_deferred(step),
        ]
        if moves or any(change is not None and change.setting == "active" for change in changes):
            self._members = None
        return moves, [change for change in changes if change is not None]

    def pool_sizes(self) -> dict[str, int]:
        """Return the number of problems in each pool."""
        pools = list(self.pools.values())
        return {pool.value: pools.count(pool) for pool in Pool}

    def state(self) -> dict[str, Any]:
        """Return the state as JSON."""
        return {
            "pools": {problem: pool.value for problem, pool in self.pools.items() if pool is not Pool.ACTIVE},
            "drawn": asdict(self._draw_counts),
            "seen": {
                problem: [[count.step, count.correct, count.judged] for count in counts]
                for problem, counts in self._pass_counts.items()
            },
            "touched": sorted(self._judged_problems),
            "curves": asdict(self._curves),
            "last": self._last_changes,
            "max_length": self.rewards.max_length,
            "length_cache": self.rewards.length_cache,
            "stage": [self._stage, self._stage_began],
            "sizes": [self.collector.n_batch, self.collector.n_async],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a `state`, without problems that left the data."""
        problems = self.pools
        self.pools = {problem: Pool(state["pools"].get(problem, Pool.ACTIVE)) for problem in problems}
        self._draw_counts = DrawCounts(**state["drawn"])
        self._pass_counts = {problem: [PassCounts(*row) for row in rows] for problem, rows in state["seen"].items()}
        self._judged_problems = set(state["touched"]) & set(problems)
        self._curves = TrainingCurves(**state["curves"])
        self._last_changes = dict(state["last"])
        self._members = None
        self._stage, self._stage_began = state["stage"]
        self._resize(*state["sizes"])
        lengths = {"max_length": state["max_length"], "length_cache": state["length_cache"]}
        self.rewards = self.rewards.model_copy(update=lengths)

    def _next_stage(self, step: int, settings: CurriculumSettings) -> list[SettingChange]:
        """Begin the next stage if this one ends; return the changes."""
        if self._stage + 1 >= len(settings.stages):
            return []
        taken = step - self._stage_began
        present, following = settings.stages[self._stage : self._stage + 2]
        allowed = self.rewards.max_length - self.rewards.effective_length_cache
        grows = following.lengths is not None and following.lengths > allowed
        reason = stage_end(present, taken, self._curves.last(taken), BAND[0], grows=grows)
        if reason is None:
            return []
        self._stage_began = step
        return self.begin_stage(self._stage + 1, reason)

    def begin_stage(self, number: int, reason: str = "") -> list[SettingChange]:
        """Apply a stage's settings; return the changes."""
        assert self._settings is not None
        stage, self._stage = self._settings.stages[number], number
        changes = [SettingChange("stage", number, number + 1, reason)]
        cache = self.rewards.effective_length_cache
        if stage.lengths is not None:
            changes.append(SettingChange("length", self.rewards.max_length - cache, stage.lengths, reason))
            lengths = {"max_length": stage.lengths + cache, "length_cache": cache}
            self.rewards = self.rewards.model_copy(update=lengths)
        for name, size in (("n_batch", stage.n_batch), ("n_async", stage.n_async)):
            if size is not None:
                changes.append(SettingChange(name, getattr(self.collector, name), size, reason))
        self._resize(stage.n_batch or self.collector.n_batch, stage.n_async or self.collector.n_async)
        sizes = self.pool_sizes()
        active, deferred = sizes[Pool.ACTIVE], sizes[Pool.DEFERRED]
        if stage.hard and deferred:
            changes.append(SettingChange("active", active, active + deferred, reason))
            promoted = [problem for problem, pool in self.pools.items() if pool is Pool.DEFERRED]
            self.pools.update(dict.fromkeys(promoted, Pool.ACTIVE))
        return changes

    def _resize(self, n_batch: int, n_async: int) -> None:
        """Change the sizes; a changed batch has one minibatch."""
        changes: dict[str, Any] = {"n_batch": n_batch, "n_async": n_async}
        if n_batch != self.collector.n_batch:
            changes["n_minibatch"] = None
        self.collector = self.collector.model_copy(update=changes)

    def _update_pool(self, problem: str, step: int) -> PoolChange | None:
        assert self._settings is not None
        pool = self.pools[problem]
        estimate = estimate_pass_rate(self._pass_counts[problem], step)
        change = pool_change(problem, pool, estimate)
        if change is not None:
            self.pools[problem] = change.new
        return change

    def _activate_deferred(self, step: int) -> SettingChange | None:
        sizes = self.pool_sizes()
        active, deferred = sizes[Pool.ACTIVE], sizes[Pool.DEFERRED]
        change = triggers.activate_deferred(
            self._curves, BAND[0], step, self._last_changes.get("active"), active, deferred
        )
        if change is None:
            return None
        rates = {
            problem: estimate_pass_rate(self._pass_counts.get(problem, ()), step).pass_rate
            for problem, pool in self.pools.items()
            if pool is Pool.DEFERRED
        }
        promoted = sorted(rates, key=lambda problem: (-rates[problem], problem))[: int(change.new - change.old)]
        self.pools.update(dict.fromkeys(promoted, Pool.ACTIVE))
        self._last_changes["active"] = step
        return change


def open_curriculum(recipe: TrainRecipe, tasks: Mapping[str, TrainingTask]) -> CurriculumController:
    """Return the controller of a recipe's run."""
    return CurriculumController(
        tasks,
        recipe.curriculum,
        recipe.rewards,
        recipe.objective,
        recipe.seed,
        recipe.collector,
        [task.id for task in tasks.values() if task.deferred],
    )
