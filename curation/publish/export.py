"""Columns of the published set, quotas per source, and merged duplicates.

Invariants: pure functions; quotas depend only on seed and ids; groups stay whole; each merged copy belongs to one
remaining row; rows with conflicting references are not copies.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping

import numpy as np
import polars as pl

from curation.records import DECISION, PROBLEM, DropReason

VERSION = "export@7"

STAGE = "export"

_FORESEEN = r"; foreseen at ([0-9.]+)(?: with (.+))?$"
"""End of a foreseen decision's evidence: probability, and the policies that informed it."""

ACCEPTED = pl.List(pl.String())

COPIES = pl.List(pl.Struct({"source": pl.String(), "row": pl.Int64(), "license": pl.String()}))

_COPY = {"source": pl.String(), "row": pl.Int64(), "license": pl.String()}
_EDGE = pl.Schema({**_COPY, "kept_source": pl.String(), "kept_row": pl.Int64()})
_KEPT = ["kept_source", "kept_row"]

CURATED = pl.Schema(
    {
        **{name: dtype for name, dtype in PROBLEM.items() if name != "choices"},
        "policy": pl.String(),  # whose attempts the pass rate counts
        "attempts": pl.Int32(),
        "judged": pl.Int32(),
        "correct": pl.Int32(),
        "pass_rate": pl.Float64(),  # correct / judged
        "unbiased_pass_rate": pl.Float64(),  # free of the bias of early stopping
        "pass_rate_low": pl.Float64(),  # 95 % Wilson interval
        "pass_rate_high": pl.Float64(),
        "decided_by": pl.String(),  # all attempts, or after how many it was certain or foreseen
        "informed_by": pl.String(),  # attempts used for the decision, as `policy 9, other 16`
        "measured_on": pl.String(),  # day of the first attempt, YYYY-MM-DD in UTC
        "first_policy": pl.String(),  # of stage 1, or null
        "first_pass_rate": pl.Float64(),
        "translation_of": pl.String(),  # id of a translation's original, or null
        "pass_rate_of": pl.String(),  # id of the original whose pass rate this is, or null
        "accepted": ACCEPTED,  # further answers that a model accepted
        "also_from": COPIES,  # its merged copies and their licences
    }
)


_MEASURED = CURATED.names()[CURATED.names().index("policy") : CURATED.names().index("first_policy")]


def curate(problems: pl.DataFrame, last: pl.DataFrame, first: pl.DataFrame | None) -> pl.DataFrame:
    """Return kept problems with their difficulty (`CURATED`).

    Args:
        last: `DECISION` rows of the deciding stage.
        first: those of the stage before.
    """
    defaults: dict[str, pl.Expr] = {
        "also_from": pl.lit([], COPIES),
        "accepted": pl.lit([], ACCEPTED),
        "translation_of": pl.lit(None, pl.String),
        "pass_rate_of": pl.lit(None, pl.String),
    }
    problems = problems.with_columns(**{name: new for name, new in defaults.items() if name not in problems.columns})
    if "measured_on" not in last.columns:
        last = last.with_columns(measured_on=pl.lit(None, pl.String))
    measured = last.with_columns(
        decided_by=_decided_by(), informed_by=_informed_by(), pass_rate_low="low", pass_rate_high="high"
    ).select(*_MEASURED, id="problem")
    before = (DECISION.to_frame() if first is None else first).select(
        id="problem", first_policy="policy", first_pass_rate="pass_rate"
    )
    for table in (measured, before):
        problems = problems.join(table, on="id", how="left", maintain_order="left")
    return problems.select(CURATED.names()).cast(CURATED)


def with_accepted(problems: pl.DataFrame, votes: pl.DataFrame) -> pl.DataFrame:
    """Return problems with ``accepted``: answers that votes equate with the reference."""
    same = votes.filter(pl.col("decision") == "same")
    accepted = (
        problems.select("id", "answer")
        .join(same.select(id="problem", answer="reference", accepted="answer"), on=["id", "answer"])
        .group_by("id")
        .agg(pl.col("accepted").unique().sort())
    )
    joined = problems.join(accepted, on="id", how="left", maintain_order="left")
    return joined.with_columns(pl.col("accepted").fill_null([]).cast(ACCEPTED))


def _decided_by() -> pl.Expr:
    chance = pl.col("evidence").str.extract(_FORESEEN)
    of = pl.format("after {} of {}", "attempts", pl.col("attempts") + pl.col("skipped"))
    return (
        pl.when(pl.col("skipped").fill_null(0) == 0)
        .then(pl.lit("all attempts"))
        .when(chance.is_null())
        .then(pl.format("certain {}", of))
        .otherwise(pl.format("foreseen at {} {}", chance, of))
    )


def _informed_by() -> pl.Expr:
    informants = pl.when(pl.col("skipped").fill_null(0) > 0).then(pl.col("evidence").str.extract(_FORESEEN, 2))
    own = pl.format("{} {}", "policy", "judged")
    return pl.when(informants.is_null()).then(own).otherwise(pl.format("{}, {}", own, informants))


