"""The kept attempts of a training run judged again: by the verifier of today, under the recipe's rewards of today.

    RUN/rejudged/<verifier>/verdicts-00000.parquet …    the new verdicts, in `VERDICT`
    RUN/rejudged.jsonl                                  the attempts of which outcome or final answer changed

What the run was trained on stays as it is, and so does the run: nothing here changes a reward that was given. Attempts
at problems that the data no longer hold are counted and left out.

Not here: the command (flows), and reading what is kept (`training.rollouts.attempt_log`).
"""

from __future__ import annotations

import asyncio
import json
import shutil
from collections import Counter
from collections.abc import Awaitable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl

from curation.records import VERDICT, Outcome
from curation.storage.stages import atomic_replace, write_parquet
from curation.thinking import THINK
from curation.verify.math_judge import Verdict
from training.embedded_model.problems import Split
from training.recipe import TrainRecipe
from training.rollouts.attempt_log import EVALUATION_ATTEMPTS, attempt_tables, verdict_tables
from training.rollouts.judging import judge_response
from training.rollouts.rollouts import derive_seed
from training.rollouts.tasks import TrainingTask, load_tasks
from training.rollouts.verifiers import Verifiers, verifier_workers

REJUDGED, CHANGES = "rejudged", "rejudged.jsonl"

BATCH = 4096
"""Attempts that are with the verifier at once."""

_NAME = ("problem", "sampling", "index")
_ATTEMPT = (*_NAME, "policy", "prompt", "purpose", "step", "rollout_group", "text", "finish")


@dataclass(frozen=True, slots=True)
class ChangedVerdict:
    """An attempt of which outcome or final answer changed. An outcome is None where the format is broken.

    Example: ``ChangedVerdict("training", 3, "5f0c…", 57, "42", "wrong", "0.42e2", "text", "correct", "0.42e2",
    "number")``
    """

    purpose: str
    step: int
    problem: str
    index: int
    reference: str | None
    outcome_before: str | None
    answer_before: str | None
    method_before: str | None
    outcome: str | None
    answer: str | None
    method: str


@dataclass(slots=True)
class RejudgedRun:
    """What judging again came to; ``correct`` counts attempts, before and now, by purpose and, of evaluations, step."""

    verifiers_before: set[str] = field(default_factory=set)
    verifiers: set[str] = field(default_factory=set)
    attempts: int = 0
    left_out: int = 0  # at problems that are no longer in the data
    changes: list[ChangedVerdict] = field(default_factory=list)
    correct: dict[tuple[str, int | None], list[int]] = field(default_factory=dict)  # attempts, correct before, now


def rejudge(recipe: TrainRecipe, recipe_folder: Path, run: Path) -> RejudgedRun:
    """Judge all attempts that a run keeps, write the verdicts and the changes, and return them.

    Args:
        recipe: the run's, with changed rewards perhaps.
        recipe_folder: what its relative paths refer to.

    Raises:
        StoreError: the run keeps no attempts.
        SourceError: its problems are not there any more.
    """
    tasks = load_tasks(recipe.data, Split.TRAIN, recipe_folder)
    if recipe.evaluation.data is not None:
        held_out = load_tasks(recipe.evaluation.data, Split.HELD_OUT, recipe_folder)
        tasks |= dict(islice(held_out.items(), recipe.evaluation.problems))
    result = RejudgedRun()
    before = pl.concat([pl.DataFrame(schema=VERDICT), *verdict_tables(run)])
    result.verifiers_before.update(before["verifier"].unique())
    before = before.select(*_NAME, *(pl.col(name).alias(f"{name}_before") for name in ("outcome", "answer", "method")))
    shutil.rmtree(run / REJUDGED, ignore_errors=True)
    with Verifiers(tasks.values(), verifier_workers(), recipe.rewards) as verifiers:
        for number, table in enumerate(_batches(run)):
            known = table.filter(pl.col("problem").is_in(list(tasks)))
            result.left_out += table.height - known.height
            rows = asyncio.run(_judge(known, tasks, verifiers, recipe))
            result.attempts += len(rows)
            verdicts = pl.DataFrame(rows, schema=VERDICT)
            result.verifiers.update(verdicts["verifier"].unique())
            for (verifier,), own in verdicts.group_by("verifier", maintain_order=True):
                write_parquet(run / REJUDGED / str(verifier) / f"verdicts-{number:05}.parquet", own)
            _compare(known.hstack(verdicts.select("reference", "outcome", "answer", "method")), before, result)
    with atomic_replace(run / CHANGES) as out:
        for change in result.changes:
            out.write((json.dumps(asdict(change), ensure_ascii=False) + "\n").encode())
    return result


def _batches(run: Path) -> Iterator[pl.DataFrame]:
    for table in attempt_tables(run, _ATTEMPT):
        yield from table.iter_slices(BATCH)


async def _judge(
    attempts: pl.DataFrame, tasks: Mapping[str, TrainingTask], verifiers: Verifiers, recipe: TrainRecipe
) -> list[dict[str, Any]]:
    """Return a `VERDICT` row for each attempt, in their order."""
    kept_tags = THINK if recipe.tags.are_used else recipe.tags  # texts are kept in the form of the house

    async def judge(row: Mapping[str, Any]) -> dict[str, Any]:
        task = tasks[row["problem"]]
        tests_seed = derive_seed(recipe.seed, f"tests:{row['rollout_group']}")

        def ask(text: str) -> Awaitable[Verdict]:
            return verifiers.verify(task, text, tests_seed, row["finish"])

        domain = task.request.domain
        failure, verdict = await judge_response(ask, domain, row["text"], kept_tags, row["finish"])
        return {
            **{name: row[name] for name in ("problem", "policy", "prompt", "sampling", "index")},
            "verifier": verifiers.version(task.request.domain),
            "reference": task.reference_answer,
            "outcome": verdict.outcome.value if verdict is not None else None,
            "answer": verdict.answer if verdict is not None else None,
            "answer_class": 0 if verdict is not None and verdict.outcome is Outcome.CORRECT else None,
            "method": verdict.method if verdict is not None else failure,
        }

    return list(await asyncio.gather(*(judge(row) for row in attempts.iter_rows(named=True))))


def _compare(judged: pl.DataFrame, before: pl.DataFrame, result: RejudgedRun) -> None:
    """Add what changed in these attempts to the result."""
    both = judged.join(before, on=list(_NAME), how="left", maintain_order="left")
    is_correct = pl.col("outcome", "outcome_before") == Outcome.CORRECT.value
    step = pl.when(pl.col("purpose") == EVALUATION_ATTEMPTS).then("step").alias("at")
    counts = both.group_by("purpose", step).agg(pl.len(), is_correct.sum())
    for purpose, at, *numbers in counts.select("purpose", "at", "len", "outcome_before", "outcome").iter_rows():
        sums = result.correct.setdefault((purpose, at), [0, 0, 0])
        result.correct[purpose, at] = [old + new for old, new in zip(sums, numbers, strict=True)]
    differs = pl.any_horizontal(pl.col(name).ne_missing(pl.col(f"{name}_before")) for name in ("outcome", "answer"))
    names = ChangedVerdict.__slots__
    result.changes += [ChangedVerdict(**row) for row in both.filter(differs).select(names).iter_rows(named=True)]


def outcome_changes(result: RejudgedRun) -> Counter[tuple[str, str]]:
    """Return how often each outcome became another; one that is None is a broken ``format``."""
    pairs = ((change.outcome_before or "format", change.outcome or "format") for change in result.changes)
    return Counter(pair for pair in pairs if pair[0] != pair[1])
