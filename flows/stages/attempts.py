"""Attempts of a difficulty stage: its policy answers every problem until the problem is decided.

Attempts are judged beside sampling (`flows.run.sampling_session`), so that a problem's sampling ends once it
is decided; the stage of verdicts takes over these verdicts, unless it needs others. Both difficulty stages are made by
one template, `attempts_of`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path

import polars as pl

from curation.config import DifficultyStage
from curation.difficulty import early_stopping, sampling
from curation.difficulty.early_stopping import WRONG_LABEL_VOTES
from curation.difficulty.priors import as_priors
from curation.records import DECISION, AttemptKey, StoreError
from curation.storage import attempts
from curation.storage.stages import damaged, read_json, read_table, write_json
from flows.run import retries
from flows.run.policies import model_title
from flows.run.policy_session import model_session
from flows.run.run_folder import PARTS, Run, difficulty_stage, stage_model
from flows.run.runner import current_runner
from flows.run.sampling_session import SamplingSession, read_priors
from flows.run.stage import REFUSAL_RETRIES, Kind, Stage, StageResult, StageRun
from flows.run.stage_priors import RATES, PriorLearner, prior_learner, wants_learner
from flows.stages.judging import open_judge

KEY = "key.json"
"""Beside the manifest: the key of the attempts in the store."""

JUDGED_BY = "judged_by.json"
"""Beside it: what the verdicts made while sampling depend on."""

MEASURED_ON = Path("versions") / "measured_on.json"
"""In the run folder: the day on which each policy's attempts were begun."""


def stopping_rule(settings: DifficultyStage) -> early_stopping.StoppingRule:
    """Return the rule by which sampling stops at a problem of this stage, and by which attempts count."""
    stops_early = settings.sampling.early_stopping
    return early_stopping.StoppingRule(
        settings.band, early_stopping=stops_early, error_rate=settings.sampling.error_rate if stops_early else 0.0
    )


def stopping_digest(settings: DifficultyStage) -> str:
    """Return as text all that `stopping_rule` depends on.

    With early stopping that is the whole band, without it the number of attempts alone.
    """
    rule = stopping_rule(settings)
    if not rule.early_stopping:
        return f"all {settings.band.attempts}"
    return f"{settings.band.digest()} {rule.error_rate}"


def make_attempts(job: StageRun) -> StageResult:
    """Sample the stage's policy on every problem, and judge its attempts, until each problem is decided.

    Attempts that are in the store are not sampled again. Problems that were refused are set aside, and asked for again
    by later runs (`flows.run.retries`).
    """
    run, part = job.run, job.stage.part
    settings = difficulty_stage(run.recipe, part)
    asked = stage_model(run.recipe, part)
    with model_session(asked, run.recipe_folder) as opened, open_judge(run) as own_judge:
        policy = opened.policy
        store = attempts.AttemptStore(run.folder / "attempts", policy.key, policy.about)
        judge = current_runner(runs_anywhere=True).spread_judge(own_judge)
        key, judged_with = asdict(policy.key), judged_by(run, part, judge.version)
        rule = stopping_rule(settings)
        learner = stage_learner(run, job.problems.folder, job.results.decisions, rule, policy.key.policy)
        version = f"attempts@{4 if learner is not None else 3} {sampling.VERSION} {early_stopping.VERSION}"
        made_by, read = [key, judged_with], [job.problems]
        if learner is not None:
            read += job.results.decisions
        folder = job.open(version, json.dumps(made_by, sort_keys=True), *read)
        if store.height < folder.note("attempts"):  # parts of the store were removed: what is missing is made again
            folder.discard()
        with SamplingSession(run, job.stage, job.problems, folder, opened, store, judge, rule, learner) as session:
            result = retries.retry_failed(
                job, folder, partial(job.shard_by_shard, folder, session.shard), session.again
            )
    if not (result.reused and all((result.folder / name).exists() for name in (KEY, JUDGED_BY))):
        write_json(result.folder / KEY, key)
        write_json(result.folder / JUDGED_BY, judged_with)
    return result


def stage_learner(
    run: Run,
    folder: Path,
    decided: Sequence[StageResult],
    rule: early_stopping.StoppingRule,
    policy: str,
) -> PriorLearner | None:
    """Return who learns a stage's priors from the attempts of earlier stages; None where they are given, or none.

    Args:
        folder: of the stage's problems.
        decided: decisions of the stages before it.
    """
    if (folder / "priors").is_dir() or not wants_learner(rule):
        return None
    problems = read_table(folder, "kept", ["id", "source"])
    parts = [read_table(result.folder, "decisions", list(RATES)) for result in decided]
    rates = pl.concat([part for part in parts if part.width] or [DECISION.to_frame().select(RATES)])
    counts = rates.drop("top_wrong_votes")
    is_open = run.recipe.asks_doubtful_verdicts
    domains = problem_domains(problems)
    return prior_learner(rule, policy, problems["id"], counts, rates, doubtful_is_open=is_open, domains=domains)


