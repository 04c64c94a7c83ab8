"""Returns disputed labels for reviewers."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from curation.publish import review
from curation.records import StoreError
from flows.publish.disputes import published_queue
from flows.run.run_folder import Run, verdicts_of_people


@dataclass(frozen=True, slots=True)
class Dispute:
    """A disputed label; ``references`` begins with it, ``wrong`` is the probability that it is wrong.

    ``reasons`` are pairs of a kind in words and its evidence.
    """

    problem: str
    statement: str
    lang: str
    references: tuple[str, ...]
    reasons: tuple[tuple[str, str], ...]
    rows: tuple[str, ...]
    wrong: float | None
    unproven: bool = False
    """Whether only the second reference, the first without layout, can be judged against."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Numbers of problems: all, settled, and judged by this reviewer."""

    total: int
    settled: int
    mine: int


def disputes_of(run: Run) -> list[Dispute]:
    """Return the set's disputes by problem, the likeliest wrong label first.

    Raises:
        StoreError: nothing is published yet.
    """
    queue = published_queue(run)
    if queue is None:
        raise StoreError(f"{run.folder} holds no finished run yet; finish it with `goldilocks run`.")
    grouped: dict[str, list[dict[str, object]]] = {}
    for row in queue.iter_rows(named=True):
        grouped.setdefault(row["id"], []).append(row)
    known = dict(queue.filter(pl.col("wrong_label").is_not_null()).select("id", "wrong_label").iter_rows())
    disputes = [_dispute(rows, known.get(name)) for name, rows in grouped.items()]
    return sorted(disputes, key=lambda dispute: -1 if dispute.wrong is None else dispute.wrong, reverse=True)


def _dispute(rows: list[dict[str, object]], wrong: float | None) -> Dispute:
    first = rows[0]
    references = dict.fromkeys(str(answer) for row in rows for answer in _listed(row["references"]))
    return Dispute(
        str(first["id"]),
        str(first["statement"] or ""),
        str(first["lang"]),
        tuple(references),
        tuple((review.KINDS[str(row["kind"])], str(row["evidence"])) for row in rows),
        tuple(dict.fromkeys(str(place) for row in rows for place in _listed(row["rows"]))),
        wrong,
        all(row["kind"] == "unproven_rewriting" for row in rows),
    )


def _listed(value: object) -> list[object]:
    return [item for item in value if item is not None] if isinstance(value, list) else []


def waiting_for(run: Run, disputes: list[Dispute], reviewer: str) -> tuple[list[Dispute], Progress]:
    """Return a reviewer's open disputes, and the progress."""
    said, settled = review.read_statements(run.folder), verdicts_of_people(run)
    mine = {name for name, verdicts in said.items() if any(verdict.reviewer == reviewer for verdict in verdicts)}
    waiting = [dispute for dispute in disputes if dispute.problem not in settled and dispute.problem not in mine]
    done = sum(dispute.problem in settled for dispute in disputes)
    return waiting, Progress(len(disputes), done, sum(dispute.problem in mine for dispute in disputes))
