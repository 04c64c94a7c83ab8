"""What a page keeps of the runs it shows, as long as they stay as they are."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any, Generic, TypeVar

from starlette.exceptions import HTTPException
from starlette.requests import Request

from curation.difficulty.refresh_forecast import Anchor
from curation.records import GoldilocksError
from curation.verify.math_judge import Judge
from flows.page.dispute_queue import Dispute, disputes_of, ranked, weigh
from flows.page.row_index import RowIndex, made_from
from flows.page.runs import ShownRun
from flows.publish.versions import newest_run
from flows.run.run_folder import Run
from flows.stages.judging import open_judge

_Result = TypeVar("_Result")

MOST_INDEXES = 4
"""Runs whose rows are held in memory, those asked for last."""

MOST_EVIDENCE = 16
"""Disputed problems whose evidence is held in memory, those gathered last."""


@dataclass(frozen=True, slots=True)
class _Outcome(Generic[_Result]):
    """What work done aside came to, or the sentence that states why it failed."""

    result: _Result | None
    trouble: str | None


_Ranking = Future[_Outcome[dict[str, float]]]
"""The chance of each disputed problem that its label is wrong."""


@dataclass(frozen=True, slots=True)
class FittedModel:
    """The difficulty model of a run: being fitted, fitted (None where a run has none), or failed by ``trouble``."""

    is_ready: bool
    anchor: Anchor | None
    trouble: str | None


class OpenRuns:
    """Runs of a page by their folders: their rows, and their verifiers once someone judges a label. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._judging = Lock()
        self._rows: dict[Path, tuple[str, RowIndex]] = {}
        self._reading: dict[Path, Lock] = {}
        self._disputes: dict[
            Path, tuple[tuple[int, ...], list[Dispute], Future[_Outcome[dict[str, float]]] | None]
        ] = {}
        self._aside = ThreadPoolExecutor(1, "aside")
        self._judges: dict[Path, Judge] = {}
        self._unranked: dict[Path, str] = {}
        self._ahead = ThreadPoolExecutor(1, "ahead")
        self._evidence: dict[tuple[Path, str], tuple[str, Future[dict[str, Any]]]] = {}
        self._models: dict[Path, tuple[str, Future[_Outcome[Anchor | None]]]] = {}
        self._stack = ExitStack()

    def rows(self, run: Run) -> RowIndex:
        """Return all rows of a run as they are on disk now."""
        digest = made_from(run)
        with self._lock:
            reading = self._reading.setdefault(run.folder, Lock())
        with reading:  # nobody but who asks for this run's rows waits for them
            known = self._rows.pop(run.folder, None)
            if known is None or known[0] != digest:
                known = (digest, RowIndex(run))
            self._rows[run.folder] = known
            with self._lock:
                while len(self._rows) > MOST_INDEXES:
                    self._rows.pop(next(iter(self._rows)))
            return known[1]

    def disputes(self, run: Run) -> list[Dispute]:
        """Return the disputed labels of the published set, as it is on disk now.

        They are ranked by the chance of a wrong label; where the run does not have it, as soon as it is computed.
        """
        files = sorted((run.folder / "curated" / "disputed").glob("*.parquet"))
        stamp = tuple(file.stat().st_mtime_ns for file in files)
        with self._lock:
            known = self._disputes.get(run.folder)
            if known is None or known[0] != stamp:
                disputes = disputes_of(run)
                is_unknown = bool(disputes) and all(dispute.wrong is None for dispute in disputes)
                weighing = self._aside.submit(_done_aside, weigh, run) if is_unknown else None
                known = self._disputes[run.folder] = (stamp, disputes, weighing)
                self._unranked.pop(run.folder, None)
            _, disputes, weighing = known
            if weighing is not None and weighing.done():
                outcome = weighing.result()
                if outcome.trouble is not None:
                    self._unranked[run.folder] = outcome.trouble
                disputes = ranked(disputes, outcome.result)
                self._disputes[run.folder] = (stamp, disputes, None)
            return disputes

    def unranked(self, run: Run) -> str | None:
        """Return why the disputes are in their published order, where ranking them failed."""
        with self._lock:
            return self._unranked.get(run.folder)

    def evidence(self, run: Run, problem: str, gather: Callable[[], dict[str, Any]]) -> Future[dict[str, Any]]:
        """Return the evidence on a disputed problem as it is on disk, as far as it is gathered; begins to.

        Who asks for the next problem's while a person reads finds it there when it is wanted.
        """
        digest, name = made_from(run), (run.folder, problem)
        with self._lock:
            known = self._evidence.pop(name, None)
            if known is None or known[0] != digest:
                known = (digest, self._ahead.submit(gather))
            self._evidence[name] = known
            while len(self._evidence) > MOST_EVIDENCE:
                self._evidence.pop(next(iter(self._evidence)))
            return known[1]

    def model(self, run: Run, fit: Callable[[Run], Anchor | None]) -> FittedModel:
        """Return the difficulty model of a run as it is on disk as far as it is fitted; begins the fit."""
        digest = made_from(run)
        with self._lock:
            known = self._models.get(run.folder)
            if known is None or known[0] != digest:
                known = self._models[run.folder] = (digest, self._aside.submit(_done_aside, fit, run))
        if not known[1].done():
            return FittedModel(False, None, None)
        return FittedModel(True, known[1].result().result, known[1].result().trouble)

    @contextmanager
    def judge(self, run: Run) -> Iterator[Judge]:
        """Yield the verifier of a run, for one at a time; it stays open until `close`."""
        with self._judging:
            if run.folder not in self._judges:
                self._judges[run.folder] = self._stack.enter_context(open_judge(run))
            yield self._judges[run.folder]

    def close(self) -> None:
        """End the verifiers."""
        for pool in (self._aside, self._ahead):
            pool.shutdown(wait=False, cancel_futures=True)
        with self._judging:
            self._judges.clear()
            self._stack.close()


def _done_aside(work: Callable[[Run], _Result], run: Run) -> _Outcome[_Result]:
    """Return what work came to; its failure is logged here too."""
    try:
        return _Outcome(work(run), None)
    except GoldilocksError as error:
        print(f"page: {run.folder.name}: {error}", file=sys.stderr, flush=True)
        return _Outcome(None, str(error))


def shown_run(request: Request, kind: str | None = None) -> ShownRun:
    """Return the run that an address names; nothing is found where it has none, or one of another kind."""
    name = request.path_params["run"]
    runs: list[ShownRun] = request.app.state.page.find_runs()
    found = next((run for run in runs if run.name == name), None)
    if found is None or (kind is not None and found.kind != kind):
        raise HTTPException(404)
    return found


def curation_run(request: Request) -> tuple[ShownRun, Run]:
    """Return the curation run that an address names, as its newest version sees it."""
    shown = shown_run(request, "curation")
    return shown, newest_run(shown.folder)


def inside(folder: Path, name: str) -> Path:
    """Return a file directly in a folder; nothing is found where the name leads elsewhere, or to no file."""
    path = folder / name
    if "/" in name or name.startswith(".") or not path.is_file() or path.resolve().parent != folder.resolve():
        raise HTTPException(404)
    return path
