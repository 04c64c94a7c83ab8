"""The data card of a curated set: README.md in the Hugging Face card format, and two plots.

Invariants:
  - a card is made from `CardFacts` alone: the same facts give the same bytes of text and of plots, and no date
    appears that the facts do not name;
  - every row of the funnel adds up (``rows_in == kept + dropped``), or no card is made;
  - the YAML header names ``data/train-*.parquet`` only, so ``datasets.load_dataset(folder)`` reads the curated rows
    and never the dropped ones in ``dropped/`` or the queue in ``disputed/``.

Not here: the parquet files, the counting, any decision. Plots are drawn by `curation.publish.cards.plots`; the wording
is in ``templates/card.md.j2``.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from curation.extras import has_extra
from curation.publish.cards.facts import CardFacts, FunnelRow, is_regraded, most_correct, stage_title, values_of
from curation.publish.cards.words import (
    COLUMN_WORDS,
    LANGUAGES,
    by_count,
    by_reason,
    capital,
    cell,
    code_span,
    count_phrase,
    escape_markdown,
    longest_run,
    reason_words,
    share,
)
from curation.records import StoreError
from curation.storage.sorted_parts import in_slices

VERSION = "cards@9"
"""Changed whenever the same facts could give another card."""

SIZES = ((10**3, "n<1K"), (10**4, "1K<n<10K"), (10**5, "10K<n<100K"), (10**6, "100K<n<1M"), (10**7, "1M<n<10M"))

Z95 = 1.959963984540054


def write_card(facts: CardFacts, folder: Path) -> Path:
    """Write README.md and, with the extra `plots`, plots/ into the folder of a set; return the path of README.md.

    Raises:
        StoreError: a row of the funnel does not add up.
    """
    _check(facts)
    if has_extra("plots"):
        from curation.publish.cards.plots import draw_funnel, draw_pass_rates

        (folder / "plots").mkdir(parents=True, exist_ok=True)
        draw_funnel(facts, folder / "plots" / "funnel.png")
        if facts.rates:
            draw_pass_rates(facts, folder / "plots" / "pass_rates.png")
    path = folder / "README.md"
    path.write_bytes(render(facts).encode())
    return path


def render(facts: CardFacts) -> str:
    """Return the text of README.md."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("curation.publish.cards"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    environment.filters |= {
        "counted": count_phrase,
        "cell": cell,
        "share": share,
        "escape_markdown": escape_markdown,
        "capital": capital,
        "by_reason": by_reason,
        "language_name": lambda code: LANGUAGES.get(code, code),
    }
    text = environment.get_template("card.md.j2").render(
        facts=facts,
        has_plots=has_extra("plots"),
        header=_header(facts),
        rows_read=facts.funnel[0].rows_in if facts.funnel else 0,
        funnel=_funnel(facts.funnel),
        regraded=is_regraded(facts.funnel),
        reasons=_reasons(facts.funnel),
        height=_height(facts.curated),
        languages=_languages(facts.curated),
        stages=[_stage(facts, stage) for stage in facts.rates],
        examples=_examples(facts),
        columns=_columns(facts.curated),
        fence="`" * max(3, 1 + longest_run(facts.recipe_toml, "`")),
    )
    return str(text)


def wilson(correct: int, judged: int) -> tuple[float, float]:
    """Return the 95 % Wilson interval of a pass rate, for the card's words on how coarse it is."""
    p, z2 = correct / judged, Z95 * Z95
    centre = (p + z2 / (2 * judged)) / (1 + z2 / judged)
    half = Z95 / (1 + z2 / judged) * math.sqrt(p * (1 - p) / judged + z2 / (4 * judged * judged))
    return max(0.0, centre - half), min(1.0, centre + half)


def _check(facts: CardFacts) -> None:
    for row in facts.funnel:
        if row.rows_in != row.kept + row.dropped:
            raise StoreError(
                f"card {facts.name}: stage {row.stage} read {row.rows_in} rows, but kept {row.kept} and "
                f"dropped {row.dropped}; the stage's manifest is damaged, run the stage again."
            )
    if not set(facts.rates) == set(facts.bands) == set(facts.policies):
        raise StoreError(f"card {facts.name}: rates, bands and policies must name the same stages.")


def _header(facts: CardFacts) -> str:
    """Return the YAML header that the Hugging Face hub and `datasets` read."""
    import yaml

    height = _height(facts.curated)
    header: dict[str, Any] = {
        "pretty_name": facts.pretty_name,
        "license": facts.license,
        "language": values_of(facts.curated, "lang"),
        "size_categories": [next((name for most, name in SIZES if height < most), "n>10M")],
        "task_categories": ["text-generation"],
        "tags": [*_domains(facts), "reasoning", "reinforcement-learning", "verifiable-rewards", "goldilocks"],
        "configs": [
            {
                "config_name": "default",
                "data_files": [{"split": "train", "path": "data/train-*.parquet"}],
                "description": f"rows {rows_digest(facts.curated)}",
            },
        ],
    }
    header = {key: value for key, value in header.items() if value}
    return yaml.safe_dump(header, sort_keys=False, allow_unicode=True, width=1000).rstrip("\n")


def _height(curated: pl.LazyFrame) -> int:
    return int(curated.select(pl.len()).collect().item())


