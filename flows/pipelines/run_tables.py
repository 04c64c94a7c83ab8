"""Read how far a run is, and its plan, for `status`, its JSON and the page."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from curation.difficulty.planning import StagePlan, short_number
from curation.records import StoreError
from curation.storage.stages import read_manifest
from flows.pipelines.by_recipe import pipeline_of
from flows.publish.curated_set import published_verifier
from flows.publish.disputes import published_counts
from flows.publish.versions import Version, latest, newest_run, summary
from flows.run import retries
from flows.run.history import last_command, last_lines
from flows.run.pipeline import StageStatus, read_result, status
from flows.run.run_folder import Run
from flows.run.training import is_training, training_lines
from flows.stages.attempts import attempts_of
from flows.stages.judging import verifier_version
from flows.stages.questions import question_lines
from flows.stages.sources import made_lines


def status_table(folder: Path, *, with_lines: bool = True) -> dict[str, Any]:
    """Return a run's funnel, newest version, disputed labels, last command, and what is to be noted about it.

    Args:
        with_lines: also the notes, which read every shard's mark.
    """
    if is_training(folder):
        return {"kind": "training", "folder": str(folder.absolute()), "lines": list(training_lines(folder))}
    run = newest_run(folder.absolute())
    version, verifier = latest(run.folder), verifier_of(run)
    stages, disputed = status(run, pipeline_of(run.recipe), verifier), published_counts(run)
    questions = list(question_lines(run, verifier))
    return {
        "kind": "curation",
        "recipe": run.recipe.name,
        "folder": str(run.folder),
        "curated": str(run.folder / "curated") if (run.folder / "curated").exists() else None,
        "stages": [
            {
                "name": stage.row.stage,
                "title": stage.row.title,
                "in": stage.row.rows_in,
                "kept": stage.row.kept,
                "dropped": stage.row.dropped,
                "reasons": dict(stage.row.reasons),
                "finished": stage.finished,
                "shards": stage.shards,
                "shards_in_all": stage.total,
                "shown": stage.is_shown,
            }
            for stage in stages
        ],
        "version": asdict(replace(version, changes="")) if version is not None else None,
        "disputed": disputed,
        "questions": questions,
        "last_command": last_lines(run.folder),
        "lines": [*_lines(run, verifier, stages, version, disputed, questions)] if with_lines else [],
    }


def _lines(
    run: Run,
    verifier: str,
    stages: Sequence[StageStatus],
    version: Version | None,
    disputed: Mapping[str, int],
    questions: Sequence[str],
) -> Iterator[str]:
    yield from made_lines(run)
    if stages[-1].finished and not stages[-1].row.kept:
        yield "Nothing is left for the curated set; the table says where the rows went."
    if version is not None:
        yield summary(version)
    if disputed:
        counts = ", ".join(f"{name} {count:,}" for name, count in disputed.items())
        yield f"disputed labels: {counts}; see `goldilocks review {run.folder}`"
    for stage in stages:
        if count := stage.notes.get("templates", 0):
            problems = "1 problem has" if count == 1 else f"{count:,} problems have"
            yield f"{stage.row.title}: {problems} the wording of a benchmark's with other figures"
    yield from compare_with_plan(run, verifier)
    yield from _failure_lines(stages, run, verifier)
    yield from questions
    if (command := last_command(run.folder)) is not None:
        yield command
    yield from _label_lines(run, verifier)


def _failure_lines(stages: Sequence[StageStatus], run: Run, verifier: str) -> Iterator[str]:
    for stage in (one.stage for one in stages):
        folder, rule = stage.folder_in(run, verifier), stage.retries
        if not (failures := retries.failures_left(folder)):
            continue
        if pending := retries.pending_round(folder):
            becomes = f"the next run {rule.verb} them again (retry {pending} of {rule.rounds})"
        elif retries.last_round(folder) >= rule.rounds:
            becomes = f"no further run {rule.verb} them again; {rule.more}"
        else:
            becomes = "`goldilocks explain` names them"
        yield f"{stage.title}: {rule.what}: {failures:,}; {becomes}"


def _label_lines(run: Run, verifier: str) -> Iterator[str]:
    """Yield how many verdicts of each stage agree with the labels of recorded attempts."""
    for part in run.parts:
        result = read_result(attempts_of(part), run, verifier)
        if result is None or not (labelled := result.manifest.notes.get("labelled", 0)):
            continue
        differ = result.manifest.notes["disagreements_with_labels"]
        share = f"{labelled - differ:,} of {labelled:,} verdicts ({100 * (1 - differ / labelled):.2f} %)"
        others = f"; the others: {result.folder / 'disagreements_with_labels'}" if differ else ""
        yield f"{part}: {share} agree with the file's own labels{others}"


def verifier_of(run: Run) -> str:
    """Return the published set's verifier version, else the recipe's."""
    return published_verifier(run) or verifier_version(run)


PLAN = "plan.json"
"""In the run folder: each stage's `StagePlan.row`."""


def stored_plan(run: Run) -> dict[str, StagePlan]:
    """Return a run's plan by stage, if any."""
    path = run.folder / PLAN
    if not path.exists():
        return {}
    try:
        return {plan.stage: plan for plan in map(StagePlan.read, json.loads(path.read_text(encoding="utf-8")))}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(f"{path} is damaged ({error}); `goldilocks plan` writes it again.") from error


def compare_with_plan(run: Run, verifier: str) -> list[str]:
    """Return planned and actual attempts of stages that have run."""
    lines = []
    for part, plan in stored_plan(run).items():
        manifest = read_manifest(attempts_of(part).folder_in(run, verifier))
        if manifest is not None:
            took = f"{short_number(manifest.notes['counted'])} attempts in {manifest.notes['ms'] / 1000:,.0f} s"
            lines.append(f"{part}: planned {plan.attempts} attempts and {plan.tokens} tokens; took {took}")
    return lines
