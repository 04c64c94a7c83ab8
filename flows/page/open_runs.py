"""What a page keeps of the runs it shows, as long as they stay as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Lock

from starlette.exceptions import HTTPException
from starlette.requests import Request

from curation.difficulty.anchor import Anchor
from curation.verify.math_judge import Judge
from flows.page.dispute_queue import Dispute, disputes_of, ranked, weigh
from flows.page.row_index import RowIndex, made_from
from flows.page.runs import ShownRun
from flows.publish.versions import newest_run
from flows.run.run_folder import Run
from flows.stages.judging import open_judge


class OpenRuns:
    """Runs of a page by their folders: their rows, and their verifiers once somebody judges a label. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._judging = Lock()
        self._rows: dict[Path, tuple[str, RowIndex]] = {}
        self._disputes: dict[Path, tuple[tuple[int, ...], list[Dispute], Future[dict[str, float]] | None]] = {}
        self._weighing = ThreadPoolExecutor(1, "weighing")
        self._judges: dict[Path, Judge] = {}
        self._models: dict[Path, tuple[str, Future[Anchor | None]]] = {}
        self._stack = ExitStack()

    def rows(self, run: Run) -> RowIndex:
        """Return all rows of a run as they lie on disk now."""
        digest = made_from(run)
        with self._lock:
            known = self._rows.get(run.folder)
            if known is None or known[0] != digest:
                known = self._rows[run.folder] = (digest, RowIndex(run))
            return known[1]

    def disputes(self, run: Run) -> list[Dispute]:
        """Return the disputed labels of the published set, as it lies on disk now.

        They are ranked by the chance of a wrong label; where the run does not tell it, as soon as it is computed.
        """
        files = sorted((run.folder / "curated" / "disputed").glob("*.parquet"))
        stamp = tuple(file.stat().st_mtime_ns for file in files)
        with self._lock:
            known = self._disputes.get(run.folder)
            if known is None or known[0] != stamp:
                disputes = disputes_of(run)
                is_unknown = bool(disputes) and all(dispute.wrong is None for dispute in disputes)
                weighing = self._weighing.submit(weigh, run) if is_unknown else None
                known = self._disputes[run.folder] = (stamp, disputes, weighing)
            _, disputes, weighing = known
            if weighing is not None and weighing.done():
                disputes = ranked(disputes, weighing.result())
                self._disputes[run.folder] = (stamp, disputes, None)
            return disputes

    def model(self, run: Run, fit: Callable[[Run], Anchor | None]) -> tuple[bool, Anchor | None]:
        """Return whether the difficulty model of a run as it lies on disk is fitted, and the model; begins the fit."""
        digest = made_from(run)
        with self._lock:
            known = self._models.get(run.folder)
            if known is None or known[0] != digest:
                known = self._models[run.folder] = (digest, self._weighing.submit(fit, run))
        return known[1].done(), known[1].result() if known[1].done() else None

    @contextmanager
    def judge(self, run: Run) -> Iterator[Judge]:
        """Yield the verifier of a run, for one at a time; it stays open until `close`."""
        with self._judging:
            if run.folder not in self._judges:
                self._judges[run.folder] = self._stack.enter_context(open_judge(run))
            yield self._judges[run.folder]

    def close(self) -> None:
        """End the verifiers."""
        self._weighing.shutdown(wait=False, cancel_futures=True)
        with self._judging:
            self._judges.clear()
            self._stack.close()


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
