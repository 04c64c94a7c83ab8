"""Decide on problems by pass rates, and on references by all answers.

Planted wrong references show whether label probabilities or votes decide.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import polars as pl

from curation.difficulty import early_stopping, label_trust, pass_rates
from curation.difficulty.early_stopping import WRONG_LABEL_VOTES
from curation.difficulty.label_trust import (
    PlantedCheck,
    accused_by_votes,
    check_by_planting,
    decided_by_votes,
    suspect_labels,
)
from curation.difficulty.label_votes import VoteParts, label_votes, source_votes
from curation.difficulty.pass_rates import failed_verdicts, hold_refused, hold_reserved
from curation.difficulty.priors import as_priors
from curation.publish import review
from curation.records import DropReason
from curation.storage.scratch import ScratchFolder
from curation.storage.stages import (
    Shard,
    StageFolder,
    compact,
    read_manifest,
    read_optional_shard,
    read_shard,
    read_table,
)
from flows.run.progress import bar, note, warn
from flows.run.run_folder import Run, accepted_references, difficulty_stage, verdicts_of_people
from flows.run.sampling_session import REFUSED_TABLE, read_priors
from flows.run.stage import Kind, Results, Stage, StageResult, StageRun, rows_of, shard_counts, split_rows
from flows.stages.attempts import VOTERS, attempt_key, attempts_of, part_title, stopping_digest, stopping_rule
from flows.stages.dedup import NEAR_DEDUP
from flows.stages.questions import doubtful_verdicts_of, final_verdicts

_VOTED = ("problem", "policy", "index", "outcome", "answer", "answer_class", "method")

DECIDES = "posterior_decides"  # note: above 0 if probabilities decide on references


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
    check: PlantedCheck | None
    voters: Sequence[str] | None

    def labels(self, problems: pl.Series) -> pl.DataFrame:
        """Return these problems' `LABEL_TRUST` rows; none without votes."""
        if self.model is None:
            return label_trust.LABEL_TRUST.to_frame()
        votes = self.votes.of(problems)
        labels = label_trust.label_posteriors(self.model, votes, problems, self.settled)
        if self.voters is not None:
            accused = accused_by_votes(votes, self.voters) - set(self.settled)
            labels = decided_by_votes(labels, accused, self.drop_above)
        is_settled = pl.col("problem").is_in(list(self.settled))
        settled = pl.when(is_settled).then(pl.lit("a person accepted this reference")).otherwise("evidence")
        return label_trust.described(labels, self.votes.answers_of(problems)).with_columns(evidence=settled)


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
        model: label_trust.LabelModel | None = None
        check: PlantedCheck | None = None
        if not votes.ids.is_empty():
            with bar("Label trust", 1 + label_trust.DRAWS, is_part=True) as advance:
                drawn = label_trust.drawn_problems(votes.ids, seed)
                model = label_trust.fit_labels(votes.of(drawn), settled, seed)
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
        for index in range(len(shard_counts(folders[0], "verdicts")) if folders else 0):  # alike in all stages
            part = [_by_voters(folder, index, read_shard(folder, "verdicts", index, _VOTED)) for folder in folders]
            voters.update(part[-1]["policy"].unique())
            votes, answers = label_votes(part)
            if others is not None and others.height:
                voted = others.join(votes.select("problem").unique(), on="problem", how="semi")
                votes = pl.concat([votes, source_votes(voted, answers)])
            yield votes, answers

    with ScratchFolder("votes") as place:
        votes = VoteParts(parts(), place)
        yield votes, sorted(voters)


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


@dataclass(frozen=True, slots=True)
class LabelShards:
    """The trust in a finished run's references, by shard; ``decides`` is whether it decides on them."""

    folder: Path
    count: int
    decides: bool

    def read(self, index: int) -> pl.DataFrame:
        """Return a shard's `LABEL_TRUST` rows."""
        return read_shard(self.folder, "labels", index)

    def table(self, where: pl.Expr) -> pl.DataFrame:
        """Return the rows of all shards that satisfy ``where``."""
        parts = (compact(self.read(index).filter(where)) for index in range(self.count))
        return pl.concat([label_trust.LABEL_TRUST.to_frame(), *parts])


