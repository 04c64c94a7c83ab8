"""The disputed labels that wait for a person, one per problem, the likeliest to be wrong first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import polars as pl

from curation.publish import review
from curation.records import StoreError
from flows.pipelines.find_problem import filters_of
from flows.pipelines.run_tables import verifier_of
from flows.publish.disputes import published_queue
from flows.run.pipeline import read_results
from flows.run.run_folder import Run, verdicts_of_people
from flows.stages.labels import label_shards


@dataclass(frozen=True, slots=True)
class Dispute:
    """A problem whose label is disputed. ``references`` begins with its own; ``wrong`` is the chance that it is wrong.

    ``reasons`` are pairs of the kind in words and its evidence.
    """

    problem: str
    statement: str
    lang: str
    references: tuple[str, ...]
    reasons: tuple[tuple[str, str], ...]
    rows: tuple[str, ...]
    wrong: float | None
    unproven: bool = False
    """Whether the second reference is the first one without its layout, and the first cannot be judged against."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the review is: problems in all, those settled, and those that this reviewer has judged."""

    total: int
    settled: int
    mine: int


def disputes_of(run: Run) -> list[Dispute]:
    """Return the disputes of the published set, one per problem, in the order in which they are reviewed.

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
    return ranked([_dispute(rows, known.get(name)) for name, rows in grouped.items()])


def ranked(disputes: Iterable[Dispute], chances: Mapping[str, float] | None = None) -> list[Dispute]:
    """Return disputes with the likeliest to be wrong first, those of unknown chance last, else in their order.

    Args:
        chances: by problem, of those whose chance is not known.
    """
    told = [
        dispute if dispute.wrong is not None else replace(dispute, wrong=(chances or {}).get(dispute.problem))
        for dispute in disputes
    ]
    return sorted(told, key=lambda dispute: -1 if dispute.wrong is None else dispute.wrong, reverse=True)


def weigh(run: Run) -> dict[str, float]:
    """Return the probability that each disputed problem's reference is wrong, where the attempts show it."""
    queue = published_queue(run)
    is_disputed = pl.col("problem").is_in([] if queue is None else queue["id"].unique().to_list())
    with label_shards(run, read_results(run, filters_of(run)), verifier_of(run)) as shards:
        labels = shards.table(is_disputed)
    return dict(labels.drop_nulls("wrong_label").select("problem", "wrong_label").iter_rows())


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
    """Return the disputes that wait for a reviewer, and how far the review is."""
    said, settled = review.read_statements(run.folder), verdicts_of_people(run)
    mine = {name for name, verdicts in said.items() if any(verdict.reviewer == reviewer for verdict in verdicts)}
    waiting = [dispute for dispute in disputes if dispute.problem not in settled and dispute.problem not in mine]
    done = sum(dispute.problem in settled for dispute in disputes)
    return waiting, Progress(len(disputes), done, sum(dispute.problem in mine for dispute in disputes))
