"""Finds the curation runs in a folder and below it, and caches what is read of them until they change on disk.

Safety: a run's name in an address is looked up among these, and never becomes a path.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any, cast

import polars as pl
from starlette.exceptions import HTTPException
from starlette.requests import Request

from curation.publish import review
from curation.records import StoreError
from curation.verify.math_judge import Judge
from flows.page.row_index import RowIndex, made_from
from flows.publish.disputes import published_queue
from flows.publish.versions import newest_run
from flows.run.run_folder import Run
from flows.run.training import is_training
from flows.stages.judging import open_judge

DEPTH = 3
"""Max depth of runs below the folder."""

ITSELF = "run"
"""The name of the folder itself."""

MOST_RUNS, MOST_EVIDENCE = 3, 16
"""States of runs whose rows and disputes are in memory, and problems whose evidence is."""

LEASE_S = 300.0


@dataclass(frozen=True, slots=True)
class ShownRun:
    """A run by its name in addresses.

    Example: ``ShownRun("math~newer", Path("runs/math/newer"))``
    """

    name: str
    folder: Path

    @property
    def title(self) -> str:
        """Return the name for people."""
        return self.folder.name if self.name == ITSELF else self.name.replace("~", "/")


def find_runs(root: Path, only: Sequence[str] = ()) -> list[ShownRun]:
    """Return the curation runs in a folder, with links resolved, and below it, not through links.

    Args:
        only: shown folders; empty for all.
    """
    runs = []
    for file in sorted(file for depth in range(DEPTH + 1) for file in root.glob("*/" * depth + "run.json")):
        folder, parts = file.parent, file.parent.relative_to(root).parts
        is_hidden = any(part.startswith(".") for part in parts) or folder.resolve() != folder
        if not is_hidden and not is_training(folder) and (not only or parts[:1] in [(name,) for name in only]):
            runs.append(ShownRun("~".join(parts) or ITSELF, folder))
    return runs


@dataclass(slots=True)
class Leases:
    """A run's leases by session: problem and end. Thread-safe.

    Args:
        clock: in seconds.
    """

    clock: Callable[[], float] = time.monotonic
    _held: dict[str, tuple[str, float]] = field(default_factory=dict)
    _skipped: dict[str, set[str]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def take(self, problems: Sequence[str], session: str, wanted: str | None = None) -> str | None:
        """Lease the first free problem, or return None.

        Args:
            problems: in order.
            wanted: preferred, if free.
        """
        with self._lock:
            mine = self._held.pop(session, ("", 0.0))[0]
            others = self._others(session)
            free = [name for name in problems if name not in others]
            fresh = [name for name in free if name not in self._skipped.get(session, ())]
            if not fresh:
                self._skipped.pop(session, None)
            open_to_it = fresh or free
            choice = next((name for name in (wanted, mine) if name in open_to_it), None) or next(iter(open_to_it), None)
            if choice is not None:
                self._held[session] = (choice, self.clock() + LEASE_S)
            return choice

    def renew(self, problem: str, session: str) -> bool:
        """Prolong a lease; return False if another session has it."""
        with self._lock:
            if problem in self._others(session):
                return False
            self._held[session] = (problem, self.clock() + LEASE_S)
            return True

    def skip(self, problem: str, session: str) -> None:
        """Return a problem, not to be offered while others wait."""
        with self._lock:
            self._held.pop(session, None)
            self._skipped.setdefault(session, set()).add(problem)

    def release(self, session: str) -> None:
        """End a session's lease."""
        with self._lock:
            self._held.pop(session, None)

    def _others(self, session: str) -> set[str]:
        now = self.clock()
        return {problem for other, (problem, until) in self._held.items() if other != session and until > now}


Gathered = dict[str, Any]
Disputes = dict[str, dict[str, Any]]
"""By problem: its texts, its references, disputed first, and ``wrong``, the probability that this one is wrong.

``reasons`` are pairs of a kind in words and its evidence. If ``unproven``, only the second reference, the first without
layout, can be judged against.
"""


def disputes_of(run: Run) -> Disputes:
    """Return the set's disputes by problem, the likeliest wrong label first.

    Raises:
        StoreError: nothing is published yet.
    """
    queue = published_queue(run)
    if queue is None:
        raise StoreError(f"{run.folder} holds no finished run yet; finish it with `goldilocks run`.")
    grouped = queue.group_by("id", maintain_order=True).agg(
        pl.col("statement").first().fill_null(""),
        pl.col("lang").first(),
        pl.col("references", "rows").explode().drop_nulls().unique(maintain_order=True),
        reasons=pl.concat_list(pl.col("kind").replace(review.KINDS), "evidence"),
        wrong=pl.col("wrong_label").drop_nulls().last(),
        unproven=(pl.col("kind") == "unproven_rewriting").all(),
    )
    grouped = grouped.sort("wrong", descending=True, nulls_last=True, maintain_order=True)
    return {row["id"]: row for row in grouped.iter_rows(named=True)}


class OpenRuns:
    """The runs that a page shows, with their rows, disputes, leases and verifiers. Thread-safe.

    Args:
        token: what visitors must show; None if no other machine can reach the page.
        only: shown folders; empty for all.
    """

    def __init__(self, root: Path, token: str | None = None, only: Sequence[str] = ()) -> None:
        self.root, self.token, self._only = root, token, tuple(only)
        self.leases: dict[Path, Leases] = defaultdict(Leases)
        self._reading, self._judging = Lock(), Lock()
        self._judges: dict[Path, Judge] = {}
        self._ahead = ThreadPoolExecutor(1, "ahead")
        self._stack = ExitStack()
        # the last argument is the state of what is read: another state is read again
        self._rows = lru_cache(MOST_RUNS)(lambda folder, _state: RowIndex(newest_run(folder)))
        self._disputes = lru_cache(MOST_RUNS)(lambda folder, _state: disputes_of(newest_run(folder)))
        self._evidence = lru_cache(MOST_EVIDENCE)(lambda work, *about: self._ahead.submit(work, *about[:-1]))

    def find_runs(self) -> list[ShownRun]:
        """Return the runs on disk now."""
        return find_runs(self.root, self._only)

    def rows(self, run: Run) -> RowIndex:
        """Return a run's current rows."""
        with self._reading:
            return self._rows(run.folder, made_from(run))

    def disputes(self, run: Run) -> Disputes:
        """Return the published set's current disputes."""
        files = sorted((run.folder / "curated" / "disputed").glob("*.parquet"))
        with self._reading:
            return self._disputes(run.folder, tuple(file.stat().st_mtime_ns for file in files))

    def evidence(self, run: Run, problem: str, gather: Callable[[Path, str], Gathered]) -> Future[Gathered]:
        """Return the future evidence on a problem, gathered in the background."""
        return self._evidence(gather, run.folder, problem, made_from(run))

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
    for run in request.app.state.page.find_runs():
        if run.name == name:
            return cast(ShownRun, run)
    raise HTTPException(404)


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