def label_shards(run: Run, filters: Results, verifier: str) -> LabelShards:
    """Return the trust in a finished run's or version's references.

    A refreshed version has its own stage folder for it. So has a run by votes, where it decides nothing.
    """
    decided = decisions_of(run.parts[-1]).folder_in(run, verifier)
    is_stored = run.version_folder is None and run.recipe.weighs_labels and (decided / "labels").is_dir()
    if is_stored and (manifest := read_manifest(decided)) is not None:
        return LabelShards(decided, manifest.shards, bool(manifest.notes.get(DECIDES, 0)))
    problems, near, accepted = filters.problems, filters.get(NEAR_DEDUP), accepted_references(run)
    verdicts = stored_verdicts(run, verifier)
    band = difficulty_stage(run.recipe, run.parts[-1]).band
    rule = f"{run.recipe.labels.digest()} {run.recipe.weighs_labels} {run.recipe.seed} {band.wrong_label_share}"
    read = {result.name: result.manifest.digest for result in (problems, near) if result is not None}
    read |= {str(place.relative_to(run.folder)): found.digest for place in verdicts if (found := read_manifest(place))}
    place = (run.version_folder or run.folder) / "labels" / verifier
    folder = StageFolder(place, "labels", label_trust.VERSION, f"{rule} {accepted}", read)
    if (manifest := folder.manifest()) is None:
        folder.prepare()
        with weighing(run, verdicts, accepted, other_references(near)) as weighed:
            for index in range(problems.manifest.shards):
                labels = weighed.labels(read_shard(problems.folder, "kept", index, ["id"])["id"])
                notes = {DECIDES: int(weighed.decides)}
                folder.write(index, Shard(labels.height, {"labels": labels}, labels.height, notes))
        manifest = folder.close(problems.manifest.shards)
    return LabelShards(place, manifest.shards, bool(manifest.notes.get(DECIDES, 0)))


def stored_verdicts(run: Run, verifier: str) -> list[Path]:
    """Return the folders of a run's deciding verdicts, by stage."""
    root = Run(run.folder, run.recipe, run.recipe_folder)
    folders = [final_verdicts(root, part).folder_in(root, verifier) for part in run.parts]
    if run.version_folder is not None:
        folders.append(final_verdicts(run, run.parts[-1]).folder_in(run, verifier))
    return [folder for folder in folders if read_manifest(folder) is not None]


def deciding_shards(run: Run, results: Results) -> LabelShards | None:
    """Return the deciding `label_shards`; None if votes decide."""
    if not run.recipe.weighs_labels:
        return None
    shards = label_shards(run, results, results.decisions[-1].folder.name)
    return shards if shards.decides else None


_LEAST_DOUBT = 1e-9  # any error rate above 0 makes `pass_rates.decide` foresee decisions


def decide_difficulty(job: StageRun) -> StageResult:
    """Decide on problems by pass rates, and on references by all answers."""
    run, part = job.run, job.stage.part
    verdicts = [job.results[final_verdicts(run, name)] for name in run.parts[: run.parts.index(part) + 1]]
    sampled, near = job.results[attempts_of(part)], job.results.get(NEAR_DEDUP)
    settings = difficulty_stage(run.recipe, part)
    trusted = accepted_references(run)
    settings_text = f"{settings.band.digest()} {stopping_digest(settings)} {run.recipe.labels.rule} {' '.join(trusted)}"
    version = f"{pass_rates.VERSION} {early_stopping.VERSION}"
    read = [job.problems, verdicts[-1]]
    if run.recipe.weighs_labels:
        version += f" {label_trust.VERSION}"
        settings_text += f" {run.recipe.seed} {run.recipe.labels.drop_above} {WRONG_LABEL_VOTES}"
        read += [*verdicts[:-1], *([near] if near is not None else [])]
    if sampled is not verdicts[-1]:
        read.append(sampled)
    folder = job.open(version, settings_text, *read, verifier=verdicts[-1].folder.name)
    if (result := job.finished(folder)) is not None:
        return result
    decide = partial(_decide_shard, job, verdicts_of_people(job.run), verdicts[-1].folder, sampled.folder)
    if not run.recipe.weighs_labels:
        return job.shard_by_shard(folder, partial(decide, None))
    folders = [result.folder for result in verdicts]
    with weighing(run, folders, trusted, other_references(near)) as weighed:
        if (check := weighed.check) is not None:
            note(f"{job.stage.title}: {check.sentence}")
            if run.recipe.labels.rule == "posterior" and not check.posterior_holds:
                warn(run.folder, job.stage.name, check.sentence)
        return job.shard_by_shard(folder, partial(decide, weighed))


def _decide_shard(
    job: StageRun, reviews: review.ReviewVerdicts, judged: Path, sampled: Path, weighed: Weighing | None, index: int
) -> Shard:
    run, part = job.run, job.stage.part
    frame = read_shard(job.problems.folder, "kept", index)
    tables: dict[str, pl.DataFrame] = {}
    notes: dict[str, int] = {}
    accusing: pl.DataFrame | None = None
    if weighed is not None:
        names = frame.select(problem="id")
        trust = names.join(weighed.labels(names["problem"]), on="problem", how="left", maintain_order="left")
        tables["labels"], notes[DECIDES] = trust, int(weighed.decides)
        accusing = trust if weighed.decides else None
    shard = JudgedShard.read(run, part, judged, sampled, index, frame["id"], attempt_key(sampled).policy)
    decisions = shard.decide(run, part, accusing, reviews)
    refused = read_optional_shard(sampled, REFUSED_TABLE, index)
    if refused is not None:
        decisions = hold_refused(decisions, refused)
    measured = run.without_reserve(frame)["id"]
    if len(measured) < frame.height:
        decisions = hold_reserved(decisions, measured)
    kept, dropped = split_rows(frame, part, decisions["reason"].to_list(), decisions["evidence"].to_list())
    return Shard(frame.height, {**tables, "kept": kept, "dropped": dropped, "decisions": decisions}, notes=notes)


