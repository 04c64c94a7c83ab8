"""Open a run's stored attempts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from training.objectives.sft import SFT
from training.recipe import TrainRecipe
from training.rollouts.rollouts import RolloutRunner
from training.rollouts.tasks import TrainingTask
from training.stored.batches import StoredBatches
from training.stored.general import GeneralRows
from training.stored.sources import licences, run_folders, stored_sources
from training.stored.supply import StoredSupply
from training.stored.tokens import TokenWriter
from training.stored.traces import publish_traces


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