def rows_digest(curated: pl.LazyFrame) -> str:
    """Return a hash of a set's rows, by which `datasets` tells two folders of one name apart.

    Its cache goes by the folder's name and the card's `configs`, and would give the rows of another run's `curated`.
    """
    digest = hashlib.blake2b(digest_size=8)
    for rows in in_slices(curated.select("id", "statement", "answer", "pass_rate")):
        digest.update(rows.write_ndjson().encode())
    return digest.hexdigest()


def _domains(facts: CardFacts) -> list[str]:
    """Return the domains of the set's problems; math and code where it has no problem."""
    return values_of(facts.curated, "domain") or ["code", "math"]


def _funnel(funnel: Sequence[FunnelRow]) -> list[dict[str, str]]:
    start = funnel[0].rows_in if funnel else 0
    return [
        {
            "title": cell(capital(row.title)),
            "rows_in": f"{row.rows_in:,}",
            "kept": f"{row.kept:,}",
            "dropped": f"{row.dropped:,}",
            "of_stage": share(row.kept, row.rows_in),
            "overall": share(row.kept, start),
        }
        for row in funnel
    ]


def _reasons(funnel: Sequence[FunnelRow]) -> list[tuple[str, str, str, str]]:
    """Return (stage, reason in words, rows, share of the stage's input), the most frequent first.

    A stage is named once, in its first row.
    """
    return [
        (
            "" if place else f"**{cell(capital(row.title))}**",
            cell(reason_words(reason)),
            f"{count:,}",
            share(count, row.rows_in),
        )
        for row in funnel
        for place, (reason, count) in enumerate(by_count(row.reasons))
    ]


def _columns(curated: pl.LazyFrame) -> list[tuple[str, str, str]]:
    """Return name, type and words of each column."""
    return [(name, str(dtype), COLUMN_WORDS.get(name, "")) for name, dtype in curated.collect_schema().items()]


def _languages(curated: pl.LazyFrame) -> str:
    counts = curated.group_by("lang").len().sort(["len", "lang"], descending=[True, False]).collect(engine="streaming")
    return ", ".join(f"{LANGUAGES.get(lang or '', lang or 'unknown')} {count:,}" for lang, count in counts.iter_rows())


def _stage(facts: CardFacts, stage: str) -> dict[str, Any]:
    """Return the fields of one difficulty stage for the template."""
    min_correct, highest, attempts = facts.bands[stage]
    rates, max_correct = facts.rates[stage], most_correct(facts.bands[stage])
    judged = rates.filter(pl.col("judged") > 0)
    by_counts = (pl.col("correct") >= min_correct) & (pl.col("correct") <= (pl.col("judged") * highest + 1e-9).floor())
    of_set = judged.filter("stands")
    total = float((of_set["pass_rate"] * of_set["problems"]).sum())
    mean = total / int(of_set["problems"].sum()) if of_set.height else None

    def problems(where: pl.Expr | bool = True) -> int:
        return int(judged.filter(where)["problems"].sum())

    low, high = wilson(1, attempts)
    return {
        "title": stage_title(facts, stage),
        "policy": facts.policies[stage],
        "attempts": attempts,
        "least": min_correct,
        "most": max_correct,
        "measured": problems(),
        "inside": problems(pl.coalesce("foreseen_inside", by_counts)),
        "never": problems(pl.col("correct") == 0),
        "always": problems(pl.col("correct") == pl.col("judged")),
        "mean": f"{mean:.2f}" if mean is not None else "–",
        "one_low": f"{100 * low:.0f} %",
        "one_high": f"{100 * high:.0f} %",
    }


def _examples(facts: CardFacts) -> list[dict[str, str]]:
    """Return up to three short problems of the curated set: a hard, a middling and an easy one by the last stage."""
    last = next(reversed(tuple(facts.rates)), None)
    examples = []
    for at in example_places(facts.curated, by_rate=last is not None):
        row = facts.curated.slice(at, 1).collect().row(0, named=True)
        origin = [LANGUAGES.get(row["lang"], row["lang"]), f"from `{row['source']}`"]
        if last is not None and row["judged"]:
            origin.insert(
                0, f"{row['correct']} of {row['judged']} attempts correct by {code_span(facts.policies[last])}"
            )
        statement = escape_markdown(row["statement"]).replace("\n", "  \n> ")
        examples.append({"about": ", ".join(origin), "statement": statement, "answer": code_span(row["answer"] or "")})
    return examples


def example_places(curated: pl.LazyFrame, *, by_rate: bool) -> list[int]:
    """Return the places of up to three short problems: a sixth, half and five sixths through all of them, sorted.

    They are sorted by pass rate and id; a group of equal rates and beginnings of ids is in memory at a time.
    """
    rate = pl.col("pass_rate") if by_rate else pl.lit(None, pl.Float64)
    short = curated.with_row_index("at").filter(pl.col("statement").str.len_chars() <= 500)
    keyed = short.select("at", "id", rate=rate, begin=pl.col("id").str.slice(0, 2))
    sizes = keyed.group_by("rate", "begin").len().collect(engine="streaming").sort("rate", "begin")
    ends, height = sizes["len"].cum_sum(), int(sizes["len"].sum())
    places = []
    for place in sorted({height // 6, height // 2, (5 * height) // 6}) if height else []:
        group = int((ends <= place).sum())
        wanted, begin, count = sizes.row(group)
        same = pl.col("rate").eq_missing(pl.lit(wanted, pl.Float64)) & (pl.col("begin") == begin)
        rows = keyed.filter(same).select("at", "id").collect(engine="streaming").sort("id")
        places.append(int(rows["at"][place - (ends[group] - count)]))
    return places
