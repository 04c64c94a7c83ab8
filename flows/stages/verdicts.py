"""Verdicts on the attempts of a difficulty stage, and which of a problem's answers are the same.

Verdicts that failed are judged again by the next run (`flows.run.retries`); all others stay as they are. Both
difficulty stages are made by one template, `verdicts_of`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path

import polars as pl

from curation.difficulty import pass_rates
from curation.difficulty.failed_verdicts import has_failed, is_doubtful, replace_failed
from curation.option_letters import option_letter
from curation.records import ATTEMPT, VERDICT
from curation.storage.attempts import AttemptStore
from curation.storage.stages import Shard, read_json, read_shard
from curation.verify.math_judge import Judge, JudgeTask, Response
from flows.run import retries
from flows.run.run_folder import Run, difficulty_stage
from flows.run.stage import Kind, Stage, StageResult, StageRun
from flows.stages.attempts import JUDGED_BY, attempt_store, attempts_of, judged_by, part_title
from flows.stages.judging import open_judge

_LABELS = ("problem", "index", "label")
_JUDGED_BY = ("id", "answer", "lang", "raw_answer", "statement")


def judge_attempts(job: StageRun) -> StageResult:
    """Judge the attempts of the stage.

    Verdicts made while sampling are taken over, up to each problem's stop, where verifier, band and stopping rule are
    still the same. Else all stored attempts are judged again, and the decisions say which of them count.
    """
    run, part = job.run, job.stage.part
    result = job.results[attempts_of(part)]
    attempts, problems = result.folder, job.problems.folder
    limit, store = difficulty_stage(run.recipe, part).band.attempts, attempt_store(run, result)
    with open_judge(run) as judge:
        is_current = read_json(attempts / JUDGED_BY) == judged_by(run, part, judge.version)

        def work(index: int) -> Shard:
            frame = read_shard(problems, "kept", index)
            counts = read_shard(attempts, "counts", index)
            rows = store.read(frame["id"].to_list(), _LABELS if is_current else tuple(ATTEMPT))
            rows = rows.filter(pl.col("index") < limit)
            verdicts = read_shard(attempts, "verdicts", index) if is_current else judge_rows(judge, frame, rows)
            return _shard(frame.height, verdicts, rows, counts.filter("is_decided").select("problem"))

        version, settings = f"{judge.version} verdicts@4", f"{run.recipe.verify.digest()} {is_current}"
        folder = job.open(version, settings, job.problems, result, verifier=judge.version)
        again = partial(_judge_again, job, folder.folder, store)
        return retries.retry_failed(job, folder, partial(job.shard_by_shard, folder, work), again)


@contextmanager
def _judge_again(
    job: StageRun, place: Path, store: AttemptStore, round_number: int
) -> Iterator[Callable[[int], Shard]]:
    """Yield what judges the failed verdicts of a shard again, with the limits of a round of retries."""
    problems = job.problems.folder
    with open_judge(job.run, round_number) as judge:

        def work(index: int) -> Shard:
            frame = read_shard(problems, "kept", index).select(_JUDGED_BY)
            verdicts = _judge_failed(judge, frame, read_shard(place, "verdicts", index))
            rows = store.read(frame["id"].to_list(), _LABELS)
            return _shard(frame.height, verdicts, rows, read_shard(place, "stopped", index), round_number)

        yield work


def _shard(
    problems: int, verdicts: pl.DataFrame, attempts: pl.DataFrame, stopped: pl.DataFrame, round_number: int = 0
) -> Shard:
    labelled, disagreements = pass_rates.disagreements_with_labels(verdicts, attempts)
    failures = verdicts.filter(has_failed()).height
    return Shard(
        problems,
        {"verdicts": verdicts, "disagreements_with_labels": disagreements, "stopped": stopped},
        kept_rows=problems,
        notes={
            "attempts": verdicts.height,
            "doubtful": verdicts.filter(is_doubtful()).height,
            "labelled": labelled,
            "disagreements_with_labels": disagreements.height,
            **retries.failure_notes(failures, round_number),
        },
    )


def _judge_failed(judge: Judge, problems: pl.DataFrame, verdicts: pl.DataFrame) -> pl.DataFrame:
    """Return `VERDICT` rows in their order, with the failed ones judged again beside the problem's other answers."""
    tasks = {
        name: JudgeTask(name, answer or "", lang, (), option_letter(raw, answer), statement=statement)
        for name, answer, lang, raw, statement in problems.iter_rows()
    }
    numbered = verdicts.with_row_index("place")
    of_failed = numbered.filter(has_failed().any().over("problem")).partition_by("problem", maintain_order=True)
    futures = [judge.submit(tasks[rows["problem"][0]], rows["answer"].to_list()) for rows in of_failed]
    again = [replace_failed(rows, future.result()) for rows, future in zip(of_failed, futures, strict=True)]
    others = numbered.filter(~has_failed().any().over("problem"))
    return pl.concat([others, *again]).sort("place").drop("place")


def judge_rows(judge: Judge, problems: pl.DataFrame, attempts: pl.DataFrame) -> pl.DataFrame:
    """Return `VERDICT` rows in the order of the attempts, which are ordered by problem and index.

    Args:
        problems: `PROBLEM` rows; attempts are judged against their references.
        attempts: `ATTEMPT` rows of these problems.
    """
    references = {
        name: (answer or "", lang, option_letter(raw, answer), statement)
        for name, answer, lang, raw, statement in problems.select(_JUDGED_BY).iter_rows()
    }
    groups = attempts.group_by("problem", maintain_order=True).agg("text", "answer", "finish")
    tasks = (
        JudgeTask(
            name,
            reference,
            lang,
            tuple(map(Response, texts, answers, finishes)),
            letter,
            statement=statement,
        )
        for name, texts, answers, finishes in groups.iter_rows()
        for reference, lang, letter, statement in (references[name],)
    )
    judged = [verdict for result in judge.judge(tasks) for verdict in result.verdicts]
    compared = pl.Series("reference", [references[name][0] for name in attempts["problem"]], pl.String)
    return (
        attempts.select("problem", "policy", "prompt", "sampling", "index")
        .with_columns(
            pl.lit(judge.version).alias("verifier"),
            compared,
            pl.Series("outcome", [verdict.outcome.value for verdict in judged], pl.String),
            pl.Series("answer", [verdict.answer for verdict in judged], pl.String),
            pl.Series("answer_class", [verdict.answer_class for verdict in judged], pl.Int32),
            pl.Series("method", [verdict.method for verdict in judged], pl.String),
        )
        .select(VERDICT.names())
    )


@cache
def verdicts_of(part: str) -> Stage:
    """Return the stage in which the attempts of a difficulty stage are judged."""

    def is_enabled(run: Run) -> bool:
        return part in run.parts

    return Stage(
        name=f"{part}.verdicts",
        title=f"{part_title(part)}: verdicts",
        folder=f"verdicts/{part}",
        work=judge_attempts,
        kind=Kind.MEASURE,
        enabled=is_enabled,
        runs_anywhere=True,
        by_verifier=True,
        part=part,
        task="verdicts",
    )
