"""What is said of the references of a finished run or version, a shard of its problems at a time.

It is read where the stage stored it (`flows.stages.label_trust`), and computed where it did not, as for a refreshed
version. Inside `keep_labels` it is computed once, however often it is asked for, and lies in files until the block
ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import polars as pl

from curation.difficulty import label_trust
from curation.difficulty.early_stopping import WRONG_LABEL_VOTES
from curation.difficulty.label_check import PlantedCheck, check_by_planting
from curation.storage.scratch import ScratchFolder
from curation.storage.stages import read_manifest, read_shard
from flows.run.pipeline import read_result
from flows.run.run_folder import Run, difficulty_stage
from flows.run.stage import Results, StageResult, shard_counts
from flows.stages.label_trust import (
    accepted_references,
    label_trust_of,
    opened_votes,
    other_references,
    posterior_decides,
    weighing,
)
from flows.stages.near_dedup import NEAR_DEDUP
from flows.stages.questions import final_verdicts


@dataclass(frozen=True, slots=True)
class WeighedLabels:
    """References weighed by everyone's answers.

    Args:
        labels: `curation.difficulty.label_trust.LABEL_TRUST` rows.
        decides: whether a reference is not believed by these probabilities, rather than by votes.
        check: how both rules did on planted references; None where it was not tried here.
    """

    labels: pl.DataFrame
    decides: bool
    check: PlantedCheck | None


@dataclass(frozen=True, slots=True)
class LabelShards:
    """What is said of the references of a finished run, by the shards of its problems, each made when it is read.

    Args:
        count: of shards. decides: whether a reference is not believed by it.
        read: returns the `curation.difficulty.label_trust.LABEL_TRUST` rows of a shard.
    """

    count: int
    decides: bool
    read: Callable[[int], pl.DataFrame]
    check: PlantedCheck | None = None


@dataclass(frozen=True, slots=True)
class _KeptLabels:
    """Labels that were computed in a block, by what they were computed from, each in a folder."""

    labels: dict[tuple[str, ...], LabelShards] = field(default_factory=dict)
    folders: list[ScratchFolder] = field(default_factory=list)


_KEPT: ContextVar[_KeptLabels | None] = ContextVar("kept_labels", default=None)


@contextmanager
def keep_labels() -> Iterator[None]:
    """Compute labels once in this block; inside another such block they are that one's."""
    if _KEPT.get() is not None:
        yield
        return
    kept = _KeptLabels()
    token = _KEPT.set(kept)
    try:
        yield
    finally:
        _KEPT.reset(token)
        for folder in kept.folders:
            folder.remove()


@contextmanager
def label_shards(run: Run, filters: Results, verifier: str) -> Iterator[LabelShards]:
    """Open what is said of the references of a finished run, or of a version with the attempts made for it.

    Where the recipe goes by votes it is computed here, from the same verdicts, and decides nothing.

    Args: ``filters`` are the results of the run's filters, ``verifier`` is whose verdicts are read.
    """
    folder = filters.problems.folder
    count = len(shard_counts(folder))
    if (stored := _stored_labels(run, verifier)) is not None:
        yield LabelShards(count, posterior_decides(stored), partial(read_shard, stored.folder, "labels"))
        return
    kept = _KEPT.get()
    if kept is None:
        with _computed(run, filters, verifier) as computed:
            yield computed
        return
    name = _computed_from(run, filters, verifier)
    if name not in kept.labels:
        kept.folders.append(scratch := ScratchFolder("labels"))
        with _computed(run, filters, verifier) as computed:
            kept.labels[name] = _in_files(computed, Path(scratch.path))
    yield kept.labels[name]


@contextmanager
def _computed(run: Run, filters: Results, verifier: str) -> Iterator[LabelShards]:
    """Open `label_shards` that are computed from the verdicts, each shard when it is read."""
    folder, others = filters.problems.folder, other_references(filters.get(NEAR_DEDUP))
    with weighing(run, _stored_verdicts(run, verifier), accepted_references(run), others) as weighed:

        def read(index: int) -> pl.DataFrame:
            return weighed.labels(read_shard(folder, "kept", index, ["id"])["id"])

        yield LabelShards(len(shard_counts(folder)), weighed.decides, read, weighed.check)


