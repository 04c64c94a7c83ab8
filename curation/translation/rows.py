"""Choose the problems to translate, and turn accepted translations into rows.

Invariants: the choice depends only on seed and group, by a hash; a group has at most one chosen row, and none if it has
another language.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from typing import Any

import polars as pl

from curation.config import TranslationSettings
from curation.records import PROBLEM, problem_id

SOURCE = "en"

_DRAWS = 2**64

STAGE = "translation"

TRANSLATED = pl.Schema(
    {
        **PROBLEM,
        "translation_of": pl.String(),  # id of the original
        "pass_rate_of": pl.String(),  # whose pass rate it has: the original's; null if it was measured itself
    }
)


def chosen(rows: pl.DataFrame, settings: TranslationSettings, seed: int) -> dict[str, str]:
    """Return each chosen problem's target language by id."""
    is_own = (pl.col("lang").fill_null(SOURCE) == SOURCE).all()
    groups = rows.group_by("group").agg(pl.col("id").min(), own=is_own).filter("own").sort("id")
    return {
        name: _language(group, settings, seed)
        for group, name in groups.select("group", "id").iter_rows()
        if _draw(seed, group) < settings.share * _DRAWS
    }


def _language(group: str, settings: TranslationSettings, seed: int) -> str:
    return max(settings.languages, key=lambda code: _draw(seed, f"{code}|{group}"))


def _draw(seed: int, text: str) -> int:
    return int.from_bytes(hashlib.blake2b(f"translation|{seed}|{text}".encode(), digest_size=8).digest())


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


def with_decisions(decisions: pl.DataFrame, translations: pl.DataFrame) -> pl.DataFrame:
    """Return decisions, copied for translations with their originals' pass rates."""
    own = translations.filter(pl.col("pass_rate_of").is_not_null()).select("id", problem="pass_rate_of")
    copied = own.join(decisions, on="problem", how="inner", maintain_order="left").drop("problem")
    return pl.concat([decisions, copied.rename({"id": "problem"}).select(decisions.columns)])
