"""Near duplicates: the same problem in slightly other words, within a source or across sources.

Two rows are near duplicates when the Jaccard similarity of their token bigrams reaches a threshold and their figures
(numbers, signs, telling words: `minhash.TELLING`) are the same multiset: problems made from one template that differ
in their numbers are different problems. MinHash proposes the pairs; each is then compared exactly.

A cluster is a star: one row stays, and every other member is a near duplicate *of that row*, with the similarity as
evidence, so chains of small changes do not carry a cluster away. Rows are taken in rank order (verified reference
first, then source order, then row); a row stays unless a row that already stays resembles it.

Invariants:
  - the result depends on the rows, not on the order or the shards in which they come;
  - a member whose reference is not equal to that of the row that stays is disputed: it leaves with another reason and
    with both references, for a person to look at; a pair the verifier could not settle counts as not equal;
  - in = kept + duplicates + disputed.

Not here: exact duplicates (`exact`, which runs before), translations, and paraphrases that share few words.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from curation.filters.dedup.minhash import (
    CROWD,
    TokenizedRows,
    band_keys,
    band_rows,
    jaccard,
    signatures,
    tokenize_rows,
)
from curation.records import DROPPED, DropReason

VERSION = "near_duplicates@2"

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
"""One line per row that goes: which row stays in its place, and how alike they are."""


@dataclass(frozen=True, slots=True)
class NearDuplicateSplit:
    """One shard, parted: what stays (the input's columns), and what goes (with stage, reason and evidence)."""

    kept: pl.DataFrame
    duplicates: pl.DataFrame
    disputed: pl.DataFrame


def near_duplicates(
    problems: pl.DataFrame, sources: Sequence[str], *, threshold: float = 0.75, figures_agree: bool = True
) -> pl.DataFrame:
    """Return the members of all clusters but the rows that stay, in the `MEMBER` schema, in rank order.

    Args:
        problems: one row a problem: id, source, row, statement, answer; optionally ``verified`` (boolean: the verifier
            accepts the reference; where it accepts all, a person does) and ``lang`` (a problem and its translation are
            not near duplicates).
            (source, row) is the key. Null statements are like nothing.
        sources: the names of the sources, first come first kept; those not named come last, by name.
        threshold: least Jaccard similarity, above 0 and at most 1.
        figures_agree: whether numbers, signs and telling words must be the same.
    """
    ranked = _ranked(problems, sources)
    rows = tokenize_rows(ranked["statement"])
    figures = rows.figures if figures_agree else np.zeros(rows.height, dtype=np.uint64)
    left, right = _similar_candidates(rows, ranked.select("lang", figures=figures), threshold)
    similarity = jaccard(rows, rows, (left, right))
    close = similarity >= threshold
    member, keeper, alike = _stars(left[close], right[close], similarity[close])
    gone = ranked[member].select("source", "row", "answer")
    stays = ranked[keeper].select(kept_id="id", kept_source="source", kept_row="row", kept_answer="answer")
    return gone.hstack(stays).with_columns(similarity=pl.Series(alike, dtype=pl.Float64)).match_to_schema(MEMBER)


def reference_pairs(members: pl.DataFrame) -> list[tuple[str, str]]:
    """Return (reference that stays, reference that goes) for every two different writings that the verifier must
    compare.
    """
    differ = members.filter(pl.col("answer").is_not_null() & (pl.col("answer") != pl.col("kept_answer")))
    return differ.select("kept_answer", "answer").unique().sort("kept_answer", "answer").rows()


def drop_near_duplicates(
    problems: pl.DataFrame,
    members: pl.DataFrame,
    equal: Mapping[tuple[str, str], bool],
    settled: Collection[str] = (),
) -> NearDuplicateSplit:
    """Split one shard into rows that stay, near duplicates, and members with another reference, each in order.

    Args:
        members: what `near_duplicates` found, over all shards.
        equal: outcomes for `reference_pairs`; a pair that is absent is not equal. A missing reference disputes nothing.
        settled: ids whose references a person accepted: they stay where they would be disputed.
    """
    pairs = pl.DataFrame(
        [(kept, gone) for (kept, gone), same in equal.items() if same],
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
    gone = joined.filter(pl.col("reason").is_not_null()).select(DROPPED.names())
    kept = joined.filter(pl.col("reason").is_null()).select(problems.columns)
    return NearDuplicateSplit(kept, gone.filter(~disputed), gone.filter(disputed))


def _ranked(problems: pl.DataFrame, sources: Sequence[str]) -> pl.DataFrame:
    """Sort the rows into the order in which they may stay."""
    verified = pl.col("verified").fill_null(False) if "verified" in problems.columns else pl.lit(False)
    place = pl.col("source").replace_strict(
        list(sources), range(len(sources)), default=len(sources), return_dtype=pl.Int64
    )
    lang = pl.col("lang") if "lang" in problems.columns else pl.lit(None, pl.String)
    columns = problems.select("id", "source", "row", "statement", "answer", lang=lang, verified=verified, place=place)
    return columns.sort(~pl.col("verified"), "place", "source", "row")


def _similar_candidates(
    rows: TokenizedRows, alike_in: pl.DataFrame, threshold: float
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return pairs (lower rank, higher rank) that share a band of their signatures and all of ``alike_in``, each once,
    sorted.

    ``alike_in`` (one line a rank) is part of the bucket: a template of many problems does not make a crowd.
    """
    size = band_rows(threshold)
    matrix = signatures(rows)
    some = np.flatnonzero(np.diff(rows.shingle_starts))
    packed = np.zeros(0, dtype=np.uint64)
    for key in band_keys(matrix, size):
        lines = alike_in[some].with_columns(key=pl.Series(key[some]), rank=pl.Series(some.astype(np.uint64)))
        packed = np.union1d(packed, np.concatenate([np.zeros(0, dtype=np.uint64), *_bucket_pairs(lines)]))
    return (packed >> np.uint64(32)).astype(np.int64), (packed & np.uint64(0xFFFFFFFF)).astype(np.int64)


def _bucket_pairs(lines: pl.DataFrame) -> Iterator[NDArray[np.uint64]]:
    """Yield packed pairs (rank << 32 | rank) of the rows in each bucket; a crowd's rows meet the first and the next
    only.
    """
    bucket = ["key", "lang", "figures"]
    sized = lines.with_columns(size=pl.len().over(bucket)).filter(pl.col("size") > 1)
    small = sized.filter(pl.col("size") <= CROWD)
    paired = small.join(small, on=bucket, nulls_equal=True).filter(pl.col("rank") < pl.col("rank_right"))
    yield _packed(paired["rank"], paired["rank_right"])
    crowd = sized.filter(pl.col("size") > CROWD).sort(*bucket, "rank")
    first, previous = pl.col("rank").first().over(bucket), pl.col("rank").shift(1).over(bucket)
    chained = crowd.with_columns(first=first, previous=previous).filter(pl.col("previous").is_not_null())
    yield _packed(chained["first"], chained["rank"])
    yield _packed(chained["previous"], chained["rank"])


def _packed(lower: pl.Series, higher: pl.Series) -> NDArray[np.uint64]:
    packed: NDArray[np.uint64] = (lower.to_numpy() << np.uint64(32)) | higher.to_numpy()
    return packed


def _stars(
    left: NDArray[np.int64], right: NDArray[np.int64], similarity: NDArray[np.float64]
) -> tuple[list[int], list[int], list[float]]:
    """Return member, the rank that stays in its place, and their similarity: the most similar, then the first.

    Ranks are taken in order. A rank stays unless one that stays resembles it.
    """
    gone: set[int] = set()
    member: list[int] = []
    keeper: list[int] = []
    alike: list[float] = []
    order = np.lexsort((left, -similarity, right))
    for stays, goes, value in zip(left[order].tolist(), right[order].tolist(), similarity[order].tolist(), strict=True):
        if goes not in gone and stays not in gone:
            gone.add(goes)
            member.append(goes)
            keeper.append(stays)
            alike.append(value)
    return member, keeper, alike
