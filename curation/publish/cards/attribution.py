"""ATTRIBUTION.md: sources, licences and changes of a set's rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from curation.licenses import UNKNOWN, conflict
from curation.publish.merged_copies import copies_of
from curation.publish.pages import Table, cell, page


@dataclass(frozen=True, slots=True)
class Origin:
    """A recipe's source, its location, and the state read."""

    name: str
    place: str
    revision: str | None = None


def attribution(title: str, license: str, curated: pl.LazyFrame, origins: Sequence[Origin]) -> str:
    """Return ATTRIBUTION.md.

    Args:
        license: the card's; conflicting licences are marked.
        origins: all sources, also those without rows.
    """
    counts, rows = license_counts(curated), []
    for origin in origins:
        for row_license, problems, changed, merged in counts.get(origin.name, [("–", 0, 0, 0)]):
            why = conflict(row_license, license) if problems or merged else None
            licence = f"{cell(row_license)} ({why})" if why is not None else cell(row_license)
            place = (cell(origin.name), cell(origin.place), cell(origin.revision or "not pinned"), licence)
            rows.append((*place, *(f"{count:,}" for count in (problems, changed, merged))))
    titles = ("source", "published at", "state", "licence", "problems", "changed", "merged copies")
    return page(
        f"Attribution of {title}",
        [
            "Problems come from the sources below, each under the licence that its publisher states. Every row has its "
            "licence in the column `license`, its place in the columns `source` and `row`, and place and licence of "
            f"the copies that were merged into it in `also_from`. The card's licence is `{license}`.",
            Table(titles, rows),
            "Changed: a statement was cleaned or rewritten, or a multiple choice opened; the columns `raw_statement` "
            "and `raw_answer` hold the source's text. Merged copies: rows of the source that are exact or near "
            "duplicates of a problem of the set. All rows were selected, judged and measured as the card describes.",
        ],
    )


def license_counts(*tables: pl.LazyFrame) -> dict[str, list[tuple[str, int, int, int]]]:
    """Count rows, changed rows and merged copies by source and licence."""
    by = ["source", "license"]
    counted = pl.concat([_license_counts(table) for table in tables]).group_by(by).agg(pl.all().sum())
    counted = counted.sort("source", "problems", "merged", "license", descending=[False, True, True, False])
    counts: dict[str, list[tuple[str, int, int, int]]] = {}
    for source, license, problems, times, copied in counted.iter_rows():
        counts.setdefault(source, []).append((license, problems, times, copied))
    return counts


def _license_counts(curated: pl.LazyFrame) -> pl.DataFrame:
    changed = pl.col("raw_statement").is_not_null() | pl.col("raw_answer").is_not_null()
    by = ["source", "license"]
    licensed = curated.with_columns(pl.col("license").fill_null(UNKNOWN))
    own = licensed.group_by(by).agg(pl.len().alias("problems"), changed.sum().alias("changed"))
    copies = copies_of(curated).with_columns(pl.col("license").fill_null(UNKNOWN))
    merged = copies.group_by(by).agg(pl.len().alias("merged"))
    table = own.join(merged, on=by, how="full", coalesce=True).with_columns(
        pl.col("problems", "changed", "merged").fill_null(0)
    )
    return table.select(*by, "problems", "changed", "merged").collect(engine="streaming")
