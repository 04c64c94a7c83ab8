"""The tab of training: metrics over steps, of several runs side by side, and the samples of a step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from curation.records import ATTEMPT, VERDICT
from curation.thinking import split_response
from flows.page.charts import Chart, Points, chart
from flows.page.open_runs import shown_run
from flows.page.rendering import show
from flows.page.runs import ITSELF, ShownRun
from flows.run.progress import read_metrics
from flows.run.training_status import training_lines
from training.rollouts.attempt_log import attempt_tables, count_attempts, verdict_tables

CHARTS: Mapping[str, tuple[str, ...]] = {
    "pass@1 on held-out problems": ("evaluation/pass_rate",),
    "log-probability of held-out texts": ("evaluation/answer_logprob",),
    "reward": ("reward/total", "reward/correctness"),
    "pass rate": ("sampled/pass_rate", "batch/pass_rate"),
    "length in tokens": ("length/sampled_mean", "length/trained_mean"),
    "entropy": ("policy/entropy",),
    "idle share": ("speed/generator_idle_share", "speed/generator_held_share", "speed/trainer_idle_share"),
    "KL of generator and trainer": ("policy/kl_generator",),
    "gradient norm": ("policy/gradient_norm",),
    "age of tokens in versions": ("age/token_mean", "age/token_max"),
}
"""What is drawn, by title."""

INTERVALS: Mapping[str, tuple[str, str]] = dict.fromkeys(
    ("evaluation/pass_rate", "evaluation/answer_logprob"), ("evaluation/low", "evaluation/high")
)
MOST_RUNS, SAMPLES = 6, 40
_NAME = ("problem", "sampling", "index")
_SHOWN = (*_NAME, "purpose", "step", "version", "newest_version", "tokens", "finish", "text")


def charts_of(runs: Sequence[ShownRun]) -> list[Chart]:
    """Return the charts of training runs; a line's name is its run's where there are several."""
    metrics = {run.title: read_metrics(run.folder) for run in runs}
    made = []
    for title, names in CHARTS.items():
        series = {
            _line_name(name, run, len(runs) > 1, len(names) > 1): _points(rows, name)
            for name in names
            for run, rows in metrics.items()
        }
        drawn = chart(title, series)
        if drawn is not None:
            made.append(drawn)
    return made


def _line_name(name: str, run: str, several_runs: bool, several_names: bool) -> str:
    words = name.removeprefix("speed/").replace("/", " ").replace("_", " ")
    return f"{run}: {words}" if several_runs and several_names else run if several_runs else words


def _points(rows: Sequence[Mapping[str, Any]], name: str) -> Points:
    low, high = INTERVALS.get(name, ("", ""))
    return [(row["step"], row[name], row.get(low), row.get(high)) for row in rows if name in row and "step" in row]


def _training(request: Request) -> Response:
    shown = shown_run(request)
    every = [run for run in request.app.state.page.find_runs() if run.kind == "training"]
    own = [run for run in every if run.name == shown.name or _is_below(run, shown)]
    names = request.query_params.getlist("with")
    chosen = [run for run in every if run.name in names] if names else own
    chosen = chosen[:MOST_RUNS]
    sampled = {run.name: _steps(run) for run in chosen}
    return show(
        request,
        "training.html",
        run=shown,
        tab="training",
        every=every,
        chosen=[run.name for run in chosen],
        charts=charts_of(chosen),
        told=[(run, [line.replace(f"{run.folder}/", "") for line in training_lines(run.folder)[1:]]) for run in chosen],
        sampled=sampled,
    )


def _is_below(run: ShownRun, shown: ShownRun) -> bool:
    return shown.name == ITSELF or run.name.startswith(f"{shown.name}~")


def _steps(run: ShownRun) -> list[int]:
    """Return the steps of a run of which samples can be shown."""
    return [int(row["step"]) for row in read_metrics(run.folder) if "step" in row] if count_attempts(run.folder) else []


def samples_of(run: ShownRun, step: int) -> pl.DataFrame:
    """Return attempts that were finished at a step, with their verdicts.

    Raises:
        StoreError: the run keeps no attempts.
    """
    taken = [table.filter(pl.col("step") == step) for table in attempt_tables(run.folder, _SHOWN)]
    attempts = pl.concat([ATTEMPT.to_frame().select(_SHOWN), *taken]).sort("purpose", "problem", "index").head(SAMPLES)
    wanted = attempts.select(_NAME)
    judged = [table.join(wanted, on=_NAME, how="semi") for table in verdict_tables(run.folder)]
    verdicts = pl.concat([VERDICT.to_frame(), *judged])
    return attempts.join(
        verdicts.select(*_NAME, "reference", "outcome", "answer", "method"), on=_NAME, how="left", maintain_order="left"
    )


def _samples(request: Request) -> Response:
    shown = shown_run(request, "training")
    step = int(request.path_params["step"])
    rows = samples_of(shown, step).to_dicts()
    for row in rows:
        parts = split_response(row["text"] or "")
        row["thoughts"], row["answered"] = parts.thoughts, parts.answer or ""
    steps = _steps(shown)
    beside = [number for number in (step - 1, step + 1) if number in steps]
    return show(request, "samples.html", run=shown, tab="training", step=step, rows=rows, beside=beside)


ROUTES = [
    Route("/r/{run}/training", _training),
    Route("/r/{run}/training/{step:int}", _samples),
]
