"""The funnel of a run, finished or not: rows in, kept, and dropped by reason, stage by stage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from curation.cards import FunnelRow
from curation.store import Manifest, add_counts, finished_shards, read_manifest, stage_inputs
from flows.run.run_folder import ALL_TITLES, Done, Run


@dataclass(frozen=True, slots=True)
class StageStatus:
    """How far a stage has come. ``shards`` counts finished shards; ``total`` is None while unknown."""

    row: FunnelRow
    finished: bool
    shards: int
    total: int | None


STAGES = frozenset(ALL_TITLES) - {"sources"}
"""Names of stages that other stages are made from, as they stand in a stage's inputs."""

MEASURING = ("attempts", "verdicts", "matrix", "generators")
"""Stages that measure and drop nothing; the funnel leaves them out, the status shows them while they run."""


def funnel_rows(stages: Iterable[Done], titles: Mapping[str, str]) -> Iterator[FunnelRow]:
    """The funnel of finished stages."""
    for done in stages:
        yield _row(done.name, titles.get(done.name, done.name), done.manifest)


def status(run: Run, verifier: str) -> list[StageStatus]:
    """Every stage of the run in order, as it lies on disk."""
    names = list(run.filters)
    names += [f"{part}.{kind}" for part in run.stages for kind in ("attempts", "verdicts", "decisions")]
    seen: list[StageStatus] = []
    digests: dict[str, str] = {}
    total: int | None = None
    for name in (*names, "export"):
        folder = run.where(name, verifier)
        if not _is_current(folder, digests):
            seen.append(StageStatus(FunnelRow(name, ALL_TITLES[name], 0, 0, {}), False, 0, total))
            continue
        manifest = read_manifest(folder)
        seen.append(_status(name, folder, manifest, total))
        if manifest is not None:
            digests[name] = manifest.digest
            total = manifest.shards
    return seen


def _is_current(folder: Path, digests: Mapping[str, str]) -> bool:
    """Whether the folder was made from the stages before it as they are now, not from those of an earlier run."""
    made_from = {name: digest for name, digest in stage_inputs(folder).items() if name in STAGES}
    return all(digests.get(name) == digest for name, digest in made_from.items())


def _status(name: str, folder: Path, manifest: Manifest | None, total: int | None) -> StageStatus:
    if manifest is not None:
        return StageStatus(_row(name, ALL_TITLES[name], manifest), True, manifest.shards, manifest.shards)
    marks = list(finished_shards(folder))
    reasons = add_counts(mark["reasons"] for mark in marks)
    rows_in = sum(mark["in"] for mark in marks)
    kept = sum(mark["kept"] for mark in marks)
    return StageStatus(FunnelRow(name, ALL_TITLES[name], rows_in, kept, reasons), False, len(marks), total)


def _row(name: str, title: str, manifest: Manifest) -> FunnelRow:
    return FunnelRow(name, title, manifest.rows_in, manifest.kept, dict(manifest.reasons))
