"""The stages of difficulty, as bare functions: attempts, verdicts on them, and what the pass rates decide.

Each takes the run and the stages before it, and returns a `Done`. Nothing here decides anything about a problem.
Attempts are judged beside sampling (`flows.run.sampling_session`), so that a problem's sampling ends with its fate; the
verdicts stage takes over these verdicts, unless it is asked for others.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import polars as pl

from curation import attempts, curtailment, difficulty, review, sampling
from curation.config import DifficultyStage
from curation.records import ATTEMPT, VERDICT, AttemptKey, StoreError
from curation.store import Shard, Stage, read_shard, write_aside
from curation.verify.judge import Judge, JudgeTask, Response
from flows.run.policies import open_policy
from flows.run.run_folder import Done, Run, difficulty_stage, inputs
from flows.run.sampling_session import SamplingSession, option_letter
from flows.stages.base import open_judge, shard_by_shard, split_rows

_LABELS = ("problem", "index", "label")

_LEAST_DOUBT = 1e-9
"""Any error rate above 0 has decisions foreseen."""

KEY = "key.json"
"""Beside the manifest of an attempts stage: what its attempts are filed under."""


JUDGED_BY = "judged_by.json"
"""Beside it: what the verdicts made while sampling depend on."""


def stopping_rule(settings: DifficultyStage) -> curtailment.Rule:
    """When sampling stops at a problem of this stage, and which attempts count.

    Recorded attempts cost nothing: all of them count.
    """
    curtail = settings.sampling.curtail and settings.policy.kind != "recorded"
    return curtailment.Rule(settings.band, curtail=curtail, error_rate=settings.sampling.error_rate if curtail else 0.0)


def stops(settings: DifficultyStage) -> str:
    """All that `stopping_rule` depends on, as text: with curtailment the whole band, without it the number alone."""
    rule = stopping_rule(settings)
    if not rule.curtail:
        return f"all {settings.band.attempts}"
    return f"{settings.band.digest()} {rule.error_rate} {settings.sampling.ahead}"


def make_attempts(run: Run, part: str, problems: Done) -> Done:
    """Have the stage's policy answer every problem, and judge what it says, until each problem's fate is sealed.

    Attempts that are in the store are not asked for again.
    """
    settings = difficulty_stage(run.recipe, part)
    policy = open_policy(settings.policy, run.recipe_folder)
    store = attempts.AttemptStore(run.folder / "attempts", policy.key, policy.about)
    with open_judge(run) as judge:
        key, judged_by = asdict(policy.key), _judged_by(run, part, judge.version)
        name = f"{part}.attempts"
        version = f"attempts@2 {sampling.VERSION} {curtailment.VERSION}"
        settings_text = json.dumps([key, judged_by], sort_keys=True)
        stage = Stage(run.where(name), name, version, settings_text, inputs(problems))
        if store.height < stage.noted("attempts"):  # parts of the store were removed: what is missing is made again
            stage.discard()
        with SamplingSession(run, part, problems, stage, policy, store, judge, stopping_rule(settings)) as session:
            done = shard_by_shard(stage, problems, session.shard)
    if not (done.reused and (done.folder / JUDGED_BY).exists()):
        write_aside(done.folder / KEY, json.dumps(key) + "\n")
        write_aside(done.folder / JUDGED_BY, json.dumps(judged_by) + "\n")
    return done


def _judged_by(run: Run, part: str, verifier: str) -> dict[str, str]:
    """What the verdicts that are made while sampling depend on, besides the attempts."""
    settings = difficulty_stage(run.recipe, part)
    return {"verifier": verifier, "verify": run.recipe.verify.digest(), "stops": stops(settings)}


def made_attempts(run: Run, made: Done) -> attempts.AttemptStore:
    """The store that an attempts stage filled, by the key that the stage kept; the policy itself is not needed."""
    key = _made_key(made.folder)
    store = attempts.AttemptStore(run.folder / "attempts", key, create=False)
    if store.height < made.manifest.notes["attempts"]:
        raise StoreError(
            f"{store.folder} holds {store.height} attempts, {made.manifest.notes['attempts']} were made; "
            "run the recipe again and the missing ones are made again."
        )
    return store


def _made_key(folder: Path) -> AttemptKey:
    return AttemptKey(**json.loads((folder / KEY).read_text(encoding="utf-8")))


def judge_attempts(run: Run, part: str, problems: Done, made: Done) -> Done:
    """Verdicts on the attempts of the stage, and which of a problem's answers are the same.

    Those made while sampling, up to each problem's stop, where verifier, band and stopping rule are still the same;
    else all stored attempts are judged again, and `decide` says which of them count.
    """
    settings = difficulty_stage(run.recipe, part)
    store = made_attempts(run, made)
    with open_judge(run) as judge:
        beside = json.loads((made.folder / JUDGED_BY).read_text(encoding="utf-8"))
        ready = beside == _judged_by(run, part, judge.version)

        def work(index: int) -> Shard:
            frame = read_shard(problems.folder, "kept", index).select("id", "answer", "lang", "raw_answer")
            counts = read_shard(made.folder, "counts", index)
            held = store.read(frame["id"].to_list(), _LABELS if ready else tuple(ATTEMPT))
            held = held.filter(pl.col("index") < settings.band.attempts)
            verdicts = read_shard(made.folder, "verdicts", index) if ready else _judge(judge, frame, held)
            labelled, against = difficulty.against_labels(verdicts, held)
            stopped = counts.filter("sealed").select("problem")
            return Shard(
                frame.height,
                {"verdicts": verdicts, "against_labels": against, "stopped": stopped},
                kept_rows=frame.height,
                notes={"attempts": verdicts.height, "labelled": labelled, "against_labels": against.height},
            )

        name = f"{part}.verdicts"
        stage = Stage(
            run.where(name, judge.version),
            name,
            f"{judge.version} verdicts@2",
            f"{run.recipe.verify.digest()} {ready}",
            inputs(problems, made),
        )
        return shard_by_shard(stage, problems, work)


def decide(run: Run, part: str, problems: Done, verdicts: Done) -> Done:
    """Pass rates, and what they decide."""
    settings = difficulty_stage(run.recipe, part)
    rule = stopping_rule(settings)
    policy = _made_key(run.where(f"{part}.attempts")).policy
    said = review.read_verdicts(run.folder)
    trusted = sorted(name for name, verdict in said.items() if verdict.answer is not None)

    def work(index: int) -> Shard:
        frame = read_shard(problems.folder, "kept", index)
        judged = read_shard(verdicts.folder, "verdicts", index)
        stopped = read_shard(verdicts.folder, "stopped", index)["problem"]
        rates = difficulty.pass_rates(frame["id"], judged, policy, rule, stopped)
        decisions = trusting_people(rates, settings, part, said)
        kept, dropped = split_rows(frame, part, decisions["reason"].to_list(), decisions["evidence"].to_list())
        return Shard(frame.height, {"kept": kept, "dropped": dropped, "decisions": decisions})

    name = f"{part}.decisions"
    folder = run.where(name, verdicts.folder.name)
    settings_text = f"{settings.band.digest()} {stops(settings)}{' trusted ' + ' '.join(trusted) if trusted else ''}"
    version = f"{difficulty.VERSION} {curtailment.VERSION}"
    stage = Stage(folder, name, version, settings_text, inputs(problems, verdicts))
    return shard_by_shard(stage, problems, work)


def trusting_people(rates: pl.DataFrame, settings: DifficultyStage, part: str, said: review.Verdicts) -> pl.DataFrame:
    """`DECISION` rows, in which no label is suspected that a person accepted.

    Where sampling stopped at the suspicion, what the attempts left would have decided without it is foreseen.
    """
    rule = stopping_rule(settings)
    decisions = difficulty.decide(rates, settings.band, part, rule)
    if all(verdict.answer is None for verdict in said.values()):
        return decisions
    band = settings.band.model_copy(update={"wrong_label_share": 1.0})
    error_rate = max(rule.error_rate, _LEAST_DOUBT) if rule.curtail else 0.0
    foreseeing = curtailment.Rule(band, curtail=rule.curtail, error_rate=error_rate)
    return review.trusting(decisions, difficulty.decide(rates, band, part, foreseeing), said)


def _judge(judge: Judge, problems: pl.DataFrame, held: pl.DataFrame) -> pl.DataFrame:
    """Verdicts in the order of the attempts, which are ordered by problem and index."""
    references = {name: (answer, lang, option_letter(raw, answer)) for name, answer, lang, raw in problems.iter_rows()}
    groups = held.group_by("problem", maintain_order=True).agg("text", "answer")
    tasks = (
        JudgeTask(
            name,
            reference,
            lang,
            tuple(Response(text, answer) for text, answer in zip(texts, given, strict=True)),
            letter,
        )
        for name, texts, given in groups.iter_rows()
        for reference, lang, letter in (references[name],)
    )
    judged = [verdict for result in judge.judge(tasks) for verdict in result.verdicts]
    compared = pl.Series("reference", [references[name][0] for name in held["problem"]], pl.String)
    return (
        held.select("problem", "policy", "prompt", "sampling", "index")
        .with_columns(
            pl.lit(judge.version).alias("verifier"),
            compared,
            pl.Series("outcome", [verdict.outcome.value for verdict in judged], pl.String),
            pl.Series("answer", [verdict.answer for verdict in judged], pl.String),
            pl.Series("answer_class", [verdict.answer_class for verdict in judged], pl.Int32),
            pl.Series("how", [verdict.how for verdict in judged], pl.String),
        )
        .select(VERDICT.names())
    )
