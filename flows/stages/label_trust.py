"""The probability that a reference is wrong, from all policies' answers so far, where the recipe judges labels so.

The stage stands between the verdicts of a difficulty stage and its decisions; one model is learnt from the verdicts of
this and of earlier difficulty stages (`curation.difficulty.label_trust`), references of conflicting near duplicates and
what people accepted. It drops nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import polars as pl

from curation.config import LabelSettings
from curation.difficulty import label_trust
from curation.difficulty.label_check import PlantedCheck, accused_by_votes, check_by_planting, decided_by_votes
from curation.difficulty.label_votes import label_votes, source_votes
from curation.records import DropReason
from curation.storage.stages import Shard, read_manifest, read_shard, read_table
from flows.run.lookup import rows_of
from flows.run.pipeline import read_result
from flows.run.progress import note, warn
from flows.run.run_folder import Run, verdicts_of_people
from flows.run.stage import Kind, Results, Stage, StageResult, StageRun
from flows.stages.attempts import part_title
from flows.stages.llm_judge import final_verdicts
from flows.stages.near_dedup import NEAR_DEDUP


def weigh_labels(job: StageRun) -> StageResult:
    """Learn who is to be believed, and weigh every reference."""
    run, part = job.run, job.stage.part
    parts = run.parts[: run.parts.index(part) + 1]
    verdicts = [job.results[final_verdicts(run, name)] for name in parts]
    near = job.results.get(NEAR_DEDUP)
    reviews = verdicts_of_people(run)
    accepted = sorted(name for name, verdict in reviews.items() if verdict.answer is not None)
    read = [job.problems, *verdicts, *([near] if near is not None else [])]
    version, settings = label_trust.VERSION, f"{run.recipe.seed} {run.recipe.labels.drop_above} {' '.join(accepted)}"
    folder = job.open(version, settings, *read, verifier=verdicts[-1].folder.name)
    if (result := job.finished(folder)) is not None:
        return result
    frames = [read_table(result.folder, "verdicts") for result in verdicts]
    names = read_table(job.problems.folder, "kept", ["id"])["id"]
    table, check = trust_labels(
        frames, names, accepted, run.recipe.seed, other_references(near), run.recipe.labels.drop_above
    )
    if check is not None:
        note(f"{job.stage.title}: {check.sentence}")
        if not check.posterior_holds:
            warn(run.folder, job.stage.name, check.sentence)

    def work(index: int) -> Shard:
        frame = read_shard(job.problems.folder, "kept", index).select(problem="id")
        labels = frame.join(table, on="problem", how="left", maintain_order="left")
        return Shard(frame.height, {"labels": labels}, kept_rows=frame.height)

    return job.shard_by_shard(folder, work)


def trust_labels(
    verdicts: Iterable[pl.DataFrame],
    problems: pl.Series,
    accepted: list[str],
    seed: int,
    others: pl.DataFrame | None = None,
    drop_above: float | None = None,
) -> tuple[pl.DataFrame, PlantedCheck | None]:
    """Return `curation.difficulty.label_trust.LABEL_TRUST` rows of the problems, and whether their rule was checked.

    Where planted wrong references show that votes do better, those that votes accuse reach ``drop_above``, and no other
    (`curation.difficulty.label_check`).

    Args:
        verdicts: `VERDICT` rows of each stage.
        accepted: problems whose reference a person accepted.
        seed: of the draw of problems that reliabilities are learnt from.
        others: further references: problem, source, answer.
        drop_above: from which probability references are dropped; None: nothing is decided by these rows.
    """
    frames = list(verdicts)
    votes, answers = label_votes(frames)
    if others is not None and others.height:
        voted = others.join(votes.select("problem").unique(), on="problem", how="semi")
        votes = pl.concat([votes, source_votes(voted, answers)])
    if votes.is_empty():
        return label_trust.LABEL_TRUST.to_frame(), None
    settled = tuple(accepted)
    model = label_trust.fit_labels(votes, settled, seed)
    labels, check = label_trust.label_posteriors(model, votes, problems, settled), None
    if drop_above is not None:
        voters = frames[-1]["policy"].unique().to_list()
        check = check_by_planting(votes, voters, drop_above, settled, seed)
        if check is not None and not check.posterior_holds:
            accused = accused_by_votes(votes, voters) - set(settled)
            labels = decided_by_votes(labels, accused, drop_above)
    return label_trust.described(labels, answers), check


def other_references(near: StageResult | None) -> pl.DataFrame | None:
    """Return the references of near duplicates that conflict with the row that stayed; None without that filter."""
    if near is None:
        return None
    dropped = read_table(near.folder, "dropped")
    if not dropped.width:
        return None
    conflicts = dropped.filter(pl.col("reason") == DropReason.CONFLICTING_ANSWERS.value)
    members = read_table(near.folder, "members").select("source", "row", "kept_id")
    joined = conflicts.join(members, on=["source", "row"], how="inner", maintain_order="left")
    return joined.filter(pl.col("answer").is_not_null()).select(problem="kept_id", source="source", answer="answer")


def current_labels(run: Run, filters: Results, verifier: str) -> pl.DataFrame:
    """Return the `LABEL_TRUST` rows of a finished run, or of a refreshed version with the attempts made for it.

    Where the recipe goes by votes they are computed here, from the same verdicts.

    Args:
        filters: the results of the run's filters.
        verifier: whose verdicts are read.
    """
    root = Run(run.folder, run.recipe, run.recipe_folder)
    last = label_trust_of(run.parts[-1])
    if run.version_folder is None and last.enabled(run) and (stored := read_result(last, root, verifier)) is not None:
        return read_table(stored.folder, "labels")
    folders = [final_verdicts(root, part).folder_in(root, verifier) for part in run.parts]
    if run.version_folder is not None:
        folders.append(final_verdicts(run, run.parts[-1]).folder_in(run, verifier))
    frames = [read_table(folder, "verdicts") for folder in folders if read_manifest(folder) is not None]
    reviews = verdicts_of_people(run)
    accepted = sorted(name for name, verdict in reviews.items() if verdict.answer is not None)
    problems = read_table(filters.problems.folder, "kept", ["id"])["id"]
    drop_above = run.recipe.labels.drop_above if run.recipe.labels.rule == "posterior" else None
    near = other_references(filters.get(NEAR_DEDUP))
    return trust_labels(frames, problems, accepted, run.recipe.seed, near, drop_above)[0]


def label_line(settings: LabelSettings, row: dict[str, object]) -> str:
    """Return what a problem's `LABEL_TRUST` row says, in one line."""
    probability = float(str(row["wrong_label"]))
    word = "dropped" if probability >= settings.drop_above else "queued" if probability >= settings.queue_above else ""
    return f"{'label':<10} {row['evidence']}{f' ({word})' if word else ''}"


@cache
def label_trust_of(part: str) -> Stage:
    """Return the stage that weighs the references by the answers of a difficulty stage and of those before it."""

    def is_enabled(run: Run) -> bool:
        return part in run.parts and run.recipe.labels.rule == "posterior"

    def describe(run: Run) -> Iterator[str]:
        labels = run.recipe.labels
        yield (
            f"{part}: references wrong with a probability of {labels.drop_above:g} leave, from "
            f"{labels.queue_above:g} on they wait for review"
        )

    def explain(run: Run, folder: Path, problem: str) -> Iterator[str]:
        for row in rows_of(folder, "labels", problem, "problem").iter_rows(named=True):
            yield label_line(run.recipe.labels, row)

    return Stage(
        name=f"{part}.label_trust",
        title=f"{part_title(part)}: label trust",
        folder=f"labels/{part}",
        work=weigh_labels,
        kind=Kind.MEASURE,
        enabled=is_enabled,
        describe=describe,
        explain=explain,
        by_verifier=True,
        part=part,
        task="label trust",
    )
