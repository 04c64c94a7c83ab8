"""The funnel of a run, finished or not: rows in, kept, and dropped by reason, stage by stage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from curation.cards import FunnelRow
from curation.store import Manifest, finished_shards, read_manifest
from flows.run_folder import TITLES, Done, Run


@dataclass(frozen=True, slots=True)
class StageStatus:
    """How far a stage has come. ``shards`` counts finished shards; ``total`` is None while unknown."""

    row: FunnelRow
    finished: bool
    shards: int
    total: int | None


MEASURING = ("attempts", "verdicts")
"""Stages that measure and drop nothing; the funnel leaves them out, the status shows them while they run."""


def funnel_rows(stages: Iterable[Done], titles: Mapping[str, str]) -> Iterator[FunnelRow]:
    """The funnel of finished stages."""
    for done in stages:
        yield _row(done.name, titles.get(done.name, done.name), done.manifest)


def status(run: Run, verifier: str) -> list[StageStatus]:
    """Every stage of the run in order, as it lies on disk."""
    names = ["sources", "statements", "references", "duplicates"]
    names += [f"{part}.{kind}" for part in run.stages for kind in (*MEASURING, "decisions")]
    found: list[StageStatus] = []
    total: int | None = None
    for name in (*names, "export"):
        seen = _status(name, run.where(name, verifier), total)
        found.append(seen)
        if seen.finished:
            total = seen.shards
    return found


def _status(name: str, folder: Path, total: int | None) -> StageStatus:
    manifest = read_manifest(folder)
    if manifest is not None:
        return StageStatus(_row(name, TITLES[name], manifest), True, manifest.shards, manifest.shards)
    marks = list(finished_shards(folder))
    reasons: dict[str, int] = {}
    for mark in marks:
        for reason, count in mark["reasons"].items():
            reasons[reason] = reasons.get(reason, 0) + count
    rows_in = sum(mark["in"] for mark in marks)
    kept = sum(mark["kept"] for mark in marks)
    return StageStatus(FunnelRow(name, TITLES[name], rows_in, kept, reasons), False, len(marks), total)


def _row(name: str, title: str, manifest: Manifest) -> FunnelRow:
    return FunnelRow(name, title, manifest.rows_in, manifest.kept, dict(manifest.reasons))
