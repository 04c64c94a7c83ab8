"""Run a pipeline's stages, and read their results and progress."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import takewhile

from curation.publish.cards.facts import FunnelRow
from curation.records import StoreError
from curation.storage.stages import add_counts, finished_shards, read_json, read_manifest
from flows.run import mirroring
from flows.run.history import record_item
from flows.run.policy_session import keep_open
from flows.run.run_folder import Run
from flows.run.stage import Kind, Results, Stage, StageResult, StageRun, Step

Item = Stage | Step


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A flow's stages and steps, in order.

    Raises:
        ValueError: names or folders repeat.
    """

    name: str
    items: tuple[Item, ...]

    def __post_init__(self) -> None:
        names = [item.name for item in self.items]
        folders = [item.folder for item in self.items if isinstance(item, Stage)]
        repeated = [text for text, count in Counter([*names, *folders]).items() if count > 1]
        if repeated:
            raise ValueError(f"pipeline {self.name}: {', '.join(repeated)} is in it twice")

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Return the stages, without steps."""
        return tuple(item for item in self.items if isinstance(item, Stage))

    def stages_of(self, run: Run) -> tuple[Stage, ...]:
        """Return a run's enabled stages."""
        return tuple(stage for stage in self.stages if stage.enabled(run))

    def before_attempts(self, run: Run) -> tuple[Stage, ...]:
        """Return a run's enabled stages before any attempt."""
        return tuple(takewhile(lambda stage: not stage.part, self.stages_of(run)))


def run_pipeline(run: Run, items: Iterable[Item], results: Results | None = None) -> Results:
    """Run enabled items in order, with each model started once; return earlier and new results."""
    results = results or Results()
    with keep_open():
        for item in [item for item in items if item.enabled(run)]:
            result = _run_item(item, run, results)
            results = results.plus(result) if result is not None else results
            mirroring.copy(run)
    return results


def _run_item(item: Item, run: Run, results: Results) -> StageResult | None:

    def work() -> StageResult | None:
        begun = time.monotonic()
        result: StageResult | None = None
        if isinstance(item, Stage):
            result = run_stage(item, run, results)
        else:
            item.work(run, results)
        record_item(run.folder, item.name, result, begun)
        return result

    return as_task(item, work)()


def as_task(item: Item, work: Callable[[], StageResult | None]) -> Callable[[], StageResult | None]:
    """Return an item's work, a task in a Prefect flow run."""
    if not in_flow_run():
        return work
    from prefect import task
    from prefect.cache_policies import NO_CACHE

    title = item.title if isinstance(item, Stage) else item.name
    return task(name=title, task_run_name=title, cache_policy=NO_CACHE, persist_result=False)(work)


def in_flow_run() -> bool:
    """Return whether a Prefect flow runs."""
    if "prefect" not in sys.modules:
        return False
    from prefect.context import FlowRunContext

    return FlowRunContext.get() is not None


def run_stage(stage: Stage, run: Run, results: Results) -> StageResult:
    """Run one stage with the results it reads."""
    return stage.work(StageRun(stage, run, results))


def read_result(stage: Stage, run: Run, verifier: str = "") -> StageResult | None:
    """Return a finished stage's result, with any settings, or None."""
    folder = stage.folder_in(run, verifier)
    manifest = read_manifest(folder)
    return StageResult(stage, folder, manifest, reused=True) if manifest is not None else None


def read_results(run: Run, stages: Iterable[Stage], verifier: str = "") -> Results:
    """Return finished stages' results, without missing ones that `comes_later`.

    Raises:
        StoreError: another stage is not finished.
    """
    results = Results()
    for stage in stages:
        result = read_result(stage, run, verifier)
        if result is not None:
            results = results.plus(result)
        elif not stage.comes_later:
            raise StoreError(f"{stage.folder_in(run, verifier)} is not finished; finish the run with `goldilocks run`.")
    return results


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
