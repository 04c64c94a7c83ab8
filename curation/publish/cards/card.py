"""The data card of a set: README.md in Hugging Face's format, two plots, and ATTRIBUTION.md.

Invariants: equal `CardFacts` give equal bytes; the header names only ``data/train-*.parquet``, so that `datasets`
never loads dropped rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from curation.extras import has_extra
from curation.licenses import UNKNOWN, conflict
from curation.publish.cards.facts import CardFacts, StageFacts, regraded_stages, values_of
from curation.publish.cards.words import (
    COLUMN_WORDS,
    by_count,
    by_reason,
    capital,
    count_phrase,
    language_names,
    reason_words,
    share,
)
from curation.publish.pages import (
    Block,
    Section,
    Table,
    cell,
    code_span,
    data_files,
    escape_markdown,
    longest_run,
    page,
    wilson,
)
from curation.records import StoreError
from curation.storage.sorted_parts import in_slices

VERSION = "cards@10"
"""Changed if the same facts could give another card."""

SIZES = ((10**3, "n<1K"), (10**4, "1K<n<10K"), (10**5, "10K<n<100K"), (10**6, "100K<n<1M"), (10**7, "1M<n<10M"))

_COPY = pl.Schema({"source": pl.String(), "row": pl.Int64(), "license": pl.String()})
"""A merged copy in `also_from`."""

SHORT = 500
"""Max characters of an example's statement."""


def write_card(facts: CardFacts, folder: Path) -> Path:
    """Write README.md and, with the extra `plots`, plots/.

    Raises:
        StoreError: a funnel row does not add up.
    """
    for row in facts.funnel:
        if row.rows_in != row.kept + row.dropped:
            raise StoreError(
                f"card {facts.name}: stage {row.stage} read {row.rows_in} rows, but kept {row.kept} and "
                f"dropped {row.dropped}; the stage's manifest is damaged, run the stage again."
            )
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
    opening = (
        f"**{count_phrase(height, 'problem')}** of the right difficulty for reinforcement learning: solved sometimes, "
        "not always."
        if height
        else "**No problem passed.** Every row was dropped; the funnel below shows at which stage and why."
    )
    read = facts.funnel[0].rows_in if facts.funnel else 0
    made = f"from {count_phrase(read, 'row')} in {count_phrase(facts.sources, 'source')}."
    blocks: list[Block | Section] = [
        escape_markdown(facts.description),
        f"{opening}\nCurated by Goldilocks {facts.version} {made}",
        _summary(facts, height),
        Section("How to Load It", list(_loading(facts.name, height))),
        Section("The Funnel", list(_funnel(facts))),
        Section("Why Rows Were Dropped", list(_reasons(facts)), level=3),
        *facts.sections,
        Section("Disputed Labels", list(_disputes(facts))),
        Section("Difficulty", list(_difficulty(facts))),
        Section("Examples", list(_examples(facts))),
        Section("Columns", [_columns(facts.curated)]),
        Section("Sources and Licences", facts.origins),
        Section("How It Was Made", list(_method(facts))),
        Section("Limits", ["\n".join(f"- {limit}" for limit in _limits(facts))]),
    ]
    return page(escape_markdown(facts.pretty_name), blocks, _header(facts, height))


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
        digest.update(rows.write_ndjson().encode())
    return digest.hexdigest()


def _summary(facts: CardFacts, height: int) -> Table:
    rows = []
    if facts.set_version:
        changed = ", ".join(f"{cell(what)} {count:,}" for what, count in facts.changed.items())
        version = f"{facts.set_version}; {changed}" if changed else str(facts.set_version)
        rows.append(("Version", f"{version}; all versions are in `CHANGELOG.md`"))
    counts = (
        facts.curated.group_by("lang").len().sort("len", "lang", descending=[True, False]).collect(engine="streaming")
    )
    named = [f"{language_names().get(lang or '', lang or 'unknown')} {count:,}" for lang, count in counts.iter_rows()]
    rows += [("Languages", ", ".join(named))] if named else []
    for stage in facts.stages:
        band = f"{stage.min_correct} to {stage.max_correct} of {stage.attempts} attempts correct"
        rows.append((cell(capital(stage.title)), f"{band}, by `{stage.policy}`"))
    rows += [
        ("Verifier", f"`{facts.verifier}`"),
        ("Licence", f"`{facts.license}`; per source below"),
        ("Receipt", "[Figures on the curation](RECEIPT.md); `goldilocks verify receipt` computes them again"),
    ]
    return Table(("Problems", f"{height:,}"), rows)