def _computed_from(run: Run, filters: Results, verifier: str) -> tuple[str, ...]:
    """Return all that `_computed` depends on: problems, references, verdicts, what people accepted, and settings."""
    recipe, near = run.recipe, filters.get(NEAR_DEDUP)
    read = [result.manifest.digest for result in (filters.problems, near) if result is not None]
    verdicts = _stored_verdicts(run, verifier)
    digests = [manifest.digest for folder in verdicts if (manifest := read_manifest(folder)) is not None]
    band = difficulty_stage(recipe, run.parts[-1]).band
    rule = f"{recipe.weighs_labels} {recipe.seed} {band.wrong_label_share} {WRONG_LABEL_VOTES}"
    return (recipe.labels.digest(), rule, *read, *map(str, verdicts), *digests, *accepted_references(run))


def _in_files(labels: LabelShards, folder: Path) -> LabelShards:
    """Write labels into a folder, a file for each shard, and return them as they are read from there."""

    def file(index: int) -> Path:
        return folder / f"{index:05}.parquet"

    def read(index: int) -> pl.DataFrame:
        return pl.read_parquet(file(index), glob=False)

    for index in range(labels.count):
        labels.read(index).write_parquet(file(index))
    return LabelShards(labels.count, labels.decides, read, labels.check)


def weighed_labels(run: Run, filters: Results, verifier: str, where: pl.Expr | None = None) -> WeighedLabels:
    """Return `label_shards` together: the labels that are wanted, all where ``where`` is absent."""
    with label_shards(run, filters, verifier) as shards:
        parts = (shards.read(index) for index in range(shards.count))
        wanted = [
            label_trust.LABEL_TRUST.to_frame(),
            *(part if where is None else part.filter(where) for part in parts),
        ]
        return WeighedLabels(pl.concat(wanted), shards.decides, shards.check)


def _stored_labels(run: Run, verifier: str) -> StageResult | None:
    """Return the finished stage that has the labels of a run; None where there is none, as for a refreshed version."""
    last = label_trust_of(run.parts[-1])
    if run.version_folder is not None or not last.enabled(run):
        return None
    return read_result(last, Run(run.folder, run.recipe, run.recipe_folder), verifier)


def _stored_verdicts(run: Run, verifier: str) -> list[Path]:
    """Return where a finished run has the verdicts of its stages, and those of attempts for its newest version."""
    root = Run(run.folder, run.recipe, run.recipe_folder)
    folders = [final_verdicts(root, part).folder_in(root, verifier) for part in run.parts]
    if run.version_folder is not None:
        folders.append(final_verdicts(run, run.parts[-1]).folder_in(run, verifier))
    return [folder for folder in folders if read_manifest(folder) is not None]


@dataclass(frozen=True, slots=True)
class PlantedLabels:
    """What the rule of a run finds of wrong references that were planted in its votes, all draws together.

    Args:
        rule: in words.
        hits: of ``planted``; ``others`` are accused besides, of ``problems`` labels.
    """

    rule: str
    planted: int
    hits: int
    others: int
    problems: int


def planted_labels(run: Run, filters: Results, verifier: str) -> PlantedLabels | None:
    """Return what the rule by which a finished run believes references finds of planted wrong ones.

    None where too few problems have votes (`curation.difficulty.label_check`).

    Args:
        filters: the results of the run's filters.
        verifier: whose verdicts are read.
    """
    settings, settled = run.recipe.labels, tuple(accepted_references(run))
    with opened_votes(_stored_verdicts(run, verifier), other_references(filters.get(NEAR_DEDUP))) as (votes, voters):
        band = None if settings.rule == "posterior" else difficulty_stage(run.recipe, run.parts[-1]).band
        check = check_by_planting(votes, voters, settings.drop_above, settled, run.recipe.seed, band)
    if check is None:
        return None
    by_posterior = settings.rule != "votes" and check.posterior_holds
    found = check.by_posterior if by_posterior else check.by_votes
    rule = "the answers of all policies" if by_posterior else "the votes of the last stage's policy"
    return PlantedLabels(rule, check.planted, found.hits, found.others, check.problems)


def deciding_labels(run: Run, results: Results, where: pl.Expr | None = None) -> pl.DataFrame | None:
    """Return the `LABEL_TRUST` rows by which references are not believed; None where votes decide.

    Args:
        where: those that are wanted; all where absent.
    """
    if not run.recipe.weighs_labels:
        return None
    weighed = weighed_labels(run, results, results.decisions[-1].folder.name, where)
    return weighed.labels if weighed.decides else None


@contextmanager
def deciding_shards(run: Run, results: Results) -> Iterator[LabelShards | None]:
    """Open the `label_shards` by which references are not believed; None where votes decide."""
    if not run.recipe.weighs_labels:
        yield None
        return
    with label_shards(run, results, results.decisions[-1].folder.name) as shards:
        yield shards if shards.decides else None
