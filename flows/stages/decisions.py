"""Decide on problems by pass rates, and on references by all answers.

Planted wrong references show whether label probabilities or votes decide.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import polars as pl

from curation.config import DifficultyStage
from curation.difficulty import early_stopping, label_trust, pass_rates
from curation.difficulty.early_stopping import WRONG_LABEL_VOTES
from curation.difficulty.label_trust import suspect_labels
from curation.difficulty.pass_rates import failed_verdicts, hold_refused, hold_reserved
from curation.publish import review
from curation.storage.stages import Shard, read_optional_shard, read_shard
from flows.run.lookup import rows_of
from flows.run.progress import note, warn
from flows.run.run_folder import Run, difficulty_stage, verdicts_of_people
from flows.run.sampling_session import REFUSED_TABLE
from flows.run.stage import Kind, Stage, StageResult, StageRun
from flows.stages.attempts import attempt_key, attempts_of, part_title, rule_of_shard, stopping_digest, stopping_rule
from flows.stages.base import split_rows
from flows.stages.labels import (
    DECIDES,
    Weighing,
    accepted_references,
    decisions_folder,
    label_line,
    other_references,
    weighing,
)
from flows.stages.near_dedup import NEAR_DEDUP
from flows.stages.questions import doubtful_verdicts_of, final_verdicts

_LEAST_DOUBT = 1e-9
"""Any error rate above 0 makes `pass_rates.decide` foresee decisions."""


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
    if not run.recipe.weighs_labels:
        return job.shard_by_shard(folder, _Deciding(job, verdicts[-1].folder, sampled.folder, None).shard)
    folders = [result.folder for result in verdicts]
    with weighing(run, folders, trusted, other_references(near)) as weighed:
        if (check := weighed.check) is not None:
            note(f"{job.stage.title}: {check.sentence}")
            if run.recipe.labels.rule == "posterior" and not check.posterior_holds:
                warn(run.folder, job.stage.name, check.sentence)
        return job.shard_by_shard(folder, _Deciding(job, verdicts[-1].folder, sampled.folder, weighed).shard)


class _Deciding:
    def __init__(self, job: StageRun, judged: Path, sampled: Path, weighed: Weighing | None) -> None:
        self._job, self._judged, self._sampled, self._weighed = job, judged, sampled, weighed
        self._settings = difficulty_stage(job.run.recipe, job.stage.part)
        self._base = stopping_rule(self._settings)
        self._policy = attempt_key(sampled).policy
        self._reviews = verdicts_of_people(job.run)

    def shard(self, index: int) -> Shard:
        part, labels = self._job.stage.part, self._job.recipe.labels
        frame = read_shard(self._job.problems.folder, "kept", index)
        judged = read_shard(self._judged, "verdicts", index)
        stopped = read_shard(self._judged, "stopped", index)["problem"]
        rule = rule_of_shard(self._base, self._sampled, index)
        rates = pass_rates.pass_rates(frame["id"], judged, self._policy, rule, stopped)
        failures = failed_verdicts(pass_rates.counted_verdicts(judged, rule))
        decides = self._weighed is not None and self._weighed.decides
        by_votes = not decides or labels.rule == "posterior"  # which switches votes off in the band
        reviews, settings = self._reviews, self._settings
        decisions = decide_with_reviews(rates, settings, part, reviews, failures, rule, by_votes=by_votes)
        tables, notes = {}, {}
        if self._weighed is not None:
            names = frame.select(problem="id")
            trust = self._weighed.labels(names["problem"])
            trust = tables["labels"] = names.join(trust, on="problem", how="left", maintain_order="left")
            notes[DECIDES] = int(decides)
            if decides:
                decisions = suspect_labels(decisions, trust, labels.drop_above)
        refused = read_optional_shard(self._sampled, REFUSED_TABLE, index)
        if refused is not None:
            decisions = hold_refused(decisions, refused)
        measured = self._job.run.without_reserve(frame)["id"]
        if len(measured) < frame.height:
            decisions = hold_reserved(decisions, measured)
        kept, dropped = split_rows(frame, part, decisions["reason"].to_list(), decisions["evidence"].to_list())
        tables |= {"kept": kept, "dropped": dropped, "decisions": decisions}
        return Shard(frame.height, tables, notes=notes)


def decide_with_reviews(
    rates: pl.DataFrame,
    settings: DifficultyStage,
    part: str,
    reviews: review.ReviewVerdicts,
    failures: pl.DataFrame,
    rule: early_stopping.StoppingRule,
    *,
    by_votes: bool = True,
) -> pl.DataFrame:
    """Return `DECISION` rows that suspect no label accepted by a person.

    Args:
        failures: `curation.difficulty.pass_rates.failed_verdicts`.
        rule: by which attempts stopped.
        by_votes: the band's votes decide; else no label is suspected here.
    """
    decisions = pass_rates.decide(rates, settings.band, part, rule, failures)
    if by_votes and all(verdict.answer is None for verdict in reviews.values()):
        return decisions
    band = settings.band.model_copy(update={"wrong_label_share": 1.0})
    error_rate = max(rule.error_rate, _LEAST_DOUBT) if rule.early_stopping else 0.0
    foreseeing = rule.given(rule.priors, band, error_rate)
    unsuspecting = pass_rates.decide(rates, band, part, foreseeing, failures)
    if not by_votes:
        return unsuspecting
    return review.keep_accepted_labels(decisions, unsuspecting, reviews)


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
        name=f"{part}.decisions",
        title=f"{part_title(part)}: difficulty",
        folder=decisions_folder(part),
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