def _loading(name: str, height: int) -> Iterator[Block]:
    if height:  # `datasets` refuses an empty split
        yield (
            "```python\nimport datasets\n\n# this folder, or its name on the hub\n"
            f'problems = datasets.load_dataset("path/to/{name}", split="train")\n```'
        )
    yield (
        f'```python\nimport polars as pl\n\nproblems = pl.read_parquet("path/to/{name}/data/train-*.parquet")\n'
        "# every dropped row with its stage, reason and evidence\n"
        f'dropped = pl.read_parquet("path/to/{name}/dropped/*.parquet")\n```'
    )


def _funnel(facts: CardFacts) -> Iterator[Block]:
    start = facts.funnel[0].rows_in if facts.funnel else 0
    rows = [
        (
            cell(capital(row.title)),
            *(f"{count:,}" for count in (row.rows_in, row.kept, row.dropped)),
            share(row.kept, row.rows_in),
            share(row.kept, start),
        )
        for row in facts.funnel
    ]
    yield Table(("Stage", "Rows in", "Kept", "Dropped", "Kept of the stage", "Kept of all rows"), rows, "lrrrrr")
    for row, before in regraded_stages(facts.funnel):
        yield (
            f"*{_title(row.title)}* grades all {count_phrase(row.rows_in, 'row')} again, not only what "
            f"*{_title(before.title)}* kept: alone, the weaker policy would have dropped what is merely hard for it."
        )
    if (two := facts.compared) is not None:
        lost = sum(two.lost.values())
        why_lost = f" ({by_reason(two.lost)})" if lost else ""
        why_dropped = f": {by_reason(two.dropped)}" if two.never_solved > two.rescued else ""
        yield (
            f"Stage 1 alone would have kept {count_phrase(two.alone, 'problem')}; {two.both:,} of them are in the set. "
            f"It would have lost {count_phrase(lost, 'problem')} of the set{why_lost}. "
            f"Of the {count_phrase(two.never_solved, 'problem')} that it never solved, the set has {two.rescued:,}; "
            f"stage 2 dropped the rest{why_dropped}."
        )
    if has_extra("plots"):
        yield "![Funnel: rows kept and dropped at each stage](plots/funnel.png)"
    else:
        yield "Pictures are left out: the extra `plots` was not installed."


def _reasons(facts: CardFacts) -> Iterator[Block]:
    rows = [
        (
            "" if place else f"**{cell(capital(row.title))}**",
            cell(reason_words(reason)),
            f"{count:,}",
            share(count, row.rows_in),
        )
        for row in facts.funnel
        for place, (reason, count) in enumerate(by_count(row.reasons))
    ]
    if rows:
        again = "".join(
            f" What *{_title(before.title)}* dropped is there only if *{_title(row.title)}* dropped it too."
            for row, before in regraded_stages(facts.funnel)
        )
        yield f"Every dropped row is in `dropped/` with one reason and the text or numbers that decided.{again}"
        yield Table(("Stage", "Reason", "Rows", "Of the stage's input"), rows, "llrr")


def _disputes(facts: CardFacts) -> Iterator[Block]:
    if facts.disputed:
        yield (
            "Labels with evidence against them that the pipeline cannot weigh, for a person to judge. `disputed/` "
            "holds the queue with the evidence; decide with `goldilocks review RUN`."
        )
        rows = [(cell(capital(kind)), f"{count:,}") for kind, count in facts.disputed.items()]
        yield Table(("What is disputed", "Problems"), rows, "lr")


def _difficulty(facts: CardFacts) -> Iterator[Block]:
    if facts.stages:
        yield "A problem's pass rate is the share of a policy's attempts that reach the reference answer."
        titles = ("Problems measured", "Never solved", "Always solved", "In the band", "Mean pass rate, curated")
        yield Table(("Stage", "Policy", *titles), [_stage_row(stage) for stage in facts.stages], "llrrrrr")
        if has_extra("plots"):
            yield "![Problems by number of correct attempts, with the band that is kept](plots/pass_rates.png)"


def _stage_row(stage: StageFacts) -> tuple[str, ...]:
    judged = stage.rates.filter(pl.col("judged") > 0)
    max_correct = (pl.col("judged") * stage.max_pass_rate + 1e-9).floor()
    by_counts = (pl.col("correct") >= stage.min_correct) & (pl.col("correct") <= max_correct)
    of_set = judged.filter("stands")
    total = float((of_set["pass_rate"] * of_set["problems"]).sum())
    mean = f"{total / int(of_set['problems'].sum()):.2f}" if of_set.height else "–"
    filters = (
        pl.lit(True),
        pl.col("correct") == 0,
        pl.col("correct") == pl.col("judged"),
        pl.coalesce("foreseen_inside", by_counts),
    )
    counts = (f"{int(judged.filter(where)['problems'].sum()):,}" for where in filters)
    return (cell(capital(stage.title)), f"`{stage.policy}`", *counts, mean)