def quotas(available: Mapping[str, int], weights: Mapping[str, float], size: int) -> dict[str, int]:
    """Return sources' quotas by weight and largest remainder; larger sources make up for small ones.

    Example: ``quotas({"a": 10, "b": 1}, {"a": 1.0, "b": 1.0}, 6) == {"a": 5, "b": 1}``
    """
    quota: dict[str, int] = {}
    free = dict(available)
    remaining = min(size, sum(available.values()))
    while True:
        total = sum(weights[name] for name in free)
        exact = {name: remaining * weights[name] / total for name in free}
        short = [name for name in free if exact[name] >= free[name]]
        if not short:
            break
        for name in short:
            quota[name] = free.pop(name)
            remaining -= quota[name]
    quota |= {name: int(share) for name, share in exact.items()}
    rest = remaining - sum(int(share) for share in exact.values())
    by_remainder = sorted(exact, key=lambda name: (int(exact[name]) - exact[name], -weights[name], name))
    for name in by_remainder[:rest]:
        quota[name] += 1
    return {name: quota[name] for name in available}


def over_quota(index: pl.DataFrame, size: int | None, seed: int) -> pl.DataFrame:
    """Return ``id`` and ``evidence`` of problems beyond the set's size, drawn by group."""
    if size is None or index.height <= size:
        return pl.DataFrame(schema={"id": pl.String, "evidence": pl.String})
    weights = dict(index.group_by("source").agg(pl.col("weight").first()).iter_rows())
    available = dict(index.group_by("source").len().sort("source").iter_rows())
    share = quotas(available, weights, size)
    codes = {name: code for code, name in enumerate(share)}
    rows = index.select("id", "source", turn=_turns(index["group"], seed))
    of_rows = rows["source"].replace_strict(codes, return_dtype=pl.Int32).to_numpy()
    order = rows["turn"].arg_sort().to_numpy()
    ends = np.flatnonzero(np.diff(rows["turn"].to_numpy()[order], append=-1)) + 1
    stays, remaining, begin = np.zeros(index.height, dtype=bool), Counter(dict(enumerate(share.values()))), 0
    for end in ends.tolist():
        members = order[begin:end]
        begin = end
        of_group = Counter(of_rows[members].tolist())
        if of_group <= remaining:
            remaining -= of_group
            stays[members] = True
    evidence = {name: f"{name} gives {share[name]} of its {available[name]} to a set of {size}" for name in share}
    leaving = rows.filter(pl.Series(~stays))
    return leaving.select("id", evidence=pl.col("source").replace_strict(evidence, return_dtype=pl.String))


def _turns(groups: pl.Series, seed: int) -> pl.Series:
    """Return each row's draw position, equal within a group."""
    names = groups.unique(maintain_order=True)
    draws = pl.Series(np.fromiter((_draw(seed, name) for name in names), np.uint64, len(names)))
    ranked = pl.DataFrame({"group": names, "turn": draws.rank("ordinal").cast(pl.Int64)})
    return groups.alias("group").to_frame().join(ranked, on="group", how="left", maintain_order="left")["turn"]


def _draw(seed: int, name: str) -> int:
    return int.from_bytes(hashlib.blake2b(f"{seed}|{name}".encode(), digest_size=8).digest())


def merged_copies(
    exact_kept: pl.DataFrame, exact_dropped: pl.DataFrame, near_dropped: pl.DataFrame, members: pl.DataFrame
) -> pl.DataFrame:
    """Return ``source``, ``row`` and copies (``also_from``, `COPIES`) of rows with merged copies.

    Args:
        exact_kept: ``id``, ``source``, ``row``.
        exact_dropped: ``id``, ``source``, ``row``, ``license``, ``reason``.
        members: `curation.filters.dedup.near.MEMBER` rows.
    """
    first = exact_kept.select("id", kept_source="source", kept_row="row") if exact_kept.width else None
    exact, near = _EDGE.to_frame(), _EDGE.to_frame()
    if first is not None and exact_dropped.width:
        copies = exact_dropped.filter(pl.col("reason") == DropReason.DUPLICATE)
        exact = copies.join(first, on="id").select(_EDGE.names())
    if near_dropped.width and members.width:
        copies = near_dropped.filter(pl.col("reason") == DropReason.NEAR_DUPLICATE)
        near = copies.join(members.select("source", "row", *_KEPT), on=["source", "row"]).select(_EDGE.names())
    later = near.select(kept_source="source", kept_row="row", later_source="kept_source", later_row="kept_row")
    moved = exact.join(later, on=_KEPT, how="left").with_columns(
        kept_source=pl.coalesce("later_source", "kept_source"), kept_row=pl.coalesce("later_row", "kept_row")
    )
    edges = pl.concat([moved.select(_EDGE.names()), near]).sort("source", "row")
    grouped = edges.group_by(_KEPT, maintain_order=True).agg(also_from=pl.struct(*_COPY))
    return grouped.select(source="kept_source", row="kept_row", also_from=pl.col("also_from").cast(COPIES))


def with_copies(problems: pl.DataFrame, copies: pl.DataFrame) -> pl.DataFrame:
    """Return rows with their merged copies in ``also_from``."""
    joined = problems.join(copies, on=["source", "row"], how="left", maintain_order="left")
    return joined.with_columns(also_from=pl.col("also_from").fill_null([]).cast(COPIES))
