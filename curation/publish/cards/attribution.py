"""ATTRIBUTION.md: where the rows of a set come from, under which licences, and what was changed in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from curation.licenses import conflict
from curation.publish.cards.words import cell


@dataclass(frozen=True, slots=True)
class Origin:
    """A source as a recipe names it: what was read, where it is published, and which state of it."""

    name: str
    path: str
    url: str | None = None
    revision: str | None = None


def attribution(title: str, license: str, curated: pl.DataFrame, origins: Sequence[Origin]) -> str:
    """Return the text of ATTRIBUTION.md.

    Args:
        title: of the set.
        license: that its card names; rows whose own licence forbids it are marked.
        curated: rows with ``source``, ``license``, ``raw_statement`` and ``raw_answer``.
        origins: the sources of the recipe, in order; those of which no row is left are named, too.
    """
    text = [
        f"# Attribution of {title}",
        "",
        "Problems come from the sources below, each under the licence that its publisher states. Every row names its "
        "own in the column `license`, and its place in the columns `source` and `row`. The card's licence is "
        f"`{license}`.",
        "",
        "| source | published at | state | licence | problems | changed |",
        "|---|---|---|---|---|---|",
    ]
    counts = _counts(curated)
    for origin in origins:
        place = origin.url or origin.path
        state = origin.revision or "not pinned"
        for row_license, problems, changed in counts.get(origin.name, [("–", 0, 0)]):
            why = conflict(row_license, license) if problems else None
            said = f"{cell(row_license)} ({why})" if why is not None else cell(row_license)
            named = f"{cell(origin.name)} | {cell(place)} | {cell(state)} | {said}"
            text.append(f"| {named} | {problems:,} | {changed:,} |")
    text += [
        "",
        "Changed: a statement was cleaned or rewritten, or a multiple choice opened; the columns `raw_statement` and "
        "`raw_answer` hold what the source says. All rows were selected, judged and measured as the card tells.",
        "",
    ]
    return "\n".join(text)


def _counts(curated: pl.DataFrame) -> dict[str, list[tuple[str, int, int]]]:
    """Return the licences of each source's rows, how many rows have each, and of how many the text was changed."""
    changed = pl.col("raw_statement").is_not_null() | pl.col("raw_answer").is_not_null()
    grouped = curated.group_by("source", pl.col("license").fill_null("unknown"))
    table = grouped.agg(pl.len(), changed.sum().alias("changed")).sort(
        "source", "len", "license", descending=[False, True, False]
    )
    counts: dict[str, list[tuple[str, int, int]]] = {}
    for source, license, rows, times in table.iter_rows():
        counts.setdefault(source, []).append((license, rows, times))
    return counts
