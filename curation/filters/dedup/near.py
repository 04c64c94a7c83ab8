"""Removes near duplicates: rows with similar token bigrams and equal figures (`tokens.TELLING`).

Invariants:
  - the result does not depend on the order of rows or shards;
  - memory: about 20 bytes per row, 20 per similar pair, 250 per dropped row;
  - members are disputed unless their reference is proved equal;
  - in = kept + duplicates + disputed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from curation.filters.dedup.sketches import Ranks, Sketches
from curation.filters.dedup.tokens import shared_passages, tokenize
from curation.records import DROPPED, DropReason
from curation.storage.scratch import ScratchFolder
from curation.storage.stages import compact

VERSION = "near_duplicates@4"

STAGE = "near_dedup"

MEMBER = pl.Schema(
    {
        "source": pl.String(),
        "row": pl.Int64(),
        "answer": pl.String(),
        "kept_id": pl.String(),
        "kept_source": pl.String(),
        "kept_row": pl.Int64(),
        "kept_answer": pl.String(),
        "similarity": pl.Float64(),  # exact Jaccard similarity to the row that stays
    }
)
"""A dropped row and the one that stays."""

PAIR = pl.Schema({"left": pl.UInt32(), "right": pl.UInt32(), "similarity": pl.Float64()})
"""Two ranks, the lower left; sorted by right, falling similarity, left."""

FLOOR = 0.75
"""Min stored similarity, or the threshold if lower."""

SAMPLE = 2_000
"""Rows of a source that are searched for shared passages."""

STAR_PAIRS = 20_000
"""Pairs in a block."""

_NAMES = {"id": pl.String(), "source": pl.String(), "row": pl.Int64(), "answer": pl.String()}


class ProblemShards(Protocol):
    """Problems on disk, by shard."""

    def __len__(self) -> int:
        """Return the number of shards."""
        ...

    def read(self, index: int, columns: Sequence[str]) -> pl.DataFrame:
        """Return these `PROBLEM` columns of a shard."""
        ...


def near_duplicates(problems: pl.DataFrame, sources: Sequence[str], *, threshold: float = FLOOR) -> pl.DataFrame:
    """Return cluster members that do not stay, as `MEMBER` rows in rank order.

    Args:
        problems: id, source, row, statement, answer; optionally ``verified`` and ``lang``. (source, row) is the key.
        sources: in order of preference; others follow by name.
        threshold: min Jaccard similarity, above 0 and at most 1.
    """
    verified = problems.filter(pl.col("verified"))["id"].to_list() if "verified" in problems.columns else []
    shards = _OneShard(problems if "lang" in problems.columns else problems.with_columns(lang=pl.lit(None, pl.String)))
    ranks = source_ranks(shards, sources, verified)
    with ScratchFolder("near-dedup") as scratch:
        pairs = similar_pairs(shards, ranks, scratch, threshold)
    return cluster_members(shards, ranks, pairs, threshold)


def source_ranks(shards: ProblemShards, sources: Sequence[str], verified: Collection[str]) -> Ranks:
    """Return rows' ranks in the order of the shards; ``verified`` ids come first."""
    names = {name for index in range(len(shards)) for name in shards.read(index, ["source"])["source"].unique()}
    preference = {name: number for number, name in enumerate(sources)}
    ordered = sorted(names, key=lambda name: (preference.get(name, len(preference)), name))
    codes = {name: number for number, name in enumerate(ordered)}
    code = pl.col("source").replace_strict(codes).cast(pl.UInt32)  # of an empty frame, the codes are String
    is_unverified = pl.col("id").is_in(list(verified)).not_().cast(pl.UInt32)
    schema = pl.Schema({"row": pl.Int64, "group": pl.UInt32})
    frames = (shards.read(index, ["id", "source", "row"]) for index in range(len(shards)))
    numbered = [frame.select("row", group=code + is_unverified * len(names)).cast(schema) for frame in frames]
    keys = pl.concat([schema.to_frame(), *numbered])
    del numbered
    order = np.lexsort((keys["row"].to_numpy(), keys["group"].to_numpy()))
    del keys
    ranks = np.empty(len(order), dtype=np.uint32)
    ranks[order] = np.arange(len(order), dtype=np.uint32)
    return ranks


def similar_pairs(
    shards: ProblemShards,
    ranks: Ranks,
    scratch: Path,
    floor: float,
    *,
    advance: Callable[[int], object] = lambda _rows: None,
) -> pl.DataFrame:
    """Return pairs of at least this similarity as sorted `PAIR` rows.

    Args:
        scratch: folder of reused sketches, not of other rows or another ``floor``.
    """
    sketches = Sketches(scratch, floor, _passages(shards))
    for index in range(len(shards)):
        before = sketches.rows
        sketches.add(index, partial(shards.read, index, ["statement", "lang"]))
        advance(sketches.rows - before)
    blocks = [
        pl.DataFrame({"left": left, "right": right, "similarity": similarity}, schema=PAIR)
        for left, right, similarity in sketches.similar_pairs(ranks)
    ]
    return pl.concat([PAIR.to_frame(), *blocks])


