"""Estimate the probability that each reference is wrong, from all policies' answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import polars as pl

from curation.config import LabelSettings
from curation.difficulty import label_trust
from curation.difficulty.label_trust import PlantedCheck, accused_by_votes, check_by_planting, decided_by_votes
from curation.difficulty.label_votes import VoteParts, label_votes, source_votes
from curation.records import DropReason
from curation.storage.scratch import ScratchFolder
from curation.storage.stages import read_manifest, read_optional_shard, read_shard, read_table
from flows.run.progress import bar
from flows.run.run_folder import Run, accepted_references, difficulty_stage
from flows.run.stage import Results, StageResult, shard_counts
from flows.stages.attempts import VOTERS
from flows.stages.dedup import NEAR_DEDUP
from flows.stages.questions import final_verdicts

_VOTED = ("problem", "policy", "index", "outcome", "answer", "answer_class", "method")

DECIDES = "posterior_decides"
"""Note: above 0 if probabilities decide on references."""


def decisions_folder(part: str) -> str:
    """Return a pass's decisions folder, with subfolders by verifier."""
    return f"decisions/{part}"


@dataclass(frozen=True, slots=True)
class Weighing:
    """Weighs references by all votes.

    Args:
        model: None without votes.
        voters: whose votes decide instead of the posterior, or None.
    """

    votes: VoteParts
    model: label_trust.LabelModel | None
    settled: tuple[str, ...]
    drop_above: float
    decides: bool
    check: PlantedCheck | None = None
    voters: Sequence[str] | None = None

    def labels(self, problems: pl.Series) -> pl.DataFrame:
        """Return these problems' `LABEL_TRUST` rows; none without votes."""
        if self.model is None:
            return label_trust.LABEL_TRUST.to_frame()
        votes = self.votes.of(problems)
        labels = label_trust.label_posteriors(self.model, votes, problems, self.settled)
        if self.voters is not None:
            accused = accused_by_votes(votes, self.voters) - set(self.settled)
            labels = decided_by_votes(labels, accused, self.drop_above)
        return label_trust.described(labels, self.votes.answers_of(problems))


@contextmanager
def weighing(
    run: Run, verdicts: Sequence[Path], accepted: Sequence[str], others: pl.DataFrame | None
) -> Iterator[Weighing]:
    """Learn how all answers weigh references, and whether probabilities or votes decide.

    Args:
        accepted: problems with a reference that a person accepted.
        others: further references (problem, source, answer).
    """
    settings, seed, settled = run.recipe.labels, run.recipe.seed, tuple(accepted)
    by_order, drop_above = settings.rule == "posterior", settings.drop_above
    with opened_votes(verdicts, others) as (votes, voters):
        if votes.ids.is_empty():
            yield Weighing(votes, None, settled, drop_above, by_order)
            return
        names = votes.ids
        check = None
        with bar("Label trust", 1 + label_trust.DRAWS, is_part=True) as advance:
            model = label_trust.fit_labels(votes.of(label_trust.drawn_problems(names, seed)), settled, seed)
            advance(1)
            if run.recipe.weighs_labels:
                band = None if by_order else difficulty_stage(run.recipe, run.parts[-1]).band
                check = check_by_planting(votes, voters, drop_above, settled, seed, band, model, advance)
        holds = check is not None and check.posterior_holds
        deciding = voters if by_order and check is not None and not holds else None
        yield Weighing(votes, model, settled, drop_above, by_order or holds, check, deciding)


@contextmanager
def opened_votes(folders: Sequence[Path], others: pl.DataFrame | None) -> Iterator[tuple[VoteParts, list[str]]]:
    """Yield all votes, in files, and the last stage's policies."""
    voters: set[str] = set()

    def parts() -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
        for part in _verdict_parts(folders):
            voters.update(part[-1]["policy"].unique())
            votes, answers = label_votes(part)
            if others is not None and others.height:
                voted = others.join(votes.select("problem").unique(), on="problem", how="semi")
                votes = pl.concat([votes, source_votes(voted, answers)])
            yield votes, answers

    with ScratchFolder("votes") as place:
        votes = VoteParts(parts(), place)
        yield votes, sorted(voters)


def _verdict_parts(folders: Sequence[Path]) -> Iterator[list[pl.DataFrame]]:
    """Yield all stages' verdicts by shard; their shards have the same numbers."""
    for index in range(len(shard_counts(folders[0], "verdicts")) if folders else 0):
        yield [_by_voters(folder, index, read_shard(folder, "verdicts", index, _VOTED)) for folder in folders]


def _by_voters(folder: Path, index: int, verdicts: pl.DataFrame) -> pl.DataFrame:
    """Replace policies of a shard's verdicts by the models that a file names."""
    attempts = folder.parents[2] / "verdicts" / folder.parent.name / folder.name
    tables = (read_optional_shard(place, VOTERS, index) for place in (folder, attempts))
    voters = next((table for table in tables if table is not None), None)
    if voters is None:
        return verdicts
    named = verdicts.join(voters, on=["problem", "index"], how="left", maintain_order="left")
    return named.with_columns(policy=pl.coalesce("voter", "policy")).drop("voter")


