"""Finds the curation runs in a folder and below it, and caches what is read of them until they change on disk.

Safety: a run's name in an address is looked up among these, and never becomes a path.
"""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, Generic, TypeVar, cast

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

_NO_RUNS = frozenset(
    "attempts chosen checkpoints curated decisions model plots service stages tensorboard verdicts versions".split()
)


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
    """Return the curation runs in a folder and below it.

    Args:
        only: shown folders; empty for all.
    """
    if not root.is_dir():
        return []
    return [
        ShownRun("~".join(folder.relative_to(root).parts) or ITSELF, folder)
        for folder in _folders(root, DEPTH)
        if not is_training(folder) and (not only or folder.relative_to(root).parts[:1] in [(name,) for name in only])
    ]


def _folders(folder: Path, depth: int) -> Iterator[Path]:
    if (folder / "run.json").is_file():
        yield folder
    if depth == 0:
        return
    with os.scandir(folder) as entries:
        inner = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    for name in inner:
        if name not in _NO_RUNS and not name.startswith("."):
            yield from _folders(folder / name, depth - 1)


MOST_INDEXES = 4
"""Runs with rows in memory."""

MOST_EVIDENCE = 16
"""Problems with evidence in memory."""

Key = TypeVar("Key")
Value = TypeVar("Value")

LEASE_S = 300.0


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


class _Kept(Generic[Key, Value]):
    """The last values used, each until what it was made from has another state. Thread-safe."""

    def __init__(self, limit: int) -> None:
        self._limit, self._lock = limit, Lock()
        self._making: dict[Key, Lock] = defaultdict(Lock)
        self._values: dict[Key, tuple[object, Value]] = {}

    def get(self, key: Key, state: object, make: Callable[[], Value]) -> Value:
        """Return the value, made if there is none of this state; other callers of this key wait for it."""
        with self._lock:
            making = self._making[key]
        with making:
            with self._lock:
                known = self._values.pop(key, None)
            if known is None or known[0] != state:
                known = (state, make())
            with self._lock:
                self._values[key] = known
                if len(self._values) > self._limit:
                    del self._values[next(iter(self._values))]
            return known[1]


class OpenRuns:
    """Rows, disputes, leases and verifiers by run folder. Thread-safe."""

    def __init__(self) -> None:
        self.leases: dict[Path, Leases] = defaultdict(Leases)
        self._judging = Lock()
        self._judges: dict[Path, Judge] = {}
        self._rows = _Kept[Path, RowIndex](MOST_INDEXES)
        self._disputes = _Kept[Path, Disputes](MOST_INDEXES)
        self._evidence = _Kept[tuple[Path, str], Future[dict[str, Any]]](MOST_EVIDENCE)
        self._ahead = ThreadPoolExecutor(1, "ahead")
        self._stack = ExitStack()

    def rows(self, run: Run) -> RowIndex:
        """Return a run's current rows."""
        return self._rows.get(run.folder, made_from(run), lambda: RowIndex(run))

    def disputes(self, run: Run) -> Disputes:
        """Return the published set's current disputes."""
        files = sorted((run.folder / "curated" / "disputed").glob("*.parquet"))
        return self._disputes.get(run.folder, [file.stat().st_mtime_ns for file in files], lambda: disputes_of(run))

    def evidence(self, run: Run, problem: str, gather: Callable[[], dict[str, Any]]) -> Future[dict[str, Any]]:
        """Return the future evidence on a problem, gathered in the background."""
        return self._evidence.get((run.folder, problem), made_from(run), lambda: self._ahead.submit(gather))

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
