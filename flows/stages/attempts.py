"""Sample a difficulty stage's policy and judge its attempts until each problem is decided.

Later runs retry only refused requests and failed verdicts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import polars as pl

from curation.config import DifficultyStage
from curation.difficulty import early_stopping, pass_rates, sampling
from curation.difficulty.early_stopping import WRONG_LABEL_VOTES
from curation.difficulty.pass_rates import has_failed, is_doubtful, replace_failed
from curation.options import option_letter
from curation.policies.recorded import Recorded
from curation.records import (
    VERDICT,
    AttemptKey,
    Domain,
    DropReason,
    Policy,
    PromptRequest,
    StoreError,
)
from curation.storage import attempts
from curation.storage.stages import (
    Shard,
    StageFolder,
    damaged,
    read_json,
    read_manifest,
    read_shard,
    write_json,
)
from curation.verify.generator_scores import scorer_of
from curation.verify.math_judge import Judge, JudgeTask, Response
from flows.run import retries
from flows.run.policies import is_offline, model_title
from flows.run.policy_session import ModelSession, PolicySession, model_session
from flows.run.progress import warn
from flows.run.run_folder import Run, difficulty_stage, stage_model
from flows.run.runner import current_runner
from flows.run.sampling_session import PriorLearner, SamplingSession, request_details, stage_learner
from flows.run.stage import Kind, Stage, StageResult, StageRun, shard_counts
from flows.stages.judging import open_judge

KEY = "key.json"  # next to the manifest: the stored attempts' key
VOTERS = "voters"  # table of the models that made a file's attempts; each votes on labels

MEASURED_ON = Path("versions") / "measured_on.json"
"""In the run folder: the first day of each policy's attempts."""

_LABELS = ("problem", "index", "label")
_VOTER = pl.Schema({"problem": pl.String(), "index": VERDICT["index"], "voter": pl.String()})


def stopping_rule(settings: DifficultyStage) -> early_stopping.StoppingRule:
    """Return the stage's rule for stopping and counting attempts."""
    stops_early = settings.sampling.early_stopping
    return early_stopping.StoppingRule(
        settings.band, early_stopping=stops_early, error_rate=settings.sampling.error_rate if stops_early else 0.0
    )


def stopping_digest(settings: DifficultyStage) -> str:
    """Return a text of all that `stopping_rule` depends on."""
    rule = stopping_rule(settings)
    if not rule.early_stopping:
        return f"all {settings.band.attempts}"
    return f"{settings.band.digest()} {rule.error_rate}"


def make_attempts(job: StageRun) -> StageResult:
    """Sample and judge attempts until each problem is decided; reuse stored ones."""
    run, part = job.run, job.stage.part
    asked, rule = stage_model(run.recipe, part), stopping_rule(difficulty_stage(run.recipe, part))
    with model_session(asked, run.recipe_folder) as opened, open_judge(run) as own_judge:
        policy = opened.policy
        store = attempts.AttemptStore(run.folder / "attempts", policy.key, policy.about)
        judge = current_runner(runs_anywhere=True).spread_judge(own_judge)
        key, judged_with = asdict(policy.key), judged_by(run, part, judge.version)
        learner = stage_learner(run, job.problems.folder, job.results.decisions, rule, policy.key.policy)
        version = f"attempts@{6 if learner is not None else 5} {sampling.VERSION} {early_stopping.VERSION}"
        read = [job.problems, *(job.results.decisions if learner is not None else ())]
        stated = [prior.digest() for source in run.recipe.sources for prior in source.prior_attempts]
        made_by = json.dumps([key, judged_with, *(stated if learner is not None else ())], sort_keys=True)
        folder = job.open(version, made_by, *read, verifier=judge.version)
        recorded = isinstance(policy, Recorded)
        limit = 0 if is_offline() and folder.manifest() is None and not recorded else None
        if limit is not None:
            folder = job.open(f"{version} offline", made_by, *read, verifier=judge.version)
        elif read_manifest(folder.folder) is not None and folder.manifest() is None and not recorded:
            what = "only problems that stored attempts do not decide are sampled (`--offline` samples nothing)"
            warn(run.folder, job.stage.name, f"inputs have changed: {what}")
        if store.height < folder.note("attempts"):  # parts of the store were removed: what is missing is made again
            folder.discard()
        with closing(store):
            result = job.finished(folder) or _sample(job, folder, opened, store, judge, rule, learner, limit)
    if left := result.manifest.notes.get("left_open", 0):
        text = (
            f"the stored attempts do not decide {left:,} of {job.problems.manifest.kept:,} problems, which leave as "
            f"{DropReason.TOO_FEW_ATTEMPTS.value}; `goldilocks run` without --offline samples them further"
        )
        warn(run.folder, job.stage.name, text)
    if not (result.reused and (result.folder / KEY).exists()):
        write_json(result.folder / KEY, key)
    return result


