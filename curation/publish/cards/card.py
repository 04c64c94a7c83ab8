"""A set's data card: README.md in Hugging Face's format, two plots, and ATTRIBUTION.md.

Invariants: equal `CardFacts` give equal bytes; the header names only ``data/train-*.parquet``, so that `datasets`
never loads dropped rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from curation.extras import has_extra
from curation.licenses import UNKNOWN, conflict
from curation.publish.cards.facts import CardFacts, regraded_stages, values_of
from curation.publish.pages import data_files, longest_run, render_template, wilson, yaml_header
from curation.publish.words import COLUMN_WORDS, by_count, language_names, reason_words
from curation.storage.sorted_parts import in_slices

VERSION = "cards@13"
"""Changed if the same facts could give another card."""

SIZES = ((10**3, "n<1K"), (10**4, "1K<n<10K"), (10**5, "10K<n<100K"), (10**6, "100K<n<1M"), (10**7, "1M<n<10M"))

_COPY = pl.Schema({"source": pl.String(), "row": pl.Int64(), "license": pl.String()})
"""A merged copy in `also_from`."""

HASHED_ROWS = 5_000
"""Rows that are hashed at once."""

SHORT = 500
"""Max characters of an example's statement."""


def write_card(facts: CardFacts, folder: Path) -> Path:
    """Write README.md and, with the extra `plots`, plots/."""
    if has_extra("plots"):
        from curation.publish.cards.plots import draw_funnel, draw_pass_rates

        (folder / "plots").mkdir(parents=True, exist_ok=True)
        draw_funnel(facts, folder / "plots" / "funnel.png")
        if facts.stages:
            draw_pass_rates(facts, folder / "plots" / "pass_rates.png")
    path = folder / "README.md"
    path.write_bytes(render(facts).encode())
    return path


def render(facts: CardFacts) -> str:
    """Return the text of README.md."""
    height = int(facts.curated.select(pl.len()).collect().item())
    languages = facts.curated.group_by("lang").len().sort("len", "lang", descending=[True, False])
    ends = wilson(1, facts.stages[-1].band.attempts) if facts.stages else ()
    return render_template(
        Path(__file__).with_name("card.md.jinja"),
        facts=facts,
        height=height,
        header=yaml_header(_header(facts, height)),
        read=facts.funnel[0].rows_in if facts.funnel else 0,
        languages=[f"{_language(lang)} {count:,}" for lang, count in languages.collect(engine="streaming").iter_rows()],
        regraded=regraded_stages(facts.funnel),
        reasons=[
            (row, reason_words(reason), count, not number)
            for row in facts.funnel
            for number, (reason, count) in enumerate(by_count(row.reasons))
        ],
        examples=_examples(facts.curated),
        columns=facts.curated.collect_schema(),
        column_words=COLUMN_WORDS,
        fence="`" * max(3, 1 + longest_run(facts.recipe_toml)),
        coarse=[f"{100 * end:.0f} %" for end in ends],
        has_plots=has_extra("plots"),
    )


def _header(facts: CardFacts, height: int) -> dict[str, Any]:
    domains = values_of(facts.curated, "domain") or ["code", "math"]
    (config,) = data_files()
    return {
        "pretty_name": facts.pretty_name,
        "license": facts.license,
        "language": values_of(facts.curated, "lang"),
        "size_categories": [next((name for limit, name in SIZES if height < limit), "n>10M")],
        "task_categories": ["text-generation"],
        "tags": [*domains, "reasoning", "reinforcement-learning", "verifiable-rewards", "goldilocks"],
        "configs": [{**config, "description": f"rows {rows_digest(facts.curated)}"}],
    }


def rows_digest(curated: pl.LazyFrame) -> str:
    """Return a hash of a set's rows, against `datasets`' stale caches."""
    digest = hashlib.blake2b(digest_size=8)
    for rows in in_slices(curated.select("id", "statement", "answer", "pass_rate")):
        for part in rows.iter_slices(HASHED_ROWS):
            digest.update(part.write_ndjson().encode())
    return digest.hexdigest()


def _language(code: str | None) -> str:
    return language_names().get(code or "", code or "unknown")


def _examples(curated: pl.LazyFrame) -> list[dict[str, Any]]:
    short = curated.with_row_index("at").filter(pl.col("statement").str.len_chars() <= SHORT)
    first = pl.col("at").sort_by("id").first()
    rates = short.group_by("pass_rate").agg(pl.len(), first).collect(engine="streaming").sort("pass_rate")
    ends, height = rates["len"].cum_sum(), int(rates["len"].sum())
    groups = {int((ends <= share * height).sum()) for share in (1 / 6, 1 / 2, 5 / 6)} if height else set()
    rows = [curated.slice(int(rates["at"][group]), 1).collect().row(0, named=True) for group in sorted(groups)]
    return [{**row, "language": _language(row["lang"])} for row in rows]


def attribution(title: str, license: str, curated: pl.LazyFrame, origins: Sequence[tuple[str, str, str | None]]) -> str:
    """Return ATTRIBUTION.md.

    Args:
        license: the card's; conflicting licences are marked.
        origins: name, address and revision of all sources.
    """
    return render_template(
        Path(__file__).with_name("attribution.md.jinja"),
        title=title,
        license=license,
        origins=origins,
        counts=license_counts(curated),
        conflict=conflict,
    )


def license_counts(*tables: pl.LazyFrame) -> dict[str, list[tuple[str, int, int, int]]]:
    """Count rows, changed rows and merged copies by source and licence."""
    by, license = ["source", "license"], pl.col("license").fill_null(UNKNOWN)
    is_changed = pl.any_horizontal(pl.col("raw_statement", "raw_answer").is_not_null())
    tallies = []
    for table in tables:
        own = table.select("source", license, problems=1, changed=is_changed.cast(pl.Int64), merged=0)
        copies = table.select(pl.col("also_from").list.explode()).drop_nulls().unnest("also_from").cast(_COPY)
        merged = copies.select("source", license, problems=0, changed=0, merged=1)
        counted = pl.concat([own, merged], how="vertical_relaxed").group_by(by).agg(pl.all().sum())
        tallies.append(counted.collect(engine="streaming"))
    total = pl.concat(tallies).group_by(by).agg(pl.all().sum())
    total = total.sort("source", "problems", "merged", "license", descending=[False, True, True, False])
    counts: dict[str, list[tuple[str, int, int, int]]] = {}
    for source, *rest in total.iter_rows():
        counts.setdefault(source, []).append(tuple(rest))
    return counts
