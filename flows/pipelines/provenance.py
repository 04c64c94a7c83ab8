"""Check whether a policy was trained on a bench, by problem ids and overlapping texts.

A model's folder leads to its training data, and to that of earlier models.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from curation.config import LiveModel
from curation.config.policies import ModelSettings
from curation.filters.decontamination.overlap import OVERLAP, BenchmarkIndex, OverlapSettings
from curation.records import ConfigError
from flows.publish.curated_set import published_folder
from flows.run.training import read_run
from flows.run.training_status import is_training
from training.embedded_model import EMBEDDED
from training.embedded_model.problems import Split
from training.recipe import CuratedData, DataSettings, EmbeddedData
from training.rollouts.tasks import load_tasks
from training.stored.general import read_chats

PARENTS = 3
"""Max folders from a run to its model: RUN/checkpoints/N/hf."""

BATCH = 5_000

_PROBLEMS = {"id": pl.String, "statement": pl.String}


@dataclass(frozen=True, slots=True)
class TrainedSet:
    """Problems that a policy was trained on; ``drawn`` ones are compared by id only."""

    name: str
    problems: pl.DataFrame  # id, statement
    drawn: bool = False


def trained_sets(policy: ModelSettings, folder: Path, more: Sequence[Path] = ()) -> list[TrainedSet]:
    """Return the sets a policy was trained on, as its folder and the user name them.

    Args:
        more: folders of curated sets or runs.
    """
    sets = list[TrainedSet]()
    for path in more:
        if not path.is_dir():
            raise ConfigError(f"--trained-on {path}: there is no such folder; name a curated set or a training run.")
        sets += _of_run(path) if is_training(path) else [_curated(published_folder(path).absolute())]
    if isinstance(policy, LiveModel) and policy.loads_folder:
        sets += _of_model(policy.model, folder)
    return sets


def refuse_trained_on(bench: str, problems: pl.DataFrame, sets: Sequence[TrainedSet]) -> None:
    """Refuse a bench that shares problems with a set.

    Raises:
        ConfigError: problems are shared.
    """
    for trained in sets:
        hits = _shared(problems, trained)
        if hits:
            row, how = min(hits.items())
            text = " ".join(problems["statement"][row].split())[:100]
            raise ConfigError(
                f"bench {bench}: {len(hits)} of its {problems.height} problems are in {trained.name}, which this "
                f"policy was trained on (row {row}, {how}: {text!r}). Take another bench, or curate that set with "
                f'decontamination.benches = ["{bench}"] and train again.'
            )


def _shared(problems: pl.DataFrame, trained: TrainedSet) -> dict[int, str]:
    known = set(trained.problems["id"])
    hits = {row: "the same text" for row, name in enumerate(problems["id"]) if name in known}
    if trained.drawn or trained.problems.is_empty():
        return hits
    statements = problems.select("statement", benchmark=pl.lit("bench")).with_row_index("row")
    index = BenchmarkIndex(statements.with_columns(pl.col("row").cast(pl.Int64)), OverlapSettings())
    batches = [batch["statement"] for batch in trained.problems.iter_slices(BATCH)]
    for batch in batches:
        index.count(batch)
    for batch in batches:
        found = index.hits(batch).filter(pl.col("kind") == OVERLAP)
        for row, method in found.select("benchmark_row", "method").iter_rows():
            hits.setdefault(row, f"overlap by {method}")
    return hits


def _of_model(name: str, folder: Path) -> Iterator[TrainedSet]:
    model = folder / Path(name).expanduser()
    if name != EMBEDDED and model.is_dir():
        model = model.resolve()
        for run in filter(is_training, (model, *model.parents[:PARENTS])):
            yield from _of_run(run)
            return


def _of_run(folder: Path) -> Iterator[TrainedSet]:
    recipe, home = read_run(folder)
    if isinstance(recipe.data, CuratedData):
        for name in recipe.data.folders:
            yield _curated((home / Path(name).expanduser()).absolute())
    if not isinstance(recipe.data, CuratedData) or recipe.data.hard:
        name = f"the {recipe.data.kind} problems of {folder.name}"
        yield _tasks(name, recipe.data, home, drawn=isinstance(recipe.data, EmbeddedData))
    if recipe.stored is not None and recipe.stored.general is not None:
        path = home / Path(recipe.stored.general).expanduser()
        texts = [" ".join(message["content"] for message in chat[:-1]) for chat in read_chats(path)]
        table = pl.DataFrame({"id": texts, "statement": texts}, schema=_PROBLEMS)
        yield TrainedSet(f"the instruction data of {folder.name}", table)
    yield from _of_model(recipe.trained.model, home)


def _curated(folder: Path) -> TrainedSet:
    return _tasks(str(folder), CuratedData(kind="curated", folders=(str(folder),)), folder)


def _tasks(name: str, data: DataSettings, home: Path, *, drawn: bool = False) -> TrainedSet:
    rows = [(task.id, task.request.statement) for task in load_tasks(data, Split.TRAIN, home).values()]
    return TrainedSet(name, pl.DataFrame(rows, schema=_PROBLEMS, orient="row"), drawn)
