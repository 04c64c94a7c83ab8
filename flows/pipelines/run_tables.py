"""A run's tables, for ``--json`` and the page."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from curation.records import ConfigError
from flows.pipelines.by_recipe import pipeline_of
from flows.pipelines.find_problem import find_id
from flows.publish.curated_set import published_verifier
from flows.publish.disputes import published_counts
from flows.publish.versions import latest, newest_run
from flows.run.funnel import StageStatus, status
from flows.run.history import last_lines
from flows.run.lookup import rows_of
from flows.run.run_folder import Run, open_run
from flows.run.stage import Kind
from flows.run.training_status import is_training, training_lines
from flows.stages.judging import verifier_version
from flows.stages.questions import question_lines
from flows.stages.variants import VARIANTS

_MEASURED = {"decisions": "problem", "verdicts": "problem"}
"""Tables of measuring stages, with the column of problems."""

_KEYS = {
    Kind.FILTER: {"kept": "id", "dropped": "id"},
    Kind.EXPORT: {"kept": "id", "dropped": "id"},
    Kind.ADDITION: {"kept": "translation_of", "dropped": "id"},
}

_OF_VARIANTS = {"kept": "variant_of", "dropped": "id"}


def status_table(folder: Path) -> dict[str, Any]:
    """Return a run's funnel, newest version, disputed labels and last command."""
    if is_training(folder):
        return {"kind": "training", "folder": str(folder.absolute()), "lines": list(training_lines(folder))}
    run = newest_run(folder.absolute())
    version = latest(run.folder)
    verifier = verifier_of(run)
    return {
        "kind": "curation",
        "recipe": run.recipe.name,
        "folder": str(run.folder),
        "curated": str(run.folder / "curated") if (run.folder / "curated").exists() else None,
        "stages": [_stage(stage) for stage in status(run, pipeline_of(run.recipe), verifier)],
        "version": asdict(replace(version, changes="")) if version is not None else None,
        "disputed": published_counts(run),
        "questions": list(question_lines(run, verifier)),
        "last_command": last_lines(run.folder),
    }


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
    }


def explain_table(folder: Path, problem: str) -> dict[str, Any]:
    """Return a problem's rows in each stage."""
    if is_training(folder):
        raise ConfigError(f"{folder} holds a training run, of which `explain` has no --json; leave it out.")
    run = open_run(folder.absolute())
    name, verifier = find_id(run, problem), verifier_of(run)
    stages: list[dict[str, Any]] = []
    for stage in pipeline_of(run.recipe).stages_of(run):
        place = stage.folder_in(run, verifier)
        keys = _KEYS.get(stage.kind, _MEASURED) if stage.name != VARIANTS.name else _OF_VARIANTS
        found = {table: rows_of(place, table, name, key).to_dicts() for table, key in keys.items()}
        stages.append({"name": stage.name, **{table: rows for table, rows in found.items() if rows}})
    return {"problem": name, "recipe": run.recipe.name, "stages": stages}


def verifier_of(run: Run) -> str:
    """Return the published set's verifier version, else the recipe's."""
    return published_verifier(run) or verifier_version(run)
