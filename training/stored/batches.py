"""Choose the stored share of each step's batch.

Invariant: it depends only on the seed and the step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from training.config import CollectorSettings
from training.recipe import TrainRecipe
from training.rollouts.rollout_scheduler import RolloutBatch
from training.rollouts.rollouts import Rollout, RolloutRunner
from training.rollouts.tasks import TrainingTask
from training.stored.settings import StoredSettings
from training.stored.supply import StoredSupply, run_folders, stored_sources
from training.stored.tokens import TokenWriter


@dataclass(slots=True)
class StoredBatches:
    """The stored groups of each step; none without a supply.

    Example: with batches of 16 groups, 40 groups an epoch, 1 epoch and a share of .25, steps 1 to 3 train on 16 stored
    groups each, and all others on 4.
    """

    settings: StoredSettings
    batch_groups: int
    epoch_groups: int
    most_steps: int
    supply: StoredSupply | None = None

    @property
    def offline_steps(self) -> int:
        """Return how many first steps train on stored attempts alone."""
        return min(self.most_steps, math.ceil(self.settings.epochs * self.epoch_groups / self.batch_groups - 1e-9))

    @property
    def steps(self) -> int:
        """Return the steps of the run."""
        return self.offline_steps if self.settings.only else self.most_steps

    def is_offline(self, step: int) -> bool:
        """Return whether a step trains on stored attempts alone."""
        return step <= self.offline_steps

    def count(self, step: int) -> int:
        """Return the stored groups of a step, from 1."""
        if self.is_offline(step):
            return self.batch_groups
        age = step - self.offline_steps - 1
        share = self.settings.share * 0.5 ** (age / (self.settings.half_life or math.inf))
        return min(round(share * self.batch_groups), self.batch_groups - 1)

    def before(self, step: int) -> int:
        """Return the stored groups of all earlier steps."""
        return sum(self.count(earlier) for earlier in range(1, step))

    def collector(self, step: int, present: CollectorSettings) -> CollectorSettings:
        """Return the collector's settings for sampling in a step."""
        stored = 0 if self.is_offline(step) else self.count(step)
        size = present.n_batch - stored * present.group_size
        return present.model_copy(update={"n_batch": size}) if stored else present

    def joined(self, batch: RolloutBatch[Rollout], step: int) -> RolloutBatch[Rollout]:
        """Return the step's batch, with stored groups spread evenly."""
        if self.supply is None:
            return batch
        stored = self.supply.groups(self.before(step), self.count(step), batch.number)
        placed = [
            ((place + 0.5) / len(groups), group)
            for groups in (batch.groups, stored)
            for place, group in enumerate(groups)
        ]
        placed.sort(key=lambda one: one[0])
        return RolloutBatch(batch.number, tuple(group for _, group in placed))


async def open_stored(
    recipe: TrainRecipe,
    recipe_folder: Path,
    tasks: Mapping[str, TrainingTask],
    rollouts: RolloutRunner,
    writer: TokenWriter,
    say: Callable[[str], None],
) -> StoredBatches:
    """Return a run's judged stored groups.

    Raises:
        SourceError: a source is missing, or teaches nothing.
    """
    size, settings = recipe.collector.group_size, recipe.stored
    groups = recipe.collector.n_batch // size
    if settings is None:
        return StoredBatches(StoredSettings(epochs=0, share=0), groups, 0, recipe.steps)
    sources = stored_sources(run_folders(settings.runs, recipe.data, recipe_folder))
    supply = StoredSupply(sources, tasks, rollouts, writer, settings, recipe.objective, size, recipe.seed)
    await supply.load()
    batches = StoredBatches(settings, groups, supply.epoch_groups, recipe.steps, supply)
    say(f"{supply.counts}; steps 1 to {batches.offline_steps} of {batches.steps} train on them alone")
    return batches
