"""Read how far a run is, for `status`, its JSON and the page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from flows.pipelines.by_recipe import pipeline_of
from flows.pipelines.planned_costs import compare_with_plan
from flows.publish.curated_set import published_verifier
from flows.publish.disputes import published_counts
from flows.publish.versions import Version, latest, newest_run, summary
from flows.run import retries
from flows.run.funnel import StageStatus, status
from flows.run.history import last_command, last_lines
from flows.run.pipeline import read_result
from flows.run.run_folder import Run
from flows.run.training_status import is_training, training_lines
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
        "stages": [_stage(stage) for stage in stages],
        "version": asdict(replace(version, changes="")) if version is not None else None,
        "disputed": disputed,
        "questions": questions,
        "last_command": last_lines(run.folder),
        "lines": _lines(run, verifier, stages, version, disputed, questions) if with_lines else [],
    }


def _lines(
    run: Run,
    verifier: str,
    stages: Sequence[StageStatus],
    version: Version | None,
    disputed: Mapping[str, int],
    questions: Sequence[str],
) -> list[str]:
    lines = [*made_lines(run)]
    if stages[-1].finished and not stages[-1].row.kept:
        lines.append("Nothing is left for the curated set; the table says where the rows went.")
    if version is not None:
        lines.append(summary(version))
    if disputed:
        lines.append(f"disputed labels: {_counts_text(disputed)}; see `goldilocks review {run.folder}`")
    lines += [*_template_lines(stages), *compare_with_plan(run, verifier), *_failure_lines(stages, run, verifier)]
    lines += [*questions, *filter(None, [last_command(run.folder)]), *_label_lines(run, verifier)]
    return lines


def _stage(stage: StageStatus) -> dict[str, Any]:
    row = stage.row
    return {
        "name": row.stage,
        "title": row.title,
        "in": row.rows_in,
        "kept": row.kept,
        "dropped": row.dropped,
        "reasons": dict(row.reasons),
        "finished": stage.finished,
        "shards": stage.shards,
        "shards_in_all": stage.total,
        "shown": stage.is_shown,
    }


def _counts_text(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in counts.items())


def _template_lines(stages: Sequence[StageStatus]) -> Iterator[str]:
    for stage in stages:
        if count := stage.notes.get("templates", 0):
            problems = "1 problem has" if count == 1 else f"{count:,} problems have"
            yield f"{stage.row.title}: {problems} the wording of a benchmark's with other figures"


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