def _sample(
    job: StageRun,
    folder: StageFolder,
    opened: ModelSession,
    store: attempts.AttemptStore,
    judge: Judge,
    rule: early_stopping.StoppingRule,
    learner: PriorLearner | None,
    limit: int | None,
) -> StageResult:
    """Sample the missing shards; in a retry only those with refusals, and judge failed verdicts with higher limits."""
    round_number = retries.last_round(folder.folder)
    before = retries.reopened_marks(folder.folder)
    unrefused = {index: mark for index, mark in before.items() if not mark["notes"].get(retries.REFUSED)}
    missing = [index for index in range(len(shard_counts(job.problems.folder))) if not folder.is_finished(index)]
    sampled = [index for index in missing if index not in unrefused]
    priors = folder.folder / "priors"
    has_priors = not priors.is_dir() or all((priors / f"{index:05}.parquet").exists() for index in sampled)
    is_retry = bool(before) and has_priors
    again = open_judge(job.run, round_number) if round_number else nullcontext(judge)
    session = SamplingSession(job, folder, opened, store, judge, rule, sampled, learner, limit, is_retry=is_retry)
    with session, again as patient:

        def work(index: int) -> Shard:
            if index in unrefused:
                shard = retries.shard_before(folder.folder, unrefused[index])
            else:
                shard = session.shard(index)
            if round_number:
                frame = read_shard(job.problems.folder, "kept", index)
                verdicts = _judge_failed(patient, frame, shard.tables["verdicts"])
                shard = replace(shard, tables={**shard.tables, "verdicts": verdicts})
            return _noted(shard, store, opened.policy, round_number)

        return job.shard_by_shard(folder, work)


def _noted(shard: Shard, store: attempts.AttemptStore, policy: Policy, round_number: int) -> Shard:
    """Add notes and tables on verdicts, labels and voters."""
    verdicts, counts = shard.tables["verdicts"], shard.tables["counts"]
    labels = store.read(counts["problem"].to_list(), _LABELS)
    labelled, disagreements = pass_rates.disagreements_with_labels(verdicts, labels)
    figures = {
        "doubtful": verdicts.filter(is_doubtful()).height,
        "labelled": labelled,
        "disagreements_with_labels": disagreements.height,
        **retries.failure_notes(verdicts.filter(has_failed()).height, round_number),
    }
    stopped = counts.filter("is_decided").select("problem")
    tables = {**shard.tables, "disagreements_with_labels": disagreements, "stopped": stopped}
    if isinstance(policy, Recorded):
        named = {name: policy.models_at(name) for name in verdicts["problem"].unique()}
        rows = verdicts.select("problem", "index").iter_rows()
        found = [(name, index, named[name][index]) for name, index in rows if index < len(named[name])]
        voters = pl.DataFrame(found, _VOTER, orient="row").drop_nulls()
        if voters.height:
            tables[VOTERS] = voters
    return replace(shard, tables=tables, notes={**shard.notes, **figures})


def _judge_tasks(problems: pl.DataFrame) -> dict[str, JudgeTask]:
    """Return a task without responses per `PROBLEM` row, by its id."""
    rows = problems.select("id", "answer", "lang", "raw_answer", "statement", "meta").iter_rows()
    return {
        name: JudgeTask(
            name, answer or "", lang, (), option_letter(raw, answer), statement=statement, scorer=scorer_of(meta)
        )
        for name, answer, lang, raw, statement, meta in rows
    }


def _judge_failed(judge: Judge, problems: pl.DataFrame, verdicts: pl.DataFrame) -> pl.DataFrame:
    """Replace failed `VERDICT` rows by new ones, in order."""
    tasks, is_failed = _judge_tasks(problems), has_failed().any().over("problem")
    numbered = verdicts.with_row_index("place")
    of_failed = numbered.filter(is_failed).partition_by("problem", maintain_order=True)
    futures = [judge.submit(tasks[rows["problem"][0]], rows["answer"].to_list()) for rows in of_failed]
    again = [replace_failed(rows, future.result()) for rows, future in zip(of_failed, futures, strict=True)]
    return pl.concat([numbered.filter(~is_failed), *again]).sort("place").drop("place")


