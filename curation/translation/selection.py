"""Choose problems to translate, and their languages, by a hash per group.

Invariants: the choice depends only on seed and group; a group has at most one chosen row, and none if it has
another language.
"""

from __future__ import annotations

import hashlib

import polars as pl

from curation.config import TranslationSettings

SOURCE = "en"
"""The language of the problems that are translated."""

_DRAWS = 2**64


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
