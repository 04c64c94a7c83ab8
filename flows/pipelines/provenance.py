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
from curation.filters.decontamination import OVERLAP, BenchmarkIndex, OverlapSettings
from curation.records import ConfigError
from flows.publish.curated_set import published_folder
from flows.run.training import read_run
from flows.run.training_status import is_training
from training.embedded_model import EMBEDDED
from training.embedded_model.problems import Split
from training.recipe import CuratedData, EmbeddedData
from training.rollouts.tasks import load_tasks
from training.stored.general import read_chats

PARENTS = 3
"""Max folders from a run to its model: RUN/checkpoints/N/hf."""

BATCH = 5_000


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
    sets = [found for path in more for found in _named(path)]
    if isinstance(policy, LiveModel) and policy.loads_folder and policy.model != EMBEDDED:
        model = folder / Path(policy.model).expanduser()
        if model.is_dir():
            sets += _of_model(model.resolve())
    return sets


def refuse_trained_on(bench: str, problems: pl.DataFrame, sets: Sequence[TrainedSet]) -> None:
    """Refuse a bench that shares problems with a set.

    Raises:
        ConfigError: problems are shared.
    """
    for trained in sets:
        hits = _shared(problems, trained)
        if hits:
            row, how = next(iter(hits.items()))
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
    batches = list(trained.problems.iter_slices(BATCH))
    for batch in batches:
        index.count(batch["statement"])
    for batch in batches:
        found = index.hits(batch["statement"]).filter(pl.col("kind") == OVERLAP)
        for row, method in found.select("benchmark_row", "method").iter_rows():
            hits.setdefault(row, f"overlap by {method}")
    return dict(sorted(hits.items()))


def _named(path: Path) -> Iterator[TrainedSet]:
    if not path.is_dir():
        raise ConfigError(f"--trained-on {path}: there is no such folder; name a curated set or a training run.")
    if is_training(path):
        yield from _of_run(path)
    else:
        yield _curated(published_folder(path).absolute())


def _of_model(model: Path) -> Iterator[TrainedSet]:
    run = next((folder for folder in (model, *model.parents[:PARENTS]) if is_training(folder)), None)
    if run is not None:
        yield from _of_run(run)


def _of_run(folder: Path) -> Iterator[TrainedSet]:
    recipe, home = read_run(folder)
    if isinstance(recipe.data, CuratedData):
        for name in recipe.data.folders:
            yield _curated((home / Path(name).expanduser()).absolute())
    drawn = isinstance(recipe.data, EmbeddedData)
    if not isinstance(recipe.data, CuratedData) or recipe.data.hard:
        tasks = load_tasks(recipe.data, Split.TRAIN, home)
        rows = [(task.id, task.request.statement) for task in tasks.values()]
        yield TrainedSet(f"the {recipe.data.kind} problems of {folder.name}", _frame(rows), drawn=drawn)
    if recipe.stored is not None and recipe.stored.general is not None:
        path = home / Path(recipe.stored.general).expanduser()
        said = [" ".join(one["content"] for one in chat[:-1]) for chat in read_chats(path)]
        yield TrainedSet(f"the instruction data of {folder.name}", _frame([(text, text) for text in said]))
    if recipe.trained.model != EMBEDDED and (before := home / Path(recipe.trained.model).expanduser()).is_dir():
        yield from _of_model(before.resolve())


def _curated(folder: Path) -> TrainedSet:
    tasks = load_tasks(CuratedData(kind="curated", folders=(str(folder),)), Split.TRAIN, folder)
    return TrainedSet(str(folder), _frame([(task.id, task.request.statement) for task in tasks.values()]))


def _frame(rows: list[tuple[str, str]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema={"id": pl.String, "statement": pl.String}, orient="row")