def judge_rows(judge: Judge, problems: pl.DataFrame, attempts: pl.DataFrame) -> pl.DataFrame:
    """Return `VERDICT` rows in the attempts' order.

    Args:
        attempts: sorted by problem and index.
    """
    tasks = _judge_tasks(problems)
    groups = attempts.group_by("problem", maintain_order=True).agg("text", "answer", "finish")
    results = judge.judge(
        replace(tasks[name], responses=tuple(map(Response, texts, answers, finishes)))
        for name, texts, answers, finishes in groups.iter_rows()
    )
    judged = [verdict for result in results for verdict in result.verdicts]
    columns: dict[str, Sequence[object]] = {
        "verifier": [judge.version] * len(judged),
        "reference": [tasks[name].reference for name in attempts["problem"]],
        "outcome": [verdict.outcome.value for verdict in judged],
        "answer": [verdict.answer for verdict in judged],
        "answer_class": [verdict.answer_class for verdict in judged],
        "method": [verdict.method for verdict in judged],
    }
    own = attempts.select("problem", "policy", "prompt", "sampling", "index")
    return own.with_columns(pl.Series(name, values, VERDICT[name]) for name, values in columns.items()).select(
        VERDICT.names()
    )


def measure_rows(
    run: Run, judge: Judge, solver: PolicySession, rows: pl.DataFrame, judged_as: str = "id"
) -> pl.DataFrame:
    """Make attempts at added `PROBLEM` rows; return the last difficulty stage's decisions.

    Args:
        judged_as: column that names the problem whose tests judge a row.
    """
    part = run.parts[-1]
    band = difficulty_stage(run.recipe, part).band
    asked = rows.select("id", "statement", "domain", "lang", "meta").iter_rows()
    requests = [
        PromptRequest(name, statement, Domain(domain), lang, request_details(domain, meta))
        for name, statement, domain, lang, meta in asked
    ]
    made = solver.ask(requests, band.attempts)
    names = rows.select(problem="id", judged=judged_as)
    judged = made.join(names, on="problem", how="inner", maintain_order="left").drop("problem")
    verdicts = judge_rows(judge, rows.with_columns(id=judged_as), judged.rename({"judged": "problem"}))
    named = verdicts.join(names, left_on="problem", right_on="judged", how="inner", maintain_order="left")
    verdicts = named.drop("problem").rename({"problem_right": "problem"}).select(verdicts.columns)
    return pass_rates.decide(pass_rates.pass_rates(rows["id"], verdicts, solver.policy.key.policy), band, part)


def judged_by(run: Run, part: str, verifier: str) -> dict[str, str]:
    """Return what the verdicts depend on, apart from attempts."""
    settings = difficulty_stage(run.recipe, part)
    settings_read = {"verifier": verifier, "verify": run.recipe.verify.digest(), "stops": stopping_digest(settings)}
    return settings_read | ({"doubtful": "open"} if run.recipe.asks("doubtful_verdicts") else {})


def attempt_store(run: Run, result: StageResult) -> attempts.AttemptStore:
    """Open an attempts stage's store, without its policy.

    Raises:
        StoreError: attempts are missing from it.
    """
    key = attempt_key(result.folder)
    store = attempts.AttemptStore(run.folder / "attempts", key, create=False)
    if store.height < result.manifest.notes["attempts"]:
        raise StoreError(
            f"{store.folder} holds {store.height} attempts, {result.manifest.notes['attempts']} were made; "
            "run the recipe again to make the missing ones."
        )
    return store


def attempt_key(folder: Path) -> AttemptKey:
    """Read the key of a finished stage's stored attempts."""
    try:
        return AttemptKey(**(read_json(folder / KEY) or {}))
    except TypeError as error:
        raise damaged(folder / KEY, str(error)) from error


def measured_on(run: Run, part: str, verifier: str) -> str:
    """Return the UTC day (YYYY-MM-DD) on which a stage's attempts began; once noted it stays."""
    key = asdict(attempt_key(attempts_of(part).folder_in(run, verifier)))
    name = " ".join((key["policy"], key["prompt"], key["sampling"]))
    path = run.folder / MEASURED_ON
    noted: dict[str, str] = read_json(path) or {}
    if name not in noted:
        noted[name] = _begun(run.folder / "attempts", key)
        write_json(path, noted)
    return noted[name]


def _begun(store: Path, key: Mapping[str, str]) -> str:
    for path in store.glob("*/key.json"):
        if key.items() <= (read_json(path) or {}).items():
            return datetime.fromtimestamp(path.stat().st_mtime, UTC).date().isoformat()
    return today()


def today() -> str:
    """Return the current day, as YYYY-MM-DD in UTC."""
    return datetime.now(UTC).date().isoformat()


@cache
def attempts_of(part: str) -> Stage:
    """Return a difficulty stage's attempts stage."""

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
        folder=f"verdicts/{part}",
        work=make_attempts,
        kind=Kind.MEASURE,
        enabled=is_enabled,
        asks=f"{part}.model",
        describe=describe,
        by_verifier=True,
        part=part,
    )


def part_title(part: str) -> str:
    """Return a difficulty stage's title: Stage 1."""
    return part.replace("stage", "Stage ")
