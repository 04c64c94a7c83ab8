"""Selects the problems of a curated set that a new checkpoint judges again.

It judges an anchor first, then problems that are undecided or whose decision may change.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from math import ceil
from typing import Any

import numpy as np
import polars as pl

from curation.config import Band
from curation.difficulty.priors import SIDES, beta_sides
from curation.records import DropReason
from curation.storage.stages import compact

VERSION = "refreshing@5"

ANCHOR_SHARE, ANCHOR_LEAST = 0.05, 50
"""Share and min number of problems in the anchor; above half of all there is none."""

PROBE_SHARE, RETRY_SHARE = 0.05, 0.1
"""Shares judged in turn without an anchor, of too easy and of never solved or suspected problems."""

HALF_LIFE = 100.0
"""Training steps after which an attempt counts half."""

MIN_ATTEMPTS = 8.0
"""Weighted training attempts that replace the old pass rate."""

_JEFFREYS = 0.5


class RefreshCause(StrEnum):
    """Why a problem is judged again."""

    UNSETTLED = "unsettled"  # it had too few attempts to be decided on, or the verifier failed on them
    MOVED = "moved"  # by its rollouts in training, its pass rate left its side of the band
    ANCHOR = "anchor"  # one of those that every refresh judges, to learn how strong the policy is
    SHIFTED = "shifted"  # for a policy of this strength its decision is open
    EDGE = "edge"  # its pass rate is so near an edge of the band that chance alone could move it
    DRAWN = "drawn"  # made for later, of a level whose expected pass rate is in the band
    PROBE = "probe"  # too easy; this version's share of them
    RETRY = "retry"  # unsolved or suspected; this version's share of them


ROLLOUT_COUNTS = pl.Schema(
    {
        "problem": pl.String(),
        "step": pl.Int64(),  # of training, at which the rollouts were made
        "correct": pl.Int64(),
        "judged": pl.Int64(),  # correct and wrong ones, without those that the verifier failed on
    }
)

READ = ("problem", "policy", "keep", "reason", "correct", "judged", "top_wrong_votes")
"""Columns of decisions that selection and `curation.difficulty.refresh_forecast` read."""

REFRESH_CHOICE = pl.Schema({"problem": pl.String(), "why": pl.String()})

_UNDECIDED = (DropReason.TOO_FEW_ATTEMPTS, DropReason.VERIFIER_FAILED, DropReason.SAMPLING_FAILED)
_SIDES = {DropReason.NEVER_SOLVED.value: -1, DropReason.TOO_EASY.value: 1}
_RETRIED = (DropReason.NEVER_SOLVED, DropReason.SUSPECTED_WRONG_LABEL)


def anchor_of_parts(chunks: Iterable[pl.DataFrame], version: int, policy: str) -> pl.DataFrame:
    """Return the anchor as `REFRESH_CHOICE` rows; none above half of all problems.

    Args:
        chunks: of all decisions.
    """
    is_others = (pl.col("policy") != policy) & pl.col("reason").ne_missing(DropReason.RESERVED.value)
    side = pl.col("reason").replace_strict(_SIDES, default=0, return_dtype=pl.Int8)
    rate = pl.when(pl.col("judged") > 0).then(pl.col("correct") / pl.col("judged")).otherwise(0.0)
    empty = pl.DataFrame(schema={"problem": pl.String, "side": pl.Int8, "rate": pl.Float64})
    rows = (compact(chunk.filter(is_others).select("problem", side=side, rate=rate)) for chunk in chunks)
    others = pl.concat([empty, *rows])
    size = max(ceil(ANCHOR_SHARE * others.height), ANCHOR_LEAST)
    if 2 * size > others.height:
        return REFRESH_CHOICE.to_frame()
    anchor = spread_sample(others, ("side", "rate"), size, version)
    return pl.DataFrame({"problem": anchor, "why": RefreshCause.ANCHOR.value}, schema=REFRESH_CHOICE)


def spread_sample(rows: pl.DataFrame, by: Sequence[str], size: int, version: int) -> pl.Series:
    """Return ``size`` evenly spaced problems in the order of columns and hash, shifted by version."""
    fractions = pl.Series("fraction", [hash_fraction(problem) for problem in rows["problem"]], pl.Float64)
    ordered = rows.with_columns(fractions).sort(*by, "fraction", "problem")["problem"]
    begin = hash_fraction(str(version))
    return ordered[[int((number + begin) * len(ordered) / size) for number in range(size)]]


def trained_counts(trained: pl.DataFrame) -> dict[str, tuple[float, float]]:
    """Return each problem's correct and judged rollouts, weighted by ``0.5 ** (age in steps / HALF_LIFE)``."""
    weighted = trained.with_columns(weight=0.5 ** ((pl.col("step").max() - pl.col("step")) / HALF_LIFE))
    counted = weighted.group_by("problem", maintain_order=True).agg(
        (pl.col("correct") * pl.col("weight")).sum().round(2), (pl.col("judged") * pl.col("weight")).sum().round(2)
    )
    return {problem: (correct, judged) for problem, correct, judged in counted.iter_rows()}