@dataclass(frozen=True, slots=True)
class JudgedShard:
    """A shard's pass rates and verdicts; ``rule`` is the one that stopped its attempts."""

    rates: pl.DataFrame
    verdicts: pl.DataFrame
    rule: early_stopping.StoppingRule

    @classmethod
    def read(
        cls, run: Run, part: str, judged: Path, sampled: Path, index: int, problems: pl.Series, policy: str
    ) -> JudgedShard:
        """Read what a policy's attempts show of a shard's problems.

        Args:
            judged, sampled: folders of the deciding verdicts, and of the attempts.
        """
        verdicts, stopped = read_shard(judged, "verdicts", index), read_shard(judged, "stopped", index)["problem"]
        rule, priors = stopping_rule(difficulty_stage(run.recipe, part)), read_priors(sampled, index)
        rule = rule if priors is None else rule.given(as_priors(priors))
        return cls(pass_rates.pass_rates(problems, verdicts, policy, rule, stopped), verdicts, rule)

    def decide(
        self,
        run: Run,
        part: str,
        trust: pl.DataFrame | None,
        reviews: review.ReviewVerdicts,
        *,
        accuses: bool = True,
    ) -> pl.DataFrame:
        """Return `DECISION` rows that suspect no label accepted by a person.

        Args:
            trust: `LABEL_TRUST` rows if they decide on references, else the band's votes do.
            reviews: people's verdicts.
            accuses: whether a label may be suspected.
        """
        by_votes = accuses and (trust is None or run.recipe.labels.rule == "posterior")  # which has none in the band
        band, rule = difficulty_stage(run.recipe, part).band, self.rule
        failures = failed_verdicts(pass_rates.counted_verdicts(self.verdicts, rule))
        decisions = pass_rates.decide(self.rates, band, part, rule, failures)
        if not by_votes or any(verdict.answer is not None for verdict in reviews.values()):
            band = band.model_copy(update={"wrong_label_share": 1.0})
            error_rate = max(rule.error_rate, _LEAST_DOUBT) if rule.early_stopping else 0.0
            foreseeing = rule.given(rule.priors, band, error_rate)
            unsuspecting = pass_rates.decide(self.rates, band, part, foreseeing, failures)
            decisions = review.keep_accepted_labels(decisions, unsuspecting, reviews) if by_votes else unsuspecting
        if trust is None or not accuses:
            return decisions
        trusted = trust.join(decisions, on="problem", how="semi", maintain_order="left")
        return suspect_labels(decisions, trusted, run.recipe.labels.drop_above)


@cache
def decisions_of(part: str) -> Stage:
    """Return a difficulty stage's decisions stage."""

    def is_enabled(run: Run) -> bool:
        return part in run.parts

    def describe(run: Run) -> Iterator[str]:
        labels = run.recipe.labels
        if not run.recipe.weighs_labels:
            return
        if labels.rule == "auto":
            yield f"{part}: wrong references by votes or by a model of all attempts, whichever finds more planted ones"
            return
        yield (
            f"{part}: references that are wrong with a probability of {labels.drop_above:g} are dropped; from "
            f"{labels.queue_above:g} on they wait for review"
        )

    def explain(run: Run, folder: Path, problem: str) -> Iterator[str]:
        manifest = read_manifest(folder)
        decides = manifest is not None and manifest.notes.get(DECIDES, 0) > 0
        for row in rows_of(folder, "labels", problem, "problem").iter_rows(named=True):
            wrong, labels = float(row["wrong_label"]), run.recipe.labels
            word = " (dropped)" if wrong >= labels.drop_above else " (queued)" if wrong >= labels.queue_above else ""
            yield f"{'label':<10} {row['evidence']}{word if decides else ' (votes decide, not this probability)'}"

    return Stage(
        name=f"{part}.decisions",
        title=f"{part_title(part)}: difficulty",
        folder=f"decisions/{part}",
        work=decide_difficulty,
        kind=Kind.DECISION,
        enabled=is_enabled,
        describe=describe,
        explain=explain,
        by_verifier=True,
        part=part,
    )


def difficulty(part: str) -> tuple[Stage, ...]:
    """Return a pass's stages: attempts, optional votes on verdicts, decisions."""
    return attempts_of(part), doubtful_verdicts_of(part), decisions_of(part)