def _examples(facts: CardFacts) -> Iterator[Block]:
    places = example_places(facts.curated)
    if places:
        yield "As they are in the set, formulas unrendered."
    for at in places:
        row = facts.curated.slice(at, 1).collect().row(0, named=True)
        origin = [language_names().get(row["lang"], row["lang"]), f"from `{row['source']}`"]
        if facts.stages and row["judged"]:
            by = code_span(facts.stages[-1].policy)
            origin.insert(0, f"{row['correct']} of {row['judged']} attempts correct by {by}")
        yield "> " + escape_markdown(row["statement"]).replace("\n", "  \n> ")
        yield f"Answer: {code_span(row['answer'] or '')}. {', '.join(origin)}."


def example_places(curated: pl.LazyFrame) -> list[int]:
    """Return positions of up to three short problems of different difficulty."""
    short = curated.with_row_index("at").filter(pl.col("statement").str.len_chars() <= SHORT)
    first = pl.col("at").sort_by("id").first()
    rates = short.group_by("pass_rate").agg(pl.len(), first).collect(engine="streaming").sort("pass_rate")
    ends, height = rates["len"].cum_sum(), int(rates["len"].sum())
    groups = {int((ends <= share * height).sum()) for share in (1 / 6, 1 / 2, 5 / 6)} if height else set()
    return [int(rates["at"][group]) for group in sorted(groups)]


def _columns(curated: pl.LazyFrame) -> Table:
    rows = [(f"`{name}`", cell(dtype), COLUMN_WORDS.get(name, "")) for name, dtype in curated.collect_schema().items()]
    return Table(("Column", "Type", "What it is"), rows)


def _method(facts: CardFacts) -> Iterator[Block]:
    band = "the last stage" if len(facts.stages) > 1 else "the stage"
    kept = f", and kept those whose pass rate is in the band of {band}" if facts.stages else ""
    yield (
        f"Goldilocks {facts.version} read the sources, dropped what cannot be asked or checked, removed repeated "
        f"problems{kept}. The method follows section 4.1 of the Magistral report (arXiv 2506.10910), which prints no "
        "thresholds; those here are settings."
    )
    fence = "`" * max(3, 1 + longest_run(facts.recipe_toml, "`"))
    recipe = f"{fence}toml\n{facts.recipe_toml.rstrip()}\n{fence}"
    yield f"<details>\n<summary>The recipe, with all settings</summary>\n\n{recipe}\n\n</details>"


def _limits(facts: CardFacts) -> Iterator[str]:
    if facts.stages:
        attempts = facts.stages[-1].attempts
        low, high = (f"{100 * end:.0f} %" for end in wilson(1, attempts))
        named = "policies with their" if len(facts.stages) > 1 else "policy with its"
        yield f"Pass rates belong to the named {named} prompt and sampling. Another model finds other problems easy."
        yield (
            f"A pass rate of {count_phrase(attempts, 'attempt')} is coarse: 1 of {attempts} correct has a 95 % "
            f"interval from {low} to {high}. Problems near an edge of the band may belong on its other side."
        )
        yield (
            f"A *suspected wrong label* is a suspicion: {facts.suspicion}. Some of these references are right, and "
            "wrong ones on which attempts do not agree are still in the set."
        )
        yield "*Never solved* means never by this policy in these attempts. Some of those problems are merely hard."
    yield (
        "The format filter is a set of rules. It drops some good problems and keeps some bad ones; `dropped/` shows "
        "what it read."
    )
    yield "A reference answer was checked for being readable by the verifier, not for being right."
    yield from map(escape_markdown, facts.notes)


def _title(title: str) -> str:
    return escape_markdown(capital(title))


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
            "Changed: a statement was cleaned or rewritten, or its options were removed; the columns `raw_statement` "
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
    copies = curated.select(pl.col("also_from").list.explode()).drop_nulls().unnest("also_from").cast(_COPY)
    copies = copies.with_columns(pl.col("license").fill_null(UNKNOWN))
    merged = copies.group_by(by).agg(pl.len().alias("merged"))
    table = own.join(merged, on=by, how="full", coalesce=True).with_columns(
        pl.col("problems", "changed", "merged").fill_null(0)
    )
    return table.select(*by, "problems", "changed", "merged").collect(engine="streaming")