def problem_domains(problems: pl.DataFrame) -> pl.DataFrame:
    """Return problem and domain: policies' abilities are told apart by the source that a problem comes from.

    Args:
        problems: `PROBLEM` rows.
    """
    return problems.select(problem="id", domain="source")


def rule_of_shard(rule: early_stopping.StoppingRule, attempts_folder: Path, index: int) -> early_stopping.StoppingRule:
    """Return the rule by which the attempts of a shard were stopped: with the priors that it was sampled by."""
    priors = read_priors(attempts_folder, index)
    return rule if priors is None else rule.given(as_priors(priors))


def judged_by(run: Run, part: str, verifier: str) -> dict[str, str]:
    """Return what the verdicts of sampling depend on, besides the attempts."""
    settings = difficulty_stage(run.recipe, part)
    said = {"verifier": verifier, "verify": run.recipe.verify.digest(), "stops": stopping_digest(settings)}
    return said | {"doubtful": "open"} if run.recipe.asks_doubtful_verdicts else said


def attempt_store(run: Run, result: StageResult) -> attempts.AttemptStore:
    """Open the store that an attempts stage filled, by the key that the stage kept; no policy is needed.

    Raises:
        StoreError: attempts are missing from it.
    """
    key = attempt_key(result.folder)
    store = attempts.AttemptStore(run.folder / "attempts", key, create=False)
    if store.height < result.manifest.notes["attempts"]:
        raise StoreError(
            f"{store.folder} holds {store.height} attempts, {result.manifest.notes['attempts']} were made; "
            "run the recipe again and the missing ones are result again."
        )
    return store


def attempt_key(folder: Path) -> AttemptKey:
    """Read the key of a finished stage's attempts in the store."""
    try:
        return AttemptKey(**(read_json(folder / KEY) or {}))
    except TypeError as error:
        raise damaged(folder / KEY, str(error)) from error


def measured_on(run: Run, part: str) -> str:
    """Return the day on which the attempts of a stage were begun, as YYYY-MM-DD in UTC; once noted it stays."""
    key = asdict(attempt_key(attempts_of(part).folder_in(run)))
    name = " ".join((key["policy"], key["prompt"], key["sampling"]))
    path = run.folder / MEASURED_ON
    noted: dict[str, str] = read_json(path) or {}
    if name not in noted:
        noted[name] = _begun(run.folder / "attempts", key)
        write_json(path, noted)
    return noted[name]


def _begun(store: Path, key: Mapping[str, str]) -> str:
    """Return the day on which the store of attempts under a key was made."""
    for path in store.glob("*/key.json"):
        if key.items() <= (read_json(path) or {}).items():
            return datetime.fromtimestamp(path.stat().st_mtime, UTC).date().isoformat()
    return today()


def today() -> str:
    """Return the current day, as YYYY-MM-DD in UTC."""
    return datetime.now(UTC).date().isoformat()


@cache
def attempts_of(part: str) -> Stage:
    """Return the stage in which the policy of a difficulty stage makes its attempts."""

    def is_enabled(run: Run) -> bool:
        return part in run.parts

    def describe(run: Run) -> Iterator[str]:
        settings = difficulty_stage(run.recipe, part)
        band = settings.band
        yield (
            f"{part}: {model_title(run.recipe, settings.model)}, {band.attempts} attempts a problem; kept with at "
            f"least {band.min_correct} correct and a pass rate up to {band.max_pass_rate:g}"
            + (
                f"; suspected wrong label above {band.wrong_label_share:g} and from {WRONG_LABEL_VOTES} votes"
                if run.recipe.labels.rule != "posterior"
                else ""
            )
        )

    return Stage(
        name=f"{part}.attempts",
        title=f"{part_title(part)}: attempts",
        folder=f"stages/{8 + PARTS.index(part):02}-{part}-attempts",
        work=make_attempts,
        kind=Kind.MEASURE,
        enabled=is_enabled,
        asks=f"{part}.model",
        describe=describe,
        retries=REFUSAL_RETRIES,
        part=part,
        task="attempts",
    )


def part_title(part: str) -> str:
    """Return a difficulty stage's name for readers: Stage 1."""
    return part.replace("stage", "Stage ")
