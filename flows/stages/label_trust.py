"""The probability that a reference is wrong, from all policies' answers so far, where the recipe judges labels so.

The stage stands between the verdicts of a difficulty stage and its decisions; one model is learnt from the verdicts of
this and of earlier difficulty stages (`curation.difficulty.label_trust`), references of conflicting near duplicates and
what people accepted. It drops nothing; whether its probabilities decide, or votes, it finds out on references that it
plants, and notes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import polars as pl

from curation.config import LabelSettings
from curation.difficulty import label_trust
from curation.difficulty.early_stopping import WRONG_LABEL_VOTES
from curation.difficulty.label_check import PlantedCheck, accused_by_votes, check_by_planting, decided_by_votes
from curation.difficulty.label_votes import label_votes, source_votes
from curation.difficulty.vote_parts import VoteParts
from curation.records import VERDICT, DropReason
from curation.storage.scratch import ScratchFolder
from curation.storage.stages import Shard, read_optional_shard, read_shard, read_table
from flows.run.lookup import rows_of
from flows.run.progress import note, warn
from flows.run.run_folder import Run, difficulty_stage, verdicts_of_people
from flows.run.stage import Kind, Stage, StageResult, StageRun, shard_counts
from flows.stages.attempts import part_title
from flows.stages.near_dedup import NEAR_DEDUP
from flows.stages.questions import final_verdicts

_VOTED = ("problem", "policy", "index", "outcome", "answer", "answer_class", "method")
_VOTED_SCHEMA = pl.Schema({name: VERDICT[name] for name in _VOTED})

DECIDES = "posterior_decides"
"""Note of the stage, above 0 where its probabilities decide."""


def weigh_labels(job: StageRun) -> StageResult:
    """Learn who is to be believed, and weigh every reference."""
    run, part = job.run, job.stage.part
    parts = run.parts[: run.parts.index(part) + 1]
    verdicts = [job.results[final_verdicts(run, name)] for name in parts]
    near = job.results.get(NEAR_DEDUP)
    accepted = accepted_references(run)
    read = [job.problems, *verdicts, *([near] if near is not None else [])]
    version, rule = label_trust.VERSION, run.recipe.labels.rule
    settings = f"{run.recipe.seed} {run.recipe.labels.drop_above} {' '.join(accepted)}"
    if rule == "auto":
        band = difficulty_stage(run.recipe, part).band
        settings += f" {rule} {band.wrong_label_share} {WRONG_LABEL_VOTES}"
    folder = job.open(version, settings, *read, verifier=verdicts[-1].folder.name)
    if (result := job.finished(folder)) is not None:
        return result
    with weighing(run, [result.folder for result in verdicts], accepted, other_references(near)) as weighed:
        if (check := weighed.check) is not None:
            note(f"{job.stage.title}: {check.sentence}")
            if rule == "posterior" and not check.posterior_holds:
                warn(run.folder, job.stage.name, check.sentence)

        def work(index: int) -> Shard:
            frame = read_shard(job.problems.folder, "kept", index).select(problem="id")
            labels = frame.join(weighed.labels(frame["problem"]), on="problem", how="left", maintain_order="left")
            notes = {DECIDES: int(weighed.decides)}
            return Shard(frame.height, {"labels": labels}, kept_rows=frame.height, notes=notes)

        return job.shard_by_shard(folder, work)


@dataclass(frozen=True, slots=True)
class Weighing:
    """What was learnt from everyone's votes, by which any problem's reference is weighed.

    Args:
        model: None where nobody voted.
        voters: whose votes decide, where votes do and the posterior ranks; None where it decides.
    """

    votes: VoteParts
    model: label_trust.LabelModel | None
    settled: tuple[str, ...]
    drop_above: float
    decides: bool
    check: PlantedCheck | None = None
    voters: Sequence[str] | None = None

    def labels(self, problems: pl.Series) -> pl.DataFrame:
        """Return what is said of some problems' references (`LABEL_TRUST`); nothing where nobody voted."""
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
    """Learn what everyone's answers say of references, and whether that decides; votes lie in files until the end.

    By the rule `posterior`, where planted wrong references show that votes do better, those that votes accuse reach
    `drop_above`, and no other (`curation.difficulty.label_check`). By `auto` votes themselves decide then.

    Args:
        verdicts: the folders of each stage's verdicts.
        accepted: problems whose reference a person accepted.
        others: further references: problem, source, answer.
    """
    settings, seed, settled = run.recipe.labels, run.recipe.seed, tuple(accepted)
    by_order, drop_above = settings.rule == "posterior", settings.drop_above
    with opened_votes(verdicts, others) as (votes, voters):
        if votes.ids.is_empty():
            yield Weighing(votes, None, settled, drop_above, by_order)
            return
        names = votes.ids
        model = label_trust.fit_labels(votes.of(label_trust.drawn_problems(names, seed)), settled, seed)
        check = None
        if run.recipe.weighs_labels:
            band = None if by_order else difficulty_stage(run.recipe, run.parts[-1]).band
            check = check_by_planting(votes, voters, drop_above, settled, seed, band)
        holds = check is not None and check.posterior_holds
        deciding = voters if by_order and check is not None and not holds else None
        yield Weighing(votes, model, settled, drop_above, by_order or holds, check, deciding)


