"""Sample a difficulty stage's policy and judge its attempts until each problem is decided.

Later runs retry only refused requests and failed verdicts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import cache, partial
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
    damaged,
    finished_shards,
    read_json,
    read_manifest,
    read_shard,
    write_json,
)
from curation.verify.generator_scores import scorer_of
from curation.verify.math_judge import Judge, JudgeTask, Response
from flows.run import retries
from flows.run.policies import is_offline, model_title
from flows.run.policy_session import PolicySession, model_session
from flows.run.progress import warn
from flows.run.run_folder import Run, difficulty_stage, stage_model
from flows.run.runner import current_runner
from flows.run.sampling_session import SamplingSession, request_details, stage_learner
from flows.run.stage import Kind, RetryRule, Stage, StageResult, StageRun
from flows.stages.judging import open_judge

KEY = "key.json"  # next to the manifest: the stored attempts' key
VOTERS = "voters"  # table of the models that made a file's attempts; each votes on labels

MEASURED_ON = Path("versions") / "measured_on.json"
"""In the run folder: the first day of each policy's attempts."""

RETRIES = RetryRule(
    "problems that the model's servers refused, and verdicts on which the verifier failed",
    "tries",
    "another revision or decoding of the model asks anew, a higher verify.limit_s judges anew",
)

_LABELS = ("problem", "index", "label")


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
            what = "what the stored attempts leave open is sampled further (`--offline` decides without sampling)"
            warn(run.folder, job.stage.name, f"made anew: {what}")
        if store.height < folder.note("attempts"):  # parts of the store were removed: what is missing is made again
            folder.discard()
        with SamplingSession(job, folder, opened, store, judge, rule, learner, limit) as session:
            work = _Judged(job, folder.folder, store, session, policy)
            first = partial(job.shard_by_shard, folder, work.first)
            result = first() if is_offline() else retries.retry_failed(job, folder, first, work.again)
    if left := result.manifest.notes.get("left_open", 0):
        text = (
            f"the stored attempts do not decide {left:,} of {job.problems.manifest.kept:,} problems, which leave as "
            f"{DropReason.TOO_FEW_ATTEMPTS.value}; `goldilocks run` without --offline samples them further"
        )
        warn(run.folder, job.stage.name, text)
    if not (result.reused and (result.folder / KEY).exists()):
        write_json(result.folder / KEY, key)
    return result


class _Judged:
    def __init__(
        self, job: StageRun, folder: Path, store: attempts.AttemptStore, session: SamplingSession, policy: Policy
    ) -> None:
        self._job, self._folder, self._store, self._session = job, folder, store, session
        self._policy = policy

    def first(self, index: int) -> Shard:
        return self._noted(self._session.shard(index), 0)

    @contextmanager
    def again(self, round_number: int) -> Iterator[Callable[[int], Shard]]:
        """Yield a function to retry refused problems, and failed verdicts with higher limits."""
        notes = [mark["notes"] for mark in finished_shards(self._folder)]
        refused = [
            index for index in retries.shards_before(self._folder, round_number) if notes[index].get(retries.REFUSED)
        ]
        self._session.begin_round(round_number, refused)
        with open_judge(self._job.run, round_number) as judge:

            def work(index: int) -> Shard:
                shard = self._session.shard(index) if index in refused else self._stored(index, notes[index])
                frame = read_shard(self._job.problems.folder, "kept", index)
                verdicts = _judge_failed(judge, frame, shard.tables["verdicts"])
                return self._noted(replace(shard, tables={**shard.tables, "verdicts": verdicts}), round_number)

            yield work

    def _stored(self, index: int, noted: Mapping[str, int]) -> Shard:
        names = sorted(path.parent.name for path in self._folder.glob(f"*/{index:05}.parquet"))
        tables = {name: read_shard(self._folder, name, index) for name in names}
        notes = {name: count for name, count in noted.items() if name not in (retries.FAILED, retries.ROUND)}
        return Shard(tables["counts"].height, tables, tables["counts"].height, notes)

    def _noted(self, shard: Shard, round_number: int) -> Shard:
        """Add notes and tables on verdicts, labels and voters."""
        verdicts, counts = shard.tables["verdicts"], shard.tables["counts"]
        labels = self._store.read(counts["problem"].to_list(), _LABELS)
        labelled, disagreements = pass_rates.disagreements_with_labels(verdicts, labels)
        stopped = counts.filter("is_decided").select("problem")
        figures = {
            "doubtful": verdicts.filter(is_doubtful()).height,
            "labelled": labelled,
            "disagreements_with_labels": disagreements.height,
            **retries.failure_notes(verdicts.filter(has_failed()).height, round_number),
        }
        tables = {**shard.tables, "disagreements_with_labels": disagreements, "stopped": stopped}
        if (voters := self._voters(verdicts)).height:
            tables[VOTERS] = voters
        return replace(shard, tables=tables, notes={**shard.notes, **figures})

    def _voters(self, verdicts: pl.DataFrame) -> pl.DataFrame:
        schema = pl.Schema({"problem": pl.String(), "index": VERDICT["index"], "voter": pl.String()})
        if not isinstance(self._policy, Recorded):
            return pl.DataFrame(schema=schema)
        named = {name: self._policy.models_at(name) for name in verdicts["problem"].unique()}
        rows = verdicts.select("problem", "index").iter_rows()
        found = [(name, index, named[name][index]) for name, index in rows if index < len(named[name])]
        return pl.DataFrame(found, schema, orient="row").drop_nulls()


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
        retries=RETRIES,
        by_verifier=True,
        part=part,
    )


def part_title(part: str) -> str:
    """Return a difficulty stage's title: Stage 1."""
    return part.replace("stage", "Stage ")
