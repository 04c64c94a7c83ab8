"""Turn accepted and refused translations into rows."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

import polars as pl

from curation.records import DROPPED, PROBLEM, DropReason, problem_id

STAGE = "translation"

TRANSLATED = pl.Schema(
    {
        **PROBLEM,
        "translation_of": pl.String(),  # id of the original
        "pass_rate_of": pl.String(),  # whose pass rate it has: the original's; null if it was measured itself
    }
)


def translated_rows(originals: pl.DataFrame, proposals: pl.DataFrame, by: str, read_by: str) -> pl.DataFrame:
    """Return `TRANSLATED` rows of accepted proposals, whose ``at`` indexes ``originals``."""
    accepted = proposals.filter("accepted")
    pairs = zip(originals[accepted["at"].to_list()].iter_rows(named=True), accepted.iter_rows(named=True), strict=True)
    rows = [_row(original, proposal, {"by": by, "read_by": read_by}) for original, proposal in pairs]
    return pl.DataFrame(rows, schema=TRANSLATED, orient="row")


def _row(original: Mapping[str, Any], proposal: Mapping[str, Any], made: Mapping[str, str]) -> dict[str, Any]:
    name, statement = original["id"], proposal["new_statement"]
    choices, answer = proposal["new_choices"], proposal["new_answer"]
    meta = json.loads(original["meta"] or "{}") | {STAGE: {"of": name, "tries": proposal["tries"], **made}}
    return {
        **original,
        "id": problem_id(statement, choices, original["domain"]),
        "group": original["group"] or name,
        "statement": statement,
        "answer": answer,
        "choices": choices,
        "lang": proposal["target"],
        "raw_statement": original["statement"],
        "raw_answer": original["answer"] if answer != original["answer"] else None,
        "solution": None,
        "meta": json.dumps(meta, ensure_ascii=False),
        "translation_of": name,
        "pass_rate_of": name,
    }


def without_repeated(
    rows: pl.DataFrame, proposals: pl.DataFrame, taken: Collection[str]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return rows with texts not ``taken``, and proposals with others refused."""
    is_new = ~pl.col("id").is_in(list(taken)) & pl.col("id").is_first_distinct()
    repeated = pl.col("id").is_in(rows.filter(~is_new)["translation_of"].implode())
    why = pl.when(repeated).then(pl.lit("repeated: the set has this text already")).otherwise("why")
    return rows.filter(is_new), proposals.with_columns(accepted=pl.col("accepted") & ~repeated, why=why)


def refused_rows(originals: pl.DataFrame, proposals: pl.DataFrame) -> pl.DataFrame:
    """Return `DROPPED` rows of untranslated problems, which stay in the set."""
    refused = proposals.filter(~pl.col("accepted"))
    rows = originals[refused["at"].to_list()].with_columns(
        stage=pl.lit(STAGE), reason=pl.lit(DropReason.UNTRANSLATED.value), evidence=refused["why"]
    )
    return rows.select(DROPPED.names())


def with_translations(problems: pl.DataFrame, translations: pl.DataFrame) -> pl.DataFrame:
    """Return each problem followed by its translation, independent of shards."""
    places = problems.select("id").with_row_index("place")
    new = translations.join(places, left_on="translation_of", right_on="id", how="inner", maintain_order="left")
    rows = pl.concat([problems.with_row_index("place"), new], how="diagonal")
    return rows.sort("place", maintain_order=True).drop("place")


def with_decisions(decisions: pl.DataFrame, translations: pl.DataFrame) -> pl.DataFrame:
    """Return decisions, copied for translations with their originals' pass rates."""
    own = translations.filter(pl.col("pass_rate_of").is_not_null()).select("id", problem="pass_rate_of")
    copied = own.join(decisions, on="problem", how="inner", maintain_order="left").drop("problem")
    return pl.concat([decisions, copied.rename({"id": "problem"}).select(decisions.columns)])
