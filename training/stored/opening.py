"""Open a run's stored attempts, and write the traces of a cold start to RUN/traces."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import polars as pl

from curation.storage.stages import write_parquet
from training.objectives.sft import SFT
from training.recipe import TrainRecipe
from training.rollouts.rollouts import RolloutRunner
from training.rollouts.tasks import TrainingTask
from training.stored.batches import StoredBatches
from training.stored.sources import run_folders, stored_sources
from training.stored.supply import StoredSupply
from training.stored.tokens import TokenWriter

TRACES = "traces"

TRACE = pl.Schema(
    {
        "id": pl.String(),  # the problem's
        "domain": pl.String(),
        "statement": pl.String(),
        "answer": pl.String(),
        "lang": pl.String(),
        "response": pl.String(),  # in the form of the house, as it was trained on
        "teacher": pl.String(),  # model@revision
        "run": pl.String(),  # name of the run that made it
        "pass_rate": pl.Float64(),  # of all of the problem's stored attempts
        "tokens": pl.Int32(),
    }
)


async def open_stored(
    recipe: TrainRecipe,
    recipe_folder: Path,
    out: Path,
    tasks: dict[str, TrainingTask],
    rollouts: RolloutRunner,
    writer: TokenWriter,
    say: Callable[[str], None],
) -> StoredBatches:
    """Return a run's judged stored groups; write a cold start's traces to ``out``.

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
    batches = StoredBatches(recipe, supply)
    assert batches.plan is not None
    say(f"{supply.counts}; steps 1 to {batches.plan.offline_steps} of {batches.steps} train on them alone")
    if recipe.objective.kind == SFT.kind:
        write_traces(out, supply, tasks)
    return batches


def write_traces(out: Path, supply: StoredSupply, tasks: Mapping[str, TrainingTask]) -> None:
    """Write the traces that a run trains on."""
    rows = []
    for problem, attempt, rollout in supply.texts():
        task, source = tasks[problem.problem], supply.sources[attempt.source]
        request = task.request
        said = (request.id, request.domain.value, request.statement, task.reference_answer, request.lang)
        made = (rollout.completion.text, source.policy, source.run.name, problem.pass_rate, rollout.tokens)
        rows.append((*said, *made))
    table = pl.DataFrame(rows, schema=TRACE, orient="row")
    folder = out / TRACES
    (folder / "data").mkdir(parents=True, exist_ok=True)
    write_parquet(folder / "data" / "train-00000-of-00001.parquet", table)
