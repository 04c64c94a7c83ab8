"""Removes exact duplicates by id; all copies go if references differ.

Invariants: the caller treats undecided references as conflicts; memory is 8 bytes per row, and the rows with a shared
id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from curation.records import DROPPED, DropReason
from curation.storage.stages import compact

VERSION = "duplicates@1"

STAGE = "exact_dedup"

_INDEX = pl.Schema({name: DROPPED[name] for name in ("id", "source", "row", "answer")})


@dataclass(frozen=True, slots=True)
class ExactDuplicates:
    """Repeated ids' first rows, and distinct ``references``."""

    first: pl.DataFrame  # id, source, row
    references: Mapping[str, tuple[str, ...]]

    def pairs(self) -> list[tuple[str, str, str]]:
        """Return (id, reference, other reference) for the verifier."""
        return [(name, texts[0], other) for name, texts in self.references.items() for other in texts[1:]]


def exact_duplicates(chunks: Callable[[], Iterator[pl.DataFrame]]) -> ExactDuplicates:
    """Find repeated ids.

    Args:
        chunks: id, source, row and answer in source order; called twice.
    """
    hashes = np.concatenate([np.zeros(0, np.uint64), *(chunk["id"].hash().to_numpy() for chunk in chunks())])
    hashes.sort()
    repeated_hashes = pl.Series(np.unique(hashes[1:][hashes[1:] == hashes[:-1]]))
    del hashes
    columns = _INDEX.names()
    is_repeated = pl.col("id").hash().is_in(repeated_hashes.implode())
    rows = [compact(chunk.select(columns).filter(is_repeated)) for chunk in chunks()]
    # other ids may have the same hash
    repeated = pl.concat([_INDEX.to_frame(), *rows]).filter(pl.col("id").is_duplicated())
    first = repeated.group_by("id", maintain_order=True).first().select("id", "source", "row")
    several = repeated.group_by("id", maintain_order=True).agg(pl.col("answer").unique(maintain_order=True))
    references = {name: tuple(answers) for name, answers in several.iter_rows() if len(answers) > 1}
    return ExactDuplicates(first, references)


def drop_exact_duplicates(
    problems: pl.DataFrame, duplicates: ExactDuplicates, conflicts: Mapping[str, str]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Split a shard into `PROBLEM` rows and `DROPPED` duplicates, in order.

    Args:
        conflicts: evidence by id, if references differ.
    """
    conflict_rows = pl.DataFrame(
        {"id": list(conflicts), "conflict": list(conflicts.values())}, schema={"id": pl.String, "conflict": pl.String}
    )
    joined = problems.join(
        duplicates.first.rename({"source": "first_source", "row": "first_row"}),
        on="id",
        how="left",
        maintain_order="left",
    ).join(conflict_rows, on="id", how="left", maintain_order="left")
    is_first = (pl.col("source") == pl.col("first_source")) & (pl.col("row") == pl.col("first_row"))
    reason = (
        pl.when(pl.col("conflict").is_not_null())
        .then(pl.lit(DropReason.CONFLICTING_ANSWERS.value))
        .when(pl.col("first_row").is_not_null() & ~is_first)
        .then(pl.lit(DropReason.DUPLICATE.value))
    )
    evidence = pl.coalesce("conflict", pl.format("same as row {} of {}", "first_row", "first_source"))
    judged = joined.with_columns(reason.alias("reason"), evidence.alias("evidence"), pl.lit(STAGE).alias("stage"))
    kept = judged.filter(pl.col("reason").is_null()).select(problems.columns)
    dropped = judged.filter(pl.col("reason").is_not_null()).select(DROPPED.names())
    return kept, dropped
