"""Decide on problems by pass rates, and on references by all answers.

Planted wrong references show whether label probabilities or votes decide.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import polars as pl

from curation.config import Band
from curation.difficulty import early_stopping, label_trust, pass_rates
from curation.difficulty.early_stopping import WRONG_LABEL_VOTES
from curation.difficulty.label_trust import suspect_labels
from curation.difficulty.pass_rates import failed_verdicts, hold_refused, hold_reserved
from curation.difficulty.priors import as_priors
from curation.publish import review
from curation.storage.stages import Shard, read_optional_shard, read_shard
from flows.run.progress import note, warn
from flows.run.run_folder import Run, accepted_references, difficulty_stage, verdicts_of_people
from flows.run.sampling_session import REFUSED_TABLE, read_priors
from flows.run.stage import Kind, Stage, StageResult, StageRun, rows_of, split_rows
from flows.stages.attempts import attempt_key, attempts_of, part_title, stopping_digest, stopping_rule
from flows.stages.dedup import NEAR_DEDUP
from flows.stages.labels import (
    DECIDES,
    Weighing,
    decisions_folder,
    label_line,
    other_references,
    weighing,
)
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
        decisions = self._by_rates(reviews, difficulty_stage(run.recipe, part).band, part, by_votes=by_votes)
        if trust is None or not accuses:
            return decisions
        trusted = trust.join(decisions, on="problem", how="semi", maintain_order="left")
        return suspect_labels(decisions, trusted, run.recipe.labels.drop_above)

    def _by_rates(self, reviews: review.ReviewVerdicts, band: Band, part: str, *, by_votes: bool) -> pl.DataFrame:
        failures = failed_verdicts(pass_rates.counted_verdicts(self.verdicts, self.rule))
        decisions = pass_rates.decide(self.rates, band, part, self.rule, failures)
        if by_votes and all(verdict.answer is None for verdict in reviews.values()):
            return decisions
        band = band.model_copy(update={"wrong_label_share": 1.0})
        error_rate = max(self.rule.error_rate, _LEAST_DOUBT) if self.rule.early_stopping else 0.0
        foreseeing = self.rule.given(self.rule.priors, band, error_rate)
        unsuspecting = pass_rates.decide(self.rates, band, part, foreseeing, failures)
        return review.keep_accepted_labels(decisions, unsuspecting, reviews) if by_votes else unsuspecting


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
