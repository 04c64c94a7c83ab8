"""The decisions of a difficulty stage: pass rates, and what they decide.

Both difficulty stages are made by one template, `decisions_of`.
"""

from __future__ import annotations

from functools import cache

import polars as pl

from curation.config import DifficultyStage
from curation.difficulty import early_stopping, pass_rates
from curation.difficulty.failed_verdicts import failed_verdicts
from curation.difficulty.label_trust import suspect_labels
from curation.difficulty.refusals import hold_refused
from curation.publish import review
from curation.storage.stages import Shard, read_optional_shard, read_shard
from flows.run import retries
from flows.run.run_folder import Run, difficulty_stage, verdicts_of_people
from flows.run.sampling_session import REFUSED_TABLE
from flows.run.stage import Kind, Stage, StageResult, StageRun
from flows.stages.attempts import attempt_key, attempts_of, part_title, rule_of_shard, stopping_digest, stopping_rule
from flows.stages.base import split_rows
from flows.stages.label_trust import label_trust_of, posterior_decides
from flows.stages.questions import final_verdicts

_LEAST_DOUBT = 1e-9
"""An error rate above 0, however small, makes `pass_rates.decide` foresee decisions."""


def decide_difficulty(job: StageRun) -> StageResult:
    """Decide on each problem by its pass rate."""
    run, part = job.run, job.stage.part
    settings = difficulty_stage(run.recipe, part)
    base, verdicts = stopping_rule(settings), job.results[final_verdicts(run, part)]
    sampled = job.results[attempts_of(part)]
    policy = attempt_key(attempts_of(part).folder_in(run)).policy
    reviews = verdicts_of_people(run)
    labels = job.results[label_trust_of(part)] if label_trust_of(part).enabled(run) else None
    if labels is not None and not posterior_decides(labels):
        labels = None
    by_votes = labels is None or run.recipe.labels.rule == "posterior"  # which switches votes off in the band
    trusted = sorted(name for name, verdict in reviews.items() if verdict.answer is not None)
    problems, judged_in = job.problems.folder, verdicts.folder

    def work(index: int) -> Shard:
        frame = read_shard(problems, "kept", index)
        judged = read_shard(judged_in, "verdicts", index)
        stopped = read_shard(judged_in, "stopped", index)["problem"]
        rule = rule_of_shard(base, sampled.folder, index)
        rates = pass_rates.pass_rates(frame["id"], judged, policy, rule, stopped)
        failures = failed_verdicts(pass_rates.counted_verdicts(judged, rule))
        decisions = decide_with_reviews(rates, settings, part, reviews, failures, rule, by_votes=by_votes)
        if labels is not None:
            trust = read_shard(labels.folder, "labels", index)
            decisions = suspect_labels(decisions, trust, run.recipe.labels.drop_above)
        refused = read_optional_shard(sampled.folder, REFUSED_TABLE, index)
        if refused is not None:
            decisions = hold_refused(decisions, refused)
        kept, dropped = split_rows(frame, part, decisions["reason"].to_list(), decisions["evidence"].to_list())
        return Shard(frame.height, {"kept": kept, "dropped": dropped, "decisions": decisions})

    settings_text = (
        f"{settings.band.digest()} {stopping_digest(settings)}{' trusted ' + ' '.join(trusted) if trusted else ''}"
    )
    version = f"{pass_rates.VERSION} {early_stopping.VERSION}"
    read = [job.problems, verdicts]
    if labels is not None:
        read.append(labels)
        settings_text += f" labels above {run.recipe.labels.drop_above}{'' if by_votes else ', not by votes'}"
    if (sampled.folder / "priors").is_dir() or sampled.manifest.notes.get(retries.REFUSED):
        read.append(sampled)
    folder = job.open(version, settings_text, *read, verifier=judged_in.name)
    return job.shard_by_shard(folder, work)


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
    """Return `DECISION` rows, in which no label is suspected that a person accepted.

    Where sampling stopped at the suspicion, the decision without it is foreseen from the attempts so far.

    Args:
        rule: by which the attempts stopped.
        by_votes: whether the band's rule of votes decides; else no label is suspected here.
        failures: `curation.difficulty.failed_verdicts.failed_verdicts` of the problems.
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
    """Return the stage that decides by the pass rates of a difficulty stage."""

    def is_enabled(run: Run) -> bool:
        return part in run.parts

    return Stage(
        name=f"{part}.decisions",
        title=f"{part_title(part)}: difficulty",
        folder=f"decisions/{part}",
        work=decide_difficulty,
        kind=Kind.DECISION,
        enabled=is_enabled,
        by_verifier=True,
        part=part,
        task="decisions",
    )
