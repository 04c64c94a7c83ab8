"""Caches a page's runs until they change on disk."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request

from curation.verify.math_judge import Judge
from flows.page.dispute_queue import Dispute, disputes_of
from flows.page.leases import Leases
from flows.page.row_index import RowIndex, made_from
from flows.page.runs import ShownRun
from flows.publish.versions import newest_run
from flows.run.run_folder import Run
from flows.stages.judging import open_judge

MOST_INDEXES = 4
"""Runs with rows in memory."""

MOST_EVIDENCE = 16
"""Problems with evidence in memory."""


class OpenRuns:
    """Rows, leases and verifiers by run folder. Thread-safe."""

    def __init__(self) -> None:
        self.leases: dict[Path, Leases] = defaultdict(Leases)
        self._lock = Lock()
        self._judging = Lock()
        self._rows: dict[Path, tuple[str, RowIndex]] = {}
        self._reading: dict[Path, Lock] = {}
        self._disputes: dict[Path, tuple[tuple[int, ...], list[Dispute]]] = {}
        self._judges: dict[Path, Judge] = {}
        self._ahead = ThreadPoolExecutor(1, "ahead")
        self._evidence: dict[tuple[Path, str], tuple[str, Future[dict[str, Any]]]] = {}
        self._stack = ExitStack()

    def rows(self, run: Run) -> RowIndex:
        """Return a run's current rows."""
        digest = made_from(run)
        with self._lock:
            reading = self._reading.setdefault(run.folder, Lock())
        with reading:  # only requests for this run's rows wait for them
            known = self._rows.pop(run.folder, None)
            if known is None or known[0] != digest:
                known = (digest, RowIndex(run))
            self._rows[run.folder] = known
            with self._lock:
                while len(self._rows) > MOST_INDEXES:
                    self._rows.pop(next(iter(self._rows)))
            return known[1]

    def disputes(self, run: Run) -> list[Dispute]:
        """Return the published set's current disputes."""
        files = sorted((run.folder / "curated" / "disputed").glob("*.parquet"))
        stamp = tuple(file.stat().st_mtime_ns for file in files)
        with self._lock:
            known = self._disputes.get(run.folder)
            if known is None or known[0] != stamp:
                known = self._disputes[run.folder] = (stamp, disputes_of(run))
            return known[1]

    def evidence(self, run: Run, problem: str, gather: Callable[[], dict[str, Any]]) -> Future[dict[str, Any]]:
        """Return the future evidence on a problem, gathered in the background."""
        digest, name = made_from(run), (run.folder, problem)
        with self._lock:
            known = self._evidence.pop(name, None)
            if known is None or known[0] != digest:
                known = (digest, self._ahead.submit(gather))
            self._evidence[name] = known
            while len(self._evidence) > MOST_EVIDENCE:
                self._evidence.pop(next(iter(self._evidence)))
            return known[1]

    @contextmanager
    def judge(self, run: Run) -> Iterator[Judge]:
        """Yield the verifier to one caller at a time; it stays open until `close`."""
        with self._judging:
            if run.folder not in self._judges:
                self._judges[run.folder] = self._stack.enter_context(open_judge(run))
            yield self._judges[run.folder]

    def close(self) -> None:
        """Close the verifiers."""
        self._ahead.shutdown(wait=False, cancel_futures=True)
        with self._judging:
            self._judges.clear()
            self._stack.close()


def shown_run(request: Request) -> ShownRun:
    """Return the run of an address.

    Raises:
        HTTPException: 404, there is none.
    """
    name = request.path_params["run"]
    runs: list[ShownRun] = request.app.state.page.find_runs()
    found = next((run for run in runs if run.name == name), None)
    if found is None:
        raise HTTPException(404)
    return found


def curation_run(request: Request) -> tuple[ShownRun, Run]:
    """Return an address's run, in its newest version."""
    shown = shown_run(request)
    return shown, newest_run(shown.folder)


def inside(folder: Path, name: str) -> Path:
    """Return a file directly in a folder.

    Raises:
        HTTPException: 404, there is none, or it is elsewhere.
    """
    path = folder / name
    if "/" in name or name.startswith(".") or not path.is_file() or path.resolve().parent != folder.resolve():
        raise HTTPException(404)
    return path