def uncertain_of_part(
    decisions: pl.DataFrame,
    trained: Mapping[str, tuple[float, float]],
    band: Band,
    threshold: float,
    version: int,
    policy: str,
    sides: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Return the problems to judge again as `REFRESH_CHOICE` rows, in order.

    Args:
        decisions: `READ` columns of the last version.
        trained: `trained_counts`.
        threshold: min probability of another decision.
        version: the new one.
        policy: the new judge; its own decisions stay.
        sides: `SIDES` rows by the anchor.
    """
    known = sides if sides is not None else SIDES.to_frame()
    others = decisions.filter(pl.col("policy") != policy).join(known, on="problem", how="left", maintain_order="left")
    causes = [
        _refresh_cause(row, trained.get(row["problem"], (0.0, 0.0)), band, threshold, version)
        for row in others.iter_rows(named=True)
    ]
    return others.select("problem", why=pl.Series(causes, dtype=pl.String)).drop_nulls("why")


def _refresh_cause(
    row: Mapping[str, Any], rollouts: tuple[float, float], band: Band, threshold: float, version: int
) -> RefreshCause | None:
    problem, reason, old = row["problem"], row["reason"], (float(row["correct"]), float(row["judged"]))
    if reason == DropReason.RESERVED:  # drawn by level
        return None
    if reason in _UNDECIDED:
        return RefreshCause.UNSETTLED
    stays = row[("below", "inside", "above")[1 + expected_side(reason)]]
    if stays is not None:  # it includes training rollouts
        return RefreshCause.SHIFTED if 1 - stays >= threshold else None
    is_trained = rollouts[1] >= MIN_ATTEMPTS
    if is_trained and reason in (None, DropReason.TOO_EASY, DropReason.NEVER_SOLVED):
        if change_probability(*rollouts, band_side(reason), band) >= threshold:
            return RefreshCause.MOVED
        if row["keep"]:
            return None
    if not is_trained and (
        reason in (None, DropReason.TOO_EASY) and change_probability(*old, band_side(reason), band) >= threshold
    ):
        return RefreshCause.EDGE
    if reason == DropReason.TOO_EASY and is_due(problem, PROBE_SHARE, version):
        return RefreshCause.PROBE
    if reason in _RETRIED and is_due(problem, RETRY_SHARE, version):
        return RefreshCause.RETRY
    return None


def expected_side(reason: str | None) -> int:
    """Return `band_side`, with suspected labels below the band."""
    return -1 if reason == DropReason.SUSPECTED_WRONG_LABEL else band_side(reason)


def band_side(reason: str | None) -> int:
    """Return the side of the band: -1, 0 or 1."""
    return _SIDES.get(reason or "", 0)


@lru_cache(maxsize=100_000)
def change_probability(correct: float, judged: float, side: int, band: Band) -> float:
    """Return the probability that fresh attempts decide for another side."""
    beta = np.array([correct + _JEFFREYS]), np.array([max(0.0, judged - correct) + _JEFFREYS])
    return 1 - min(1.0, float(beta_sides(*beta, band)[0, 1 + side]))


def is_due(problem: str, share: float, version: int) -> bool:
    """Return whether a problem is in this version's share."""
    return (hash_fraction(problem) - version * share) % 1.0 < share


def hash_fraction(problem: str) -> float:
    """Return a hash between 0 and 1."""
    return int.from_bytes(hashlib.blake2b(problem.encode(), digest_size=8).digest()) / 2**64
