"""Count each stage's rows in, kept, and dropped by reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from curation.publish.cards.facts import FunnelRow
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
        inputs = (read_json(folder / "stage.json") or {}).get("inputs", {})
        is_current = not statuses or all(digests.get(name, digest) == digest for name, digest in inputs.items())
        result = read_result(stage, run, verifier) if is_current else None
        if result is not None:
            made = result.manifest
            digests[stage.name], total = made.digest, made.shards
            statuses.append(StageStatus(stage, result.funnel_row, True, made.shards, total, made.notes))
            continue
        marks = list(finished_shards(folder)) if is_current else []
        rows_in, kept = sum(mark["in"] for mark in marks), sum(mark["kept"] for mark in marks)
        row = FunnelRow(stage.name, stage.title, rows_in, kept, add_counts(mark["reasons"] for mark in marks))
        statuses.append(StageStatus(stage, row, False, len(marks), total))
    return statuses
