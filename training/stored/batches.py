"""Choose the stored share of each step's batch.

Invariant: it depends only on the seed and the step.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from training.config import CollectorSettings
from training.objectives.sft import SFT
from training.recipe import TrainRecipe
from training.rollouts.rollout_scheduler import RolloutBatch, RolloutGroup, RolloutRequest
from training.rollouts.rollouts import Rollout, RolloutRunner
from training.rollouts.tasks import TrainingTask
from training.stored.general import GENERAL, SHARE, GeneralRows
from training.stored.settings import StoredSettings
from training.stored.supply import StoredSupply, licences, run_folders, stored_sources
from training.stored.tokens import TokenWriter
from training.stored.traces import publish_traces


@dataclass(slots=True)
class StoredPlan:
    """The number of stored groups in each step.

    Example: with batches of 16 groups, 40 groups an epoch, 1 epoch and a share of .25, steps 1 to 3 train on 16 stored
    groups each, and all others on 4.
    """

    settings: StoredSettings
    batch_groups: int
    epoch_groups: int
    most_steps: int

    @property
    def offline_steps(self) -> int:
        """Return how many first steps train on stored attempts alone."""
        return min(self.most_steps, math.ceil(self.settings.epochs * self.epoch_groups / self.batch_groups - 1e-9))

    @property
    def steps(self) -> int:
        """Return the steps of the run."""
        return self.offline_steps if self.settings.only else self.most_steps

    def count(self, step: int) -> int:
        """Return the stored groups of a step, from 1."""
        later = step - self.offline_steps
        if later <= 0:
            return self.batch_groups
        half_life = self.settings.half_life
        share = self.settings.share * (0.5 ** ((later - 1) / half_life) if half_life is not None else 1.0)
        return min(round(share * self.batch_groups), self.batch_groups - 1)

    def before(self, step: int) -> int:
        """Return the stored groups of all earlier steps."""
        return sum(self.count(earlier) for earlier in range(1, step))


class StoredBatches:
    """The stored groups of a run's batches.

    Args:
        supply: None without stored attempts.
        general: instruction data for steps that sample nothing.
    """

    def __init__(self, recipe: TrainRecipe, supply: StoredSupply | None, general: GeneralRows | None = None) -> None:
        self._collector, self._supply, self._general = recipe.collector, supply, general
        self._share = SHARE if general is not None else 0.0
        self.plan: StoredPlan | None = None
        self.steps = recipe.steps
        if supply is not None and recipe.stored is not None:
            groups = recipe.collector.n_batch // recipe.collector.group_size
            self.plan = StoredPlan(recipe.stored, groups, supply.epoch_groups, recipe.steps)
            self.steps = self.plan.steps

    def is_offline(self, step: int) -> bool:
        """Return whether a step trains on stored attempts alone."""
        return self.plan is not None and step <= self.plan.offline_steps

    def collector(self, step: int, present: CollectorSettings) -> CollectorSettings:
        """Return the collector's settings for sampling in a step."""
        stored = 0 if self.plan is None or self.is_offline(step) else self.plan.count(step)
        size = present.n_batch - stored * present.group_size
        return present.model_copy(update={"n_batch": size}) if stored else present

    def joined(self, batch: RolloutBatch[Rollout], step: int) -> RolloutBatch[Rollout]:
        """Return the step's batch, with stored groups spread evenly."""
        if self.plan is None or self._supply is None:
            return batch
        if self.is_offline(step) and self._general is not None:
            return RolloutBatch(batch.number, tuple(self._with_general(self._general, step, batch.number)))
        stored = self._supply.groups(self.plan.before(step), self.plan.count(step), batch.number)
        placed = [
            ((place + 0.5) / len(groups), group)
            for groups in (batch.groups, stored)
            for place, group in enumerate(groups)
        ]
        placed.sort(key=lambda one: one[0])
        return RolloutBatch(batch.number, tuple(group for _, group in placed))

    def _with_general(self, general: GeneralRows, step: int, version: int) -> list[RolloutGroup[Rollout]]:
        """Return groups whose minibatches end with instruction data."""
        assert self.plan is not None
        assert self._supply is not None
        parts = self._collector.n_batch // self._collector.minibatch_size
        size = max(self.plan.batch_groups // parts - 1, 1)  # groups of traces in a minibatch
        odds = self._share / (1 - self._share)
        most = math.ceil(odds * size * self._collector.group_size)
        groups: list[RolloutGroup[Rollout]] = []
        for part in range(parts):
            turn = (step - 1) * parts + part
            traces = self._supply.groups(turn * size, size, version)
            count = max(round(odds * sum(len(group.rollouts) for group in traces)), 1)
            rows = general.rollouts(turn * most, count)
            number = -(1 << 40) - turn
            requests = (RolloutRequest(number, place, GENERAL, version) for place in range(count))
            groups += [*traces, RolloutGroup(number, GENERAL, version, tuple(zip(requests, rows, strict=True)), ())]
        return groups


async def open_stored(
    recipe: TrainRecipe,
    recipe_folder: Path,
    out: Path,
    tasks: dict[str, TrainingTask],
    rollouts: RolloutRunner,
    writer: TokenWriter,
    say: Callable[[str], None],
) -> StoredBatches:
    """Return a run's judged stored groups; publish a cold start's traces in ``out``.

    Raises:
        SourceError: a source is missing, or teaches nothing.
    """
    settings = recipe.stored
    if settings is None:
        return StoredBatches(recipe, None)
    sources = stored_sources(run_folders(settings.runs, recipe.data, recipe_folder))
    size = recipe.collector.group_size
    supply = StoredSupply(sources, tasks, rollouts, writer, settings, recipe.objective, size, recipe.seed)
    await supply.load()
    general = None
    if settings.general is not None:
        path = recipe_folder / Path(settings.general).expanduser()
        general = GeneralRows(path, writer, recipe.seed)
    batches = StoredBatches(recipe, supply, general)
    assert batches.plan is not None
    say(f"{supply.counts}; steps 1 to {batches.plan.offline_steps} of {batches.steps} train on them alone")
    if recipe.objective.kind == SFT.kind:
        publish_traces(out, recipe.name, supply, tasks, settings, licences(recipe.data, recipe_folder))
    return batches
