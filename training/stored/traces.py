"""Publish the traces of a cold start as a Hugging Face set in RUN/traces.

Invariant: the same traces give the same bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from curation.publish.pages import data_files, render_template, yaml_header
from curation.storage.stages import atomic_write, write_parquet
from training.config import StoredSettings
from training.rollouts.tasks import TrainingTask
from training.stored.supply import StoredSupply

TRACES = "traces"

TRACE = pl.Schema(
    {
        "id": pl.String(),  # the problem's
        "domain": pl.String(),
        "statement": pl.String(),
        "answer": pl.String(),
        "lang": pl.String(),
        "response": pl.String(),  # in the default thinking tags
        "teacher": pl.String(),  # model@revision
        "run": pl.String(),  # the run's name
        "pass_rate": pl.Float64(),  # of all of the problem's stored attempts
        "tokens": pl.Int32(),
    }
)


def publish_traces(
    out: Path,
    name: str,
    supply: StoredSupply,
    tasks: dict[str, TrainingTask],
    settings: StoredSettings,
    licences: Sequence[str],
) -> Path:
    """Write the traces and a card; return the folder."""
    rows = []
    for problem, attempt, rollout in supply.texts():
        task, source = tasks[problem.problem], supply.sources[attempt.source]
        request = task.request
        problem_values = (request.id, request.domain.value, request.statement, task.reference_answer, request.lang)
        attempt_values = (
            rollout.completion.text,
            source.store.key.policy,
            source.run.name,
            problem.pass_rate,
            rollout.tokens,
        )
        rows.append((*problem_values, *attempt_values))
    table = pl.DataFrame(rows, schema=TRACE, orient="row")
    folder = out / TRACES
    (folder / "data").mkdir(parents=True, exist_ok=True)
    write_parquet(folder / "data" / "train-00000-of-00001.parquet", table)
    atomic_write(folder / "README.md", _card(name, table, supply, settings, licences))
    return folder


def _card(
    name: str, table: pl.DataFrame, supply: StoredSupply, settings: StoredSettings, licences: Sequence[str]
) -> str:
    rates = table.unique("id")["pass_rate"]
    bars = [(f"{low:g} to {low + 0.25:g}", rates.is_between(low, low + 0.25, "left").sum()) for low in (0.0, 0.25, 0.5)]
    header = {
        "license": licences[0] if len(set(licences)) == 1 else "other",
        "task_categories": ["text-generation"],
        "configs": data_files(),
    }
    return render_template(
        Path(__file__).with_name("traces.md.jinja"),
        header=yaml_header(header),
        name=name,
        table=table,
        problems=table["id"].n_unique(),
        teachers=sorted(Counter(table["teacher"]).items()),
        counts=supply.counts,
        settings=settings,
        bars=[*bars, ("0.75 to 1", (rates >= 0.75).sum())],
        licences=licences,
    )
