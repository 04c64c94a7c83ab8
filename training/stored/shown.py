"""Show a self-teacher one correct stored attempt at each problem (OPSD, arXiv 2601.18734)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from curation.records import ConfigError
from curation.thinking import split_response
from training.config import StoredSettings
from training.objectives.registry import needs_of
from training.objectives.sft import SftSettings
from training.recipe import TrainRecipe
from training.rollouts.batches import TeacherPrompt, student_prompt
from training.rollouts.rollouts import RolloutRunner
from training.rollouts.tasks import TrainingTask
from training.stored.supply import StoredSource, StoredSupply, stored_sources
from training.stored.tokens import TokenWriter

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
    """Return the teacher's prompts; the student's own unless the teacher is shown attempts."""
    if needs_of(recipe.objective).teacher != "attempts":
        return student_prompt
    sources = stored_sources((), recipe.data, recipe_folder)
    prompts = await shown_prompts(sources, tasks, rollouts, writer, recipe.seed)
    say(f"the teacher reads a correct attempt at {len(prompts):,} of {len(tasks):,} problems and scores those only")
    return lambda problem, _: prompts.get(problem)


async def shown_prompts(
    sources: Sequence[StoredSource],
    tasks: Mapping[str, TrainingTask],
    rollouts: RolloutRunner,
    writer: TokenWriter,
    seed: int,
) -> dict[str, tuple[int, ...]]:
    """Return, for each problem with a correct stored attempt, a teacher's prompt that shows it without tags."""
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
