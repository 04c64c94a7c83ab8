"""Implements `goldilocks run` and `goldilocks status`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.table import Table
from rich.text import Text

from curation.public_urls import public_text
from flows.cli.as_json import print_json
from flows.pipelines.by_recipe import check_inputs, pipeline_of
from flows.pipelines.curating import curate
from flows.pipelines.planned_costs import compare_with_plan
from flows.pipelines.run_tables import status_table
from flows.publish.curated_set import published_verifier
from flows.publish.disputes import published_counts
from flows.publish.versions import latest, newest_run, summary
from flows.run import retries
from flows.run.funnel import StageStatus, status
from flows.run.history import last_command
from flows.run.offline import offline
from flows.run.pipeline import read_result
from flows.run.recipe import recipe_warnings
from flows.run.run_folder import Run, new_run
from flows.run.terminal import SafeConsole
from flows.run.training_status import is_training, training_lines
from flows.serve.server import user_api
from flows.stages.attempts import attempts_of
from flows.stages.judging import verifier_version
from flows.stages.questions import question_lines
from flows.stages.sources import made_lines


def run_recipe(
    path: Path,
    overrides: Sequence[str],
    out: Path | None,
    *,
    dry: bool = False,
    as_json: bool = False,
    no_model: bool = False,
) -> Path | None:
    """Run a recipe and return the set's folder, or None after a dry run.

    Args:
        no_model: ask no model; such a run is no flow run of Prefect.
    """
    run = new_run(path, overrides, out)
    run.check_owner()
    for line in recipe_warnings(run.recipe, run.recipe_folder):
        print(f"warning: {line}", file=sys.stderr)
    if dry:
        _print_plan(run)
        return None
    if no_model:
        with offline():
            curated = curate(path.absolute(), run.folder, list(overrides))
    else:
        curated = _curate(run, path.absolute(), list(overrides))
    if as_json:
        print_json(status_table(run.folder))
        return curated
    print_funnel(newest_run(run.folder))
    console = SafeConsole()
    console.print(f"\ncurated set and card: {curated / 'README.md'}")
    return curated


def _curate(run: Run, path: Path, overrides: list[str]) -> Path:
    """Run the pipeline, as a flow run if the user has a Prefect API."""
    if user_api() is None:
        return curate(path, run.folder, overrides)
    from flows.loop import CURATION

    curated = CURATION[run.recipe.flow].with_options(retries=0)(path, run.folder, overrides)
    assert curated is not None, "only a deployment's run is passed over"
    return curated


def show_status(folder: Path) -> None:
    """Print a run's funnel so far, or a training run's progress."""
    if is_training(folder):
        SafeConsole().print("\n".join(training_lines(folder)))
        return
    print_funnel(newest_run(folder.absolute()))


def print_funnel(run: Run) -> None:
    """Print the funnel as a table, and the set's summary."""
    verifier = published_verifier(run) or verifier_version(run)
    rows = status(run, pipeline_of(run.recipe), verifier)
    table = Table(title=Text(f"{run.recipe.name}: {run.folder}"), title_justify="left", box=None, pad_edge=False)
    for name in ("stage", "in", "kept", "dropped", "kept %"):
        table.add_column(name, justify="left" if name == "stage" else "right")
    table.add_column("why dropped", overflow="fold")
    for stage_status in rows:
        if stage_status.is_shown:
            _add_stage(table, stage_status)
    console = SafeConsole(soft_wrap=False)
    console.print(table, markup=True)
    for line in made_lines(run):
        console.print(line, soft_wrap=True)
    if rows[-1].finished and not rows[-1].row.kept:
        console.print("Nothing is left for the curated set; the table says where the rows went.")
    if (version := latest(run.folder)) is not None:
        console.print(summary(version), soft_wrap=True)
    if disputed := published_counts(run):
        counts_text = ", ".join(f"{kind} {count:,}" for kind, count in disputed.items())
        console.print(f"disputed labels: {counts_text}; see `goldilocks review {run.folder}`", soft_wrap=True)
    for line in (
        *_template_lines(rows),
        *compare_with_plan(run, verifier),
        *_failure_lines(run, verifier),
        *question_lines(run, verifier),
    ):
        console.print(line, soft_wrap=True)
    if (history := last_command(run.folder)) is not None:
        console.print(history, soft_wrap=True)
    for part in run.parts:
        verdicts_result = read_result(attempts_of(part), run, verifier)
        labelled = verdicts_result.manifest.notes.get("labelled", 0) if verdicts_result is not None else 0
        if verdicts_result is not None and labelled:
            disagreements = verdicts_result.manifest.notes["disagreements_with_labels"]
            share = (
                f"{labelled - disagreements:,} of {labelled:,} verdicts ({100 * (1 - disagreements / labelled):.2f} %)"
            )
            others = f"; the others: {verdicts_result.folder / 'disagreements_with_labels'}" if disagreements else ""
            console.print(f"{part}: {share} agree with the file's own labels{others}", soft_wrap=True)


def _template_lines(rows: Sequence[StageStatus]) -> Iterator[str]:
    for row in rows:
        if count := row.notes.get("templates", 0):
            problems = "1 problem has" if count == 1 else f"{count:,} problems have"
            yield f"{row.stage.title}: {problems} the wording of a benchmark's with other figures"


def _failure_lines(run: Run, verifier: str) -> Iterator[str]:
    for stage in pipeline_of(run.recipe).stages_of(run):
        folder = stage.folder_in(run, verifier)
        failures = retries.failures_left(folder)
        if not failures:
            continue
        pending, most = retries.pending_round(folder), stage.retries.rounds
        if pending:
            becomes = f"the next run {stage.retries.verb} them again (retry {pending} of {most})"
        elif retries.last_round(folder) >= most:
            becomes = f"no further run {stage.retries.verb} them again; {stage.retries.more}"
        else:
            becomes = "`goldilocks explain` names them"
        yield f"{stage.title}: {stage.retries.what}: {failures:,}; {becomes}"


def _add_stage(table: Table, stage_status: StageStatus) -> None:
    row = stage_status.row
    if not stage_status.finished and not stage_status.shards:
        table.add_row(row.title, "", "", "", "", "not begun")
        return
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in sorted(row.reasons.items(), key=lambda r: -r[1]))
    if not stage_status.finished:
        out_of = f" of {stage_status.total}" if stage_status.total is not None else ""
        reasons = f"[so far: {stage_status.shards}{out_of} shards] {reasons}"
    share = f"{100 * row.kept / row.rows_in:.1f}" if row.rows_in else ""
    dropped = f"{row.dropped:,}"
    table.add_row(row.title, f"{row.rows_in:,}", f"{row.kept:,}", dropped, share, reasons.replace("[", "\\["))


def _print_plan(run: Run) -> None:
    recipe = run.recipe
    console = SafeConsole()
    console.print(f"{recipe.name}: would run {recipe.flow} in {run.folder}")
    check_inputs(run)
    stages = pipeline_of(recipe).stages_of(run)
    for line in (line for stage in stages for line in stage.describe(run)):
        console.print(f"  {public_text(line)}")
    finished = [stage.name for stage in stages if not stage.by_verifier and read_result(stage, run) is not None]
    console.print(
        f"  finished there, and reused where nothing it is made from has changed: {', '.join(finished) or 'nothing'}"
    )
