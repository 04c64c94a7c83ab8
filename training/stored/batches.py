"""Choose the stored share of each batch, and a self-teacher's prompts.

Invariant: a share depends only on the seed and the step.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from curation.records import ConfigError
from curation.thinking import split_response
from training.config import CollectorSettings, StoredSettings
from training.objectives.registry import needs_of
from training.objectives.sft import SFT, SftSettings
from training.recipe import TrainRecipe
from training.rollouts.batches import TeacherPrompt, student_prompt
from training.rollouts.rollout_scheduler import RolloutBatch, RolloutGroup, RolloutRequest
from training.rollouts.rollouts import Rollout, RolloutRunner
from training.rollouts.tasks import TrainingTask
from training.stored.general import GENERAL, SHARE, GeneralRows
from training.stored.supply import StoredSource, StoredSupply, licences, stored_sources
from training.stored.tokens import TokenWriter
from training.stored.traces import publish_traces


class StoredBatches:
    """The stored groups of a run's batches.

    Example: with batches of 16 groups, 1 epoch of 40 groups and a share of .25, steps 1 to 3 train on 16 stored groups
    each, and all others on 4.

    Args:
        supply: None without stored attempts.
        general: instruction data for steps that sample nothing.
    """

    def __init__(self, recipe: TrainRecipe, supply: StoredSupply | None, general: GeneralRows | None = None) -> None:
        self._collector, self._supply, self._general = recipe.collector, supply, general
        self._settings = recipe.stored or StoredSettings(epochs=0.0, share=0.0)
        self._batch_groups = recipe.collector.n_batch // recipe.collector.group_size
        epoch = supply.epoch_groups if supply is not None else 0
        first_steps = math.ceil(self._settings.epochs * epoch / self._batch_groups - 1e-9)
        self.offline_steps = min(recipe.steps, first_steps)
        self.steps = self.offline_steps if self._settings.only else recipe.steps

    def count(self, step: int) -> int:
        """Return the number of stored groups of a step, from 1."""
        later = step - self.offline_steps
        if later <= 0:
            return self._batch_groups
        half_life = self._settings.half_life
        share = self._settings.share * (0.5 ** ((later - 1) / half_life) if half_life is not None else 1.0)
        return min(round(share * self._batch_groups), self._batch_groups - 1)

    def before(self, step: int) -> int:
        """Return the number of stored groups of earlier steps."""
        return sum(self.count(earlier) for earlier in range(1, step))

    def is_offline(self, step: int) -> bool:
        """Return whether a step trains on stored attempts alone."""
        return step <= self.offline_steps

    def collector(self, step: int, present: CollectorSettings) -> CollectorSettings:
        """Return the collector for sampling in a step."""
        stored = 0 if self.is_offline(step) else self.count(step)
        size = present.n_batch - stored * present.group_size
        return present.model_copy(update={"n_batch": size}) if stored else present

    def joined(self, batch: RolloutBatch[Rollout], step: int) -> RolloutBatch[Rollout]:
        """Return the step's batch, with stored groups spread evenly."""
        if self._supply is None:
            return batch
        if self.is_offline(step) and self._general is not None:
            groups = self._with_general(self._supply, self._general, step, batch.number)
            return RolloutBatch(batch.number, tuple(groups))
        stored = self._supply.groups(self.before(step), self.count(step), batch.number)
        ranked = [
            [((index + 0.5) / len(groups), group) for index, group in enumerate(groups)]
            for groups in (batch.groups, stored)
        ]
        return RolloutBatch(batch.number, tuple(group for _, group in heapq.merge(*ranked, key=lambda pair: pair[0])))

    def _with_general(
        self, supply: StoredSupply, general: GeneralRows, step: int, version: int
    ) -> list[RolloutGroup[Rollout]]:
        """Return a step's groups; minibatches end with instruction data."""
        minibatches = self._collector.n_batch // self._collector.minibatch_size
        size = max(self._batch_groups // minibatches - 1, 1)  # groups of traces in a minibatch
        odds = SHARE / (1 - SHARE)
        max_rows = math.ceil(odds * size * self._collector.group_size)
        groups: list[RolloutGroup[Rollout]] = []
        for minibatch in range(minibatches):
            turn = (step - 1) * minibatches + minibatch
            traces = supply.groups(turn * size, size, version)
            added = max(round(odds * sum(len(group.rollouts) for group in traces)), 1)
            rows = general.rollouts(turn * max_rows, added)
            number = -(1 << 40) - turn
            requests = (RolloutRequest(number, index, GENERAL, version) for index in range(added))
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
    """Return a run's stored groups; publish a cold start's traces in ``out``."""
    settings = recipe.stored
    if settings is None:
        return StoredBatches(recipe, None)
    sources = stored_sources(settings.runs, recipe.data, recipe_folder)
    size = recipe.collector.group_size
    supply = StoredSupply(sources, tasks, rollouts, writer, settings, recipe.objective, size, recipe.seed)
    await supply.load()
    file = recipe_folder / Path(settings.general).expanduser() if settings.general is not None else None
    batches = StoredBatches(recipe, supply, GeneralRows(file, writer, recipe.seed) if file is not None else None)
    say(f"{supply.counts}; steps 1 to {batches.offline_steps} of {batches.steps} train on them alone")
    if recipe.objective.kind == SFT.kind:
        publish_traces(out, recipe.name, supply, tasks, settings, licences(recipe.data, recipe_folder))
    return batches


SHOWN = "{statement}\n\nA correct solution of this problem, to learn from:\n\n{solution}\n\nNow solve it yourself."
"""The statement that the teacher reads."""


async def open_shown(
    recipe: TrainRecipe,
    recipe_folder: Path,
    tasks: Mapping[str, TrainingTask],
    rollouts: RolloutRunner,
    writer: TokenWriter,
    say: Callable[[str], None],
) -> TeacherPrompt:
    """Return the teacher's prompts; the student's unless it is shown attempts (OPSD, arXiv 2601.18734)."""
    if needs_of(recipe.objective).teacher != "attempts":
        return student_prompt
    sources = stored_sources((), recipe.data, recipe_folder)
    prompts = await shown_prompts(sources, tasks, rollouts, writer, recipe.seed)
    say(f"the teacher reads a correct attempt at {len(prompts):,} of {len(tasks):,} problems, and scores only those")
    return lambda problem, _: prompts.get(problem)


async def shown_prompts(
    sources: Sequence[StoredSource],
    tasks: Mapping[str, TrainingTask],
    rollouts: RolloutRunner,
    writer: TokenWriter,
    seed: int,
) -> dict[str, tuple[int, ...]]:
    """Return, for problems with a correct stored attempt, a prompt that shows it without tags."""
    supply = StoredSupply(sources, tasks, rollouts, writer, StoredSettings(per_problem=1), SftSettings(), 1, seed)
    await supply.load()
    prompts = {}
    for problem, _, rollout in supply.texts():
        task, parts = tasks[problem.problem], split_response(rollouts.tags.house_form(rollout.completion.text))
        solution = "\n\n".join(part.strip() for part in (parts.thoughts, parts.answer or "") if part.strip())
        statement = SHOWN.format(statement=task.request.statement, solution=solution)
        prompt = rollouts.render(replace(task, request=replace(task.request, statement=statement)))
        if prompt == rollouts.prompt_ids(task):
            raise ConfigError(
                f"the chat template drops what follows the statement of {task.id}, so the teacher would read no "
                "attempt; name another teacher"
            )
        prompts[task.id] = prompt
    return prompts