def _passages(shards: ProblemShards) -> NDArray[np.uint64]:
    counts_by_shard = [shards.read(index, ["source"]).group_by("source").len() for index in range(len(shards))]
    counts_by_shard.append(pl.DataFrame(schema={"source": pl.String, "len": pl.get_index_type()}))
    counts = pl.concat(counts_by_shard).group_by("source").agg(every=(pl.col("len").sum() // SAMPLE).clip(1))
    sample = [pl.DataFrame(schema={"source": pl.String, "statement": pl.String})]
    for index in range(len(shards)):
        frame = shards.read(index, ["id", "source", "statement"]).join(counts, on="source", maintain_order="left")
        sample.append(compact(frame.filter(pl.col("id").hash() % pl.col("every") == 0).select("source", "statement")))
    rows = pl.concat(sample)
    return shared_passages(tokenize(rows["statement"]), rows["source"])


def cluster_members(shards: ProblemShards, ranks: Ranks, pairs: pl.DataFrame, threshold: float) -> pl.DataFrame:
    """Return cluster members that do not stay, as `MEMBER` rows in rank order.

    Args:
        pairs: from `similar_pairs` with a floor of at most ``threshold``.
    """
    stars = _stars(pairs.filter(pl.col("similarity") >= threshold), len(ranks))
    is_needed = np.zeros(len(ranks), dtype=bool)
    is_needed[stars["member"].to_numpy()] = is_needed[stars["keeper"].to_numpy()] = True
    first = 0
    named = [pl.DataFrame(schema={"rank": pl.UInt32, **_NAMES})]
    for index in range(len(shards)):
        frame = shards.read(index, list(_NAMES))
        shard_ranks = ranks[first : first + frame.height]
        first += frame.height
        numbered = frame.select(pl.Series("rank", shard_ranks), *_NAMES)
        named.append(compact(numbered.filter(pl.Series(is_needed[shard_ranks]))))
    names = pl.concat(named)
    del named
    kept = names.select(keeper="rank", **{f"kept_{name}": pl.col(name) for name in _NAMES})
    blocks = [MEMBER.to_frame()]
    for block in stars.iter_slices(STAR_PAIRS):  # in the order of the members' ranks
        both = block.join(names, left_on="member", right_on="rank", maintain_order="left")
        both = both.join(kept, on="keeper", maintain_order="left")
        blocks.append(both.match_to_schema(MEMBER, extra_columns="ignore"))
    return pl.concat(blocks)


class _OneShard:
    """A frame as the only shard."""

    def __init__(self, problems: pl.DataFrame) -> None:
        self._problems = problems

    def __len__(self) -> int:
        return 1

    def read(self, index: int, columns: Sequence[str]) -> pl.DataFrame:
        assert index == 0
        return self._problems.select(columns)


def reference_pairs(members: pl.DataFrame) -> list[tuple[str, str]]:
    """Return (kept reference, other reference) for the verifier."""
    differ = members.filter(pl.col("answer").is_not_null() & (pl.col("answer") != pl.col("kept_answer")))
    return differ.select("kept_answer", "answer").unique().sort("kept_answer", "answer").rows()


def drop_near_duplicates(
    problems: pl.DataFrame,
    members: pl.DataFrame,
    equal: Mapping[tuple[str, str], bool],
    settled: Collection[str] = (),
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Split a shard into kept and `DROPPED` rows, near duplicates before disputed members.

    Args:
        equal: results of `reference_pairs`; missing pairs are unequal.
        settled: ids with references that a person accepted; they stay.
    """
    pairs = pl.DataFrame(
        [(kept, dropped) for (kept, dropped), same in equal.items() if same],
        schema={"kept_answer": pl.String, "member_answer": pl.String},
        orient="row",
    ).with_columns(settled=True)
    compared = members.rename({"answer": "member_answer"}).join(pairs, on=["kept_answer", "member_answer"], how="left")
    agree = (
        pl.col("settled").fill_null(False)
        | pl.col("member_answer").is_null()
        | pl.col("kept_answer").is_null()
        | (pl.col("member_answer") == pl.col("kept_answer"))
    )
    like = pl.format("{} like row {} of {}", pl.col("similarity").round(3), "kept_row", "kept_source")
    against = pl.format("{}; references: {} | {}", like, "kept_answer", "member_answer")
    judged = compared.select(
        "source",
        "row",
        stage=pl.lit(STAGE),
        reason=pl.when(agree)
        .then(pl.lit(DropReason.NEAR_DUPLICATE.value))
        .otherwise(pl.lit(DropReason.CONFLICTING_ANSWERS.value)),
        evidence=pl.when(agree).then(like).otherwise(against),
    )
    joined = problems.join(judged, on=["source", "row"], how="left", maintain_order="left")
    disputed = pl.col("reason") == DropReason.CONFLICTING_ANSWERS
    stays = disputed & pl.col("id").is_in(list(settled))
    joined = joined.with_columns(reason=pl.when(stays).then(None).otherwise("reason"))
    dropped_rows = joined.filter(pl.col("reason").is_not_null()).sort(disputed, maintain_order=True)
    kept = joined.filter(pl.col("reason").is_null()).select(problems.columns)
    return kept, dropped_rows.select(DROPPED.names())


def _stars(pairs: pl.DataFrame, rows: int) -> pl.DataFrame:
    is_dropped = bytearray(rows)
    chosen = np.zeros(pairs.height, dtype=bool)
    for index, (left, right) in enumerate(pairs.select("left", "right").iter_rows(buffer_size=STAR_PAIRS)):
        if not is_dropped[right] and not is_dropped[left]:
            is_dropped[right] = 1
            chosen[index] = True
    return pairs.filter(pl.Series(chosen)).select(member="right", keeper="left", similarity="similarity")
