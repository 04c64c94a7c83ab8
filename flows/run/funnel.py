"""Count each stage's rows in, kept, and dropped by reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from curation.publish.cards import FunnelRow
from curation.storage.stages import add_counts, finished_shards, read_json
from flows.run.pipeline import Pipeline, read_result
from flows.run.run_folder import Run
from flows.run.stage import Kind, Stage


@dataclass(frozen=True, slots=True)
class StageStatus:
    """A stage's progress; ``total`` shards are None while unknown."""

    stage: Stage
    row: FunnelRow
    finished: bool
    shards: int
    total: int | None
    notes: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_shown(self) -> bool:
        """Return False for finished measuring stages."""
        return self.stage.kind is not Kind.MEASURE or not self.finished


def status(run: Run, pipeline: Pipeline, verifier: str) -> list[StageStatus]:
    """Return each stage's stored progress, in order."""
    statuses: list[StageStatus] = []
    digests = dict.fromkeys((stage.name for stage in pipeline.stages), "")
    total: int | None = None
    for stage in pipeline.stages_of(run):
        folder = stage.folder_in(run, verifier)
        if statuses and not _is_current(folder, digests):
            statuses.append(StageStatus(stage, FunnelRow(stage.name, stage.title, 0, 0, {}), False, 0, total))
            continue
        result = read_result(stage, run, verifier)
        if result is None:
            statuses.append(_unfinished(stage, folder, total))
            continue
        digests[stage.name], total = result.manifest.digest, result.manifest.shards
        statuses.append(
            StageStatus(stage, result.funnel_row, True, result.manifest.shards, total, result.manifest.notes)
        )
    return statuses


def _is_current(folder: Path, digests: Mapping[str, str]) -> bool:
    inputs = (read_json(folder / "stage.json") or {}).get("inputs", {})
    return all(digests.get(name, digest) == digest for name, digest in inputs.items())


def _unfinished(stage: Stage, folder: Path, total: int | None) -> StageStatus:
    marks = list(finished_shards(folder))
    reasons = add_counts(mark["reasons"] for mark in marks)
    rows_in = sum(mark["in"] for mark in marks)
    kept = sum(mark["kept"] for mark in marks)
    return StageStatus(stage, FunnelRow(stage.name, stage.title, rows_in, kept, reasons), False, len(marks), total)