def other_references(near: StageResult | None) -> pl.DataFrame | None:
    """Return near duplicates' references that conflict with the kept row's, if any."""
    if near is None:
        return None
    in_conflict = pl.col("reason") == DropReason.CONFLICTING_ANSWERS.value
    conflicts = read_table(near.folder, "dropped", ["source", "row", "answer", "reason"], in_conflict)
    if not conflicts.width:
        return None
    is_meant = pl.col("row").is_in(conflicts["row"].unique().implode())
    members = read_table(near.folder, "members", ["source", "row", "kept_id"], is_meant)
    joined = conflicts.join(members, on=["source", "row"], how="inner", maintain_order="left")
    return joined.filter(pl.col("answer").is_not_null()).select(problem="kept_id", source="source", answer="answer")


def label_line(settings: LabelSettings, row: dict[str, object]) -> str:
    """Return a problem's `LABEL_TRUST` row as one line."""
    probability = float(str(row["wrong_label"]))
    word = "dropped" if probability >= settings.drop_above else "queued" if probability >= settings.queue_above else ""
    return f"{'label':<10} {row['evidence']}{f' ({word})' if word else ''}"


@dataclass(frozen=True, slots=True)
class LabelShards:
    """The trust in a finished run's references, by shard.

    Args:
        decides: whether it decides on references.
        read: returns a shard's `LABEL_TRUST` rows.
    """

    count: int
    decides: bool
    read: Callable[[int], pl.DataFrame]

    def table(self, where: pl.Expr) -> pl.DataFrame:
        """Return the rows of all shards that satisfy ``where``."""
        return pl.concat([label_trust.LABEL_TRUST.to_frame(), *(self.read(i).filter(where) for i in range(self.count))])


_Kept = tuple[dict[tuple[str, ...], LabelShards], ExitStack]
_KEPT: ContextVar[_Kept | None] = ContextVar("kept_labels", default=None)


@contextmanager
def keep_labels() -> Iterator[_Kept]:
    """Compute labels once within the outermost such block."""
    if (outer := _KEPT.get()) is not None:
        yield outer
        return
    with ExitStack() as folders:
        kept: _Kept = ({}, folders)
        token = _KEPT.set(kept)
        folders.callback(_KEPT.reset, token)
        yield kept


@contextmanager
def label_shards(run: Run, filters: Results, verifier: str) -> Iterator[LabelShards]:
    """Open the trust in a finished run's or version's references.

    If the recipe decides by votes, it is computed here and decides nothing.
    """
    if (stored := _stored_labels(run, verifier)) is not None:
        manifest = read_manifest(stored)
        decides = manifest is not None and bool(manifest.notes.get(DECIDES, 0))
        yield LabelShards(len(shard_counts(filters.problems.folder)), decides, partial(read_shard, stored, "labels"))
        return
    with keep_labels() as (computed, folders):
        name = _computed_from(run, filters, verifier)
        if name not in computed:
            place = folders.enter_context(ScratchFolder("labels"))
            computed[name] = _computed(run, filters, verifier, place)
        yield computed[name]


def _computed(run: Run, filters: Results, verifier: str, into: Path) -> LabelShards:
    folder, others = filters.problems.folder, other_references(filters.get(NEAR_DEDUP))
    count = len(shard_counts(folder))
    with weighing(run, stored_verdicts(run, verifier), accepted_references(run), others) as weighed:
        for index in range(count):
            labels = weighed.labels(read_shard(folder, "kept", index, ["id"])["id"])
            labels.write_parquet(into / f"{index:05}.parquet")
    return LabelShards(count, weighed.decides, lambda index: pl.read_parquet(into / f"{index:05}.parquet", glob=False))


def _computed_from(run: Run, filters: Results, verifier: str) -> tuple[str, ...]:
    read = [result.manifest for result in (filters.problems, filters.get(NEAR_DEDUP)) if result is not None]
    folders = stored_verdicts(run, verifier)
    read += [manifest for folder in folders if (manifest := read_manifest(folder)) is not None]
    band = difficulty_stage(run.recipe, run.parts[-1]).band
    rule = f"{run.recipe.labels.digest()} {run.recipe.weighs_labels} {run.recipe.seed} {band.wrong_label_share}"
    return (rule, *(manifest.digest for manifest in read), *map(str, folders), *accepted_references(run))


def _stored_labels(run: Run, verifier: str) -> Path | None:
    """Return the folder of a run's stored labels; None for a refreshed version."""
    folder = run.folder / decisions_folder(run.parts[-1]) / verifier
    is_stored = run.version_folder is None and run.recipe.weighs_labels and (folder / "labels").is_dir()
    return folder if is_stored and read_manifest(folder) is not None else None


def stored_verdicts(run: Run, verifier: str) -> list[Path]:
    """Return the folders of a run's deciding verdicts, by stage."""
    root = Run(run.folder, run.recipe, run.recipe_folder)
    folders = [final_verdicts(root, part).folder_in(root, verifier) for part in run.parts]
    if run.version_folder is not None:
        folders.append(final_verdicts(run, run.parts[-1]).folder_in(run, verifier))
    return [folder for folder in folders if read_manifest(folder) is not None]


@contextmanager
def deciding_shards(run: Run, results: Results) -> Iterator[LabelShards | None]:
    """Open the deciding `label_shards`; None if votes decide."""
    if not run.recipe.weighs_labels:
        yield None
        return
    with label_shards(run, results, results.decisions[-1].folder.name) as shards:
        yield shards if shards.decides else None
