"""Decide, count and log verl's finished groups, and show them to the curriculum.

Invariants: each group is decided once; a rollout whose verifier failed is neither trained on nor wrong; problems are
drawn in verl's order.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from curation.storage.stages import atomic_write
from training.embedded_model.problems import Split
from training.engines.verl.configuration import run_facts
from training.engines.verl.stages import STATE, saved_state
from training.evaluation.metrics import SampledGroupStats
from training.objectives.registry import objective_of
from training.optimisation.checkpoint import JsonlLog
from training.recipe import TrainRecipe
from training.rewards import COMPONENTS, Reward
from training.rollouts.curriculum import CurriculumController
from training.rollouts.rollout_scheduler import GroupDecision
from training.rollouts.tasks import TrainingTask, load_tasks

REWARD = "goldilocks_reward"
"""Field of a rollout's `Reward`, as JSON."""


@dataclass(frozen=True, slots=True)
class JudgedRollout:
    """A rollout with its reward and the versions of its weights."""

    reward: Reward
    told: Mapping[str, Any]
    oldest: int = 0
    newest: int = 0

    @classmethod
    def of(cls, told: Mapping[str, Any], oldest: int = 0, newest: int = 0) -> JudgedRollout:
        """Read it from the reward worker's fields (`told_of`)."""
        return cls(Reward(**json.loads(told[REWARD])), told, oldest, newest)


def told_of(reward: Reward, told: Mapping[str, Any]) -> dict[str, Any]:
    """Return a rollout's fields: numbers and texts, never None."""
    known = {name: "" if value is None else value for name, value in told.items()}
    return {
        **known,
        REWARD: json.dumps(asdict(reward)),
        "acc": float(reward.correct),
        "excluded": float(reward.excluded),
    }


class GroupLedger:
    """Decide and count a run's groups; ``tasks`` has the training set's order."""

    def __init__(self, recipe: TrainRecipe, tasks: Mapping[str, TrainingTask], out: Path) -> None:
        self._recipe = recipe
        self.curriculum = CurriculumController(recipe, tasks)
        self._places = {problem: place for place, problem in enumerate(tasks)}
        self._logs = {name: JsonlLog(out / f"{name}.jsonl") for name in ("attempts", "changes")}
        self._decided: dict[str, GroupDecision] = {}
        self._sampled, self._dropped, self._rewards = SampledGroupStats(), Counter[str](), list[Reward]()
        self._closed: dict[str, float] = {}
        self._groups = self._step = 0

    def draw(self) -> int:
        """Return the next problem's index in the training set."""
        return self._places[self.curriculum.draw_problem()]

    def decide(self, name: str, problem: str, rollouts: Sequence[JudgedRollout], step: int) -> GroupDecision:
        """Return which rollouts of a group are trained on, decided and logged once."""
        if name in self._decided:
            return self._decided[name]
        recipe, rewards = self._recipe, [rollout.reward for rollout in rollouts]
        decision = objective_of(recipe.objective).decide(rewards, recipe.objective)
        self._decided[name] = decision
        judged = [rollout for rollout in rollouts if not rollout.reward.excluded]
        correct = sum(rollout.reward.correct for rollout in judged)
        self.curriculum.record_group(problem, step, correct, len(judged))
        tokens, finishes = [int(one.told["tokens"]) for one in rollouts], [one.told["finish"] for one in rollouts]
        self._sampled.add(rewards, tokens, finishes, is_dropped=decision.drop_reason is not None)
        self._rewards += [one.reward for one in judged]
        if decision.drop_reason is not None:
            self._dropped[decision.drop_reason] += len(rollouts)
        self._log(problem, rollouts, step)
        return decision

    def keep(self, names: set[str]) -> None:
        """Forget decisions on groups that verl no longer holds."""
        self._decided = {name: decision for name, decision in self._decided.items() if name in names}

    def after_step(self, step: int) -> dict[str, float]:
        """Close ``step``, if it is open, and return its metrics once."""
        self._close_step(step, may_end_stage=False)
        closed, self._closed = self._closed, {}
        return closed

    def save(self, step: int, checkpoint: Path) -> bool:
        """Close a saved step, write the state into verl's checkpoint, and return whether a stage ended.

        The next `after_step`, also of a resumed run, returns the metrics.
        """
        before = self.curriculum.stage
        self._close_step(step, may_end_stage=True)
        atomic_write(checkpoint / STATE, json.dumps(self.state(), ensure_ascii=False) + "\n")
        return self.curriculum.stage != before

    def _close_step(self, step: int, *, may_end_stage: bool) -> None:
        if step > self._step:
            self._step = step
            numbers = self._sampled.numbers()
            if self._rewards:
                numbers |= {f"reward/{name}": fmean(getattr(one, name) for one in self._rewards) for name in COMPONENTS}
                numbers |= {f"dropped/{reason}": float(count) for reason, count in self._dropped.items()}
            self._closed = numbers
            self._sampled, self._dropped, self._rewards = SampledGroupStats(), Counter[str](), list[Reward]()
            self.curriculum.follow(step, self._closed, self._logs["changes"], may_end_stage=may_end_stage)

    def state(self) -> dict[str, Any]:
        """Flush the logs; return the state as JSON."""
        logs = {name: log.offset() for name, log in self._logs.items()}
        counted = {"step": self._step, "groups": self._groups, "closed": self._closed}
        decided = {name: asdict(decision) for name, decision in self._decided.items()}
        return {"curriculum": self.curriculum.state(), **counted, "decided": decided, "logs": logs}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore a `state` and truncate the logs to it."""
        self.curriculum.restore(state["curriculum"])
        self._step, self._groups = state["step"], state["groups"]
        self._closed = dict(state["closed"])
        self._decided = {  # verl's queue comes back with groups that were decided and not trained on yet
            name: GroupDecision(told["drop_reason"], tuple(told["exclusion_reasons"]))
            for name, told in state.get("decided", {}).items()
        }
        for name, log in self._logs.items():
            log.truncate(state["logs"].get(name, 0))

    def close(self) -> None:
        """Close the logs."""
        for log in self._logs.values():
            log.close()

    def _log(self, problem: str, rollouts: Sequence[JudgedRollout], step: int) -> None:
        for index, rollout in enumerate(rollouts):
            told, reward = rollout.told, rollout.reward
            row = {
                "group": self._groups,
                "index": index,
                "step": step - 1,
                "admitted": rollout.oldest,
                "problem": problem,
                "outcome": told["outcome"] or None,
                "method": told["method"],
                "tokens": told["tokens"],
                "finish": told["finish"],
                "oldest": rollout.oldest,
                "newest": rollout.newest,
                "reward": reward.components(),
                "excluded": reward.excluded_by,
            }
            self._logs["attempts"].append(row)
        self._groups += 1


_LEDGERS: list[GroupLedger] = []
"""The trainer process's one ledger."""


def open_ledger(rows: Iterable[Mapping[str, Any]], checkpoints: Path) -> GroupLedger:
    """Make the process's ledger, restored from verl's newest checkpoint."""
    facts = run_facts()
    known = load_tasks(facts.recipe.data, Split.TRAIN, facts.recipe_folder)
    names = [str(row["extra_info"]["id"]) for row in rows]  # without those whose prompts are too long for verl
    ledger = GroupLedger(facts.recipe, {name: known[name] for name in names}, facts.out)
    if (state := saved_state(checkpoints)) is not None:
        ledger.restore(state)
    _LEDGERS[:] = [ledger]
    return ledger


def the_ledger() -> GroupLedger:
    """Return the process's ledger."""
    return _LEDGERS[0]
