"""Returns disputed labels for reviewers."""

from __future__ import annotations

from typing import Any

import polars as pl

from curation.publish import review
from curation.records import StoreError
from flows.publish.disputes import published_queue
from flows.run.run_folder import Run, verdicts_of_people

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


def waiting_for(run: Run, disputes: Disputes, reviewer: str) -> tuple[Disputes, dict[str, int]]:
    """Return a reviewer's open disputes, and the numbers of all, settled, and own judged ones."""
    settled = verdicts_of_people(run).keys() & disputes.keys()
    said = review.read_statements(run.folder)
    mine = {name for name in said if name in disputes and any(one.reviewer == reviewer for one in said[name])}
    waiting = {name: dispute for name, dispute in disputes.items() if name not in settled | mine}
    return waiting, {"total": len(disputes), "settled": len(settled), "mine": len(mine)}
