"""Decide, count and log verl's finished groups for the curriculum.

Invariants: each group is decided once; a failed verifier excludes its rollout.
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
    """A rollout's reward, fields, and versions of its weights."""

    reward: Reward
    fields: Mapping[str, Any]
    oldest: int = 0
    newest: int = 0

    @classmethod
    def of(cls, fields: Mapping[str, Any], oldest: int = 0, newest: int = 0) -> JudgedRollout:
        """Return the rollout of these `reward_fields`."""
        return cls(Reward(**json.loads(fields[REWARD])), fields, oldest, newest)


def reward_fields(reward: Reward, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts and the reward as fields, none of them None."""
    known = {name: "" if value is None else value for name, value in facts.items()}
    return {
        **known,
        REWARD: json.dumps(asdict(reward)),
        "acc": float(reward.correct),
        "excluded": float(reward.excluded),
    }


class GroupLedger:
    """A run's decisions and counts; ``tasks`` are in the training set's order."""

    def __init__(self, recipe: TrainRecipe, tasks: Mapping[str, TrainingTask], out: Path) -> None:
        self._recipe = recipe
        self.curriculum = CurriculumController(recipe, tasks)
        self._indices = {problem: index for index, problem in enumerate(tasks)}
        self._logs = {name: JsonlLog(out / f"{name}.jsonl") for name in ("attempts", "changes")}
        self._decided: dict[str, GroupDecision] = {}
        self._sampled, self._dropped, self._rewards = SampledGroupStats(), Counter[str](), list[Reward]()
        self._closed: dict[str, float] = {}
        self._groups = self._step = 0

    def draw(self) -> int:
        """Return the next problem's index in the training set."""
        return self._indices[self.curriculum.draw_problem()]

    def decide(self, name: str, problem: str, rollouts: Sequence[JudgedRollout], step: int) -> GroupDecision:
        """Decide and log a group, once."""
        if name in self._decided:
            return self._decided[name]
        recipe, rewards = self._recipe, [rollout.reward for rollout in rollouts]
        decision = objective_of(recipe.objective).decide(rewards, recipe.objective)
        self._decided[name] = decision
        judged = [rollout for rollout in rollouts if not rollout.reward.excluded]
        correct = sum(rollout.reward.correct for rollout in judged)
        self.curriculum.record_group(problem, step, correct, len(judged))
        tokens = [int(rollout.fields["tokens"]) for rollout in rollouts]
        finishes = [rollout.fields["finish"] for rollout in rollouts]
        self._sampled.add(rewards, tokens, finishes, is_dropped=decision.drop_reason is not None)
        self._rewards += [rollout.reward for rollout in judged]
        if decision.drop_reason is not None:
            self._dropped[decision.drop_reason] += len(rollouts)
        self._log(problem, rollouts, step)
        return decision

    def keep(self, names: set[str]) -> None:
        """Forget decisions on groups that verl no longer holds."""
        self._decided = {name: decision for name, decision in self._decided.items() if name in names}

    def after_step(self, step: int) -> dict[str, float]:
        """Close ``step``, if open, and return its metrics once."""
        self._close_step(step, may_end_stage=False)
        closed, self._closed = self._closed, {}
        return closed

    def save(self, step: int, checkpoint: Path) -> bool:
        """Close a step, write the state into verl's checkpoint, and return whether a stage ended."""
        before = self.curriculum.stage
        self._close_step(step, may_end_stage=True)
        atomic_write(checkpoint / STATE, json.dumps(self.state(), ensure_ascii=False) + "\n")
        return self.curriculum.stage != before

    def _close_step(self, step: int, *, may_end_stage: bool) -> None:
        if step > self._step:
            self._step = step
            numbers = self._sampled.numbers()
            if self._rewards:
                numbers |= {
                    f"reward/{name}": fmean(getattr(reward, name) for reward in self._rewards) for name in COMPONENTS
                }
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
        """Restore a `state`, and truncate the logs."""
        self.curriculum.restore(state["curriculum"])
        self._step, self._groups = state["step"], state["groups"]
        self._closed = dict(state["closed"])
        self._decided = {  # verl's restored queue has decided groups
            name: GroupDecision(row["drop_reason"], tuple(row["exclusion_reasons"]))
            for name, row in state.get("decided", {}).items()
        }
        for name, log in self._logs.items():
            log.truncate(state["logs"].get(name, 0))

    def close(self) -> None:
        for log in self._logs.values():
            log.close()

    def _log(self, problem: str, rollouts: Sequence[JudgedRollout], step: int) -> None:
        for index, rollout in enumerate(rollouts):
            fields, reward = rollout.fields, rollout.reward
            row = {
                "group": self._groups,
                "index": index,
                "step": step - 1,
                "admitted": rollout.oldest,
                "problem": problem,
                "outcome": fields["outcome"] or None,
                "method": fields["method"],
                "tokens": fields["tokens"],
                "finish": fields["finish"],
                "oldest": rollout.oldest,
                "newest": rollout.newest,
                "reward": reward.components(),
                "excluded": reward.excluded_by,
            }
            self._logs["attempts"].append(row)
        self._groups += 1


_LEDGERS: list[GroupLedger] = []
"""The process's ledger."""


def open_ledger(rows: Iterable[Mapping[str, Any]], checkpoints: Path) -> GroupLedger:
    """Open the process's ledger, restored from verl's newest checkpoint."""
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
