"""Finds the curation runs in a folder, and caches what is read of them until they change on disk.

Safety: a run's name in an address is looked up among these, and never becomes a path.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
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

ITSELF = "run"
"""The name of the folder itself."""

MOST_RUNS, MOST_EVIDENCE = 2, 16
"""Max states of runs with rows and disputes in memory, and max problems with evidence in memory."""

LEASE_S = 900.0
"""Seconds for which a problem that a browser shows is not given to another one."""


@dataclass(frozen=True, slots=True)
class ShownRun:
    """A run by its name in addresses."""

    name: str
    folder: Path


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
        self._leases: dict[Path, dict[str, tuple[str, float]]] = defaultdict(dict)  # by session: problem and end
        self._leasing, self._reading, self._reading_disputes, self._judging = Lock(), Lock(), Lock(), Lock()
        self._judges: dict[Path, Judge] = {}
        self._ahead = ThreadPoolExecutor(1, "ahead")
        self._stack = ExitStack()
        # the last argument is the state of what is read: another state is read again
        self._rows = lru_cache(MOST_RUNS)(lambda folder, _state: RowIndex(newest_run(folder)))
        self._disputes = lru_cache(MOST_RUNS)(lambda folder, _state: disputes_of(newest_run(folder)))
        self._evidence = lru_cache(MOST_EVIDENCE)(lambda work, *about: self._ahead.submit(work, *about[:-1]))

    def find_runs(self) -> list[ShownRun]:
        """Return the folder if it is a curation run, and the curation runs now in it, without links."""
        files = self.root.glob("[!.]*/run.json")  # passes over folders that cannot be read, such as lost+found
        inner = sorted(path.parent for path in files if not path.parent.is_symlink())
        shown = [ShownRun(path.name, path) for path in inner if not self._only or path.name in self._only]
        own = [] if self._only or not (self.root / "run.json").is_file() else [ShownRun(ITSELF, self.root)]
        return [run for run in own + shown if not is_training(run.folder)]

    def lease(
        self, run: Run, problems: Iterable[str], session: str, wanted: str | None = None, skipped: Sequence[str] = ()
    ) -> str | None:
        """Return a problem that no other session has, until `LEASE_S` have passed, or None.

        Args:
            problems: in order, but ``skipped`` ones come last.
            wanted: preferred, then the one that the session has.
        """
        last = {name: number for number, name in enumerate(skipped, 1)}
        with self._leasing:
            held, now = self._leases[run.folder], time.monotonic()
            mine, _ = held.pop(session, ("", 0.0))
            others = {problem for problem, until in held.values() if until > now}
            free = sorted((name for name in problems if name not in others), key=lambda name: last.get(name, 0))
            first = [name for name in (wanted, "" if mine in last else mine) if name in free]
            chosen = next(iter([*first, *free]), None)
            if chosen is not None:
                held[session] = (chosen, now + LEASE_S)
            return chosen

    def rows(self, run: Run) -> RowIndex:
        """Return a run's current rows."""
        with self._reading:
            return self._rows(run.folder, made_from(run))

    def disputes(self, run: Run) -> Disputes:
        """Return the published set's current disputes."""
        files = sorted((run.folder / "curated" / "disputed").glob("*.parquet"))
        with self._reading_disputes:
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
