"""What a page keeps of the runs it shows, as long as they stay as they are."""

from __future__ import annotations

from pathlib import Path
from threading import Lock

from starlette.exceptions import HTTPException
from starlette.requests import Request

from flows.page.row_index import RowIndex, made_from
from flows.page.runs import ShownRun, find_runs
from flows.publish.versions import newest_run
from flows.run.run_folder import Run


class OpenRuns:
    """Runs of a page by their folders: their rows, and their verifiers once somebody judges a label. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._rows: dict[Path, tuple[str, RowIndex]] = {}

    def rows(self, run: Run) -> RowIndex:
        """Return all rows of a run as they lie on disk now."""
        digest = made_from(run)
        with self._lock:
            known = self._rows.get(run.folder)
            if known is None or known[0] != digest:
                known = self._rows[run.folder] = (digest, RowIndex(run))
            return known[1]


def shown_run(request: Request, kind: str | None = None) -> ShownRun:
    """Return the run that an address names; nothing is found where it has none, or one of another kind."""
    name = request.path_params["run"]
    found = next((run for run in find_runs(request.app.state.page.root) if run.name == name), None)
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
