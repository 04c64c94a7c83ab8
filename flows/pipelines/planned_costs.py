"""Read a run's plan, and compare it with actual attempts."""

from __future__ import annotations

import json

from curation.difficulty.planning import StagePlan, short_number
from curation.records import StoreError
from curation.storage.stages import read_manifest
from flows.run.run_folder import Run
from flows.stages.attempts import attempts_of

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