@contextmanager
def opened_votes(folders: Sequence[Path], others: pl.DataFrame | None) -> Iterator[tuple[VoteParts, list[str]]]:
    """Hold everyone's votes with their answers in files; with them come the policies of the last stage.

    Args:
        folders: of each stage's verdicts. others: further references, or none.
    """
    voters: set[str] = set()

    def parts() -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
        for part in verdict_parts(folders):
            voters.update(part[-1]["policy"].unique())
            votes, answers = label_votes(part)
            if others is not None and others.height:
                voted = others.join(votes.select("problem").unique(), on="problem", how="semi")
                votes = pl.concat([votes, source_votes(voted, answers)])
            yield votes, answers

    scratch = ScratchFolder("votes")
    try:
        votes = VoteParts(parts(), Path(scratch.path))
        yield votes, sorted(voters)
    finally:
        scratch.remove()


def verdict_parts(folders: Sequence[Path]) -> Iterator[list[pl.DataFrame]]:
    """Yield each stage's verdicts on the problems of a shard of the first stage; last, those on all other problems.

    One shard of each stage is in memory at a time; what a later stage has in other shards than the first is held.
    """
    if not folders:
        return
    first, *after = folders
    strayed = [_strayed_verdicts(first, folder) for folder in after]
    others = list(strayed)
    for index in range(len(shard_counts(first, "verdicts"))):
        frame = read_shard(first, "verdicts", index, _VOTED)
        own = frame.select("problem").unique()
        later = [
            pl.concat([_verdict_shard(folder, index), stray]) for folder, stray in zip(after, strayed, strict=True)
        ]
        others = [stray.join(own, on="problem", how="anti") for stray in others]
        yield [frame, *(table.join(own, on="problem", how="semi") for table in later)]
    yield [pl.DataFrame(schema=_VOTED_SCHEMA), *others]


def _verdict_shard(folder: Path, index: int) -> pl.DataFrame:
    """Return what votes are made from of one shard of a stage's verdicts; none where it has no such shard."""
    frame = read_optional_shard(folder, "verdicts", index, _VOTED)
    return pl.DataFrame(schema=_VOTED_SCHEMA) if frame is None else frame


def _strayed_verdicts(first: Path, later: Path) -> pl.DataFrame:
    """Return a later stage's verdicts on problems of which the first stage has none in the same shard."""
    strayed = [pl.DataFrame(schema=_VOTED_SCHEMA)]
    for index in range(len(shard_counts(later, "verdicts"))):
        here = read_optional_shard(first, "verdicts", index, ["problem"])
        frame = read_shard(later, "verdicts", index, _VOTED)
        strayed.append(frame if here is None else frame.join(here, on="problem", how="anti"))
    return pl.concat(strayed)


def other_references(near: StageResult | None) -> pl.DataFrame | None:
    """Return the references of near duplicates that conflict with the row that stayed; None without that filter."""
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


def accepted_references(run: Run) -> list[str]:
    """Return the problems whose reference a person accepted."""
    return sorted(name for name, verdict in verdicts_of_people(run).items() if verdict.answer is not None)


def posterior_decides(labels: StageResult) -> bool:
    """Return whether the probabilities of a finished stage decide which references are not believed."""
    return bool(labels.manifest.notes.get(DECIDES, 0))


def label_line(settings: LabelSettings, row: dict[str, object]) -> str:
    """Return what a problem's `LABEL_TRUST` row says, in one line."""
    probability = float(str(row["wrong_label"]))
    word = "dropped" if probability >= settings.drop_above else "queued" if probability >= settings.queue_above else ""
    return f"{'label':<10} {row['evidence']}{f' ({word})' if word else ''}"


@cache
def label_trust_of(part: str) -> Stage:
    """Return the stage that weighs the references by the answers of a difficulty stage and of those before it."""

    def is_enabled(run: Run) -> bool:
        return part in run.parts and run.recipe.weighs_labels

    def describe(run: Run) -> Iterator[str]:
        labels = run.recipe.labels
        if labels.rule == "auto":
            yield f"{part}: references leave by votes, or by everyone's answers, whichever finds planted ones better"
            return
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
