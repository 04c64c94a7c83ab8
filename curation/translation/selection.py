"""Which problems are translated, and into what: a share, spread evenly over the languages, by hash.

Invariants: the choice depends on the problems' groups and the seed only, never on order or shards; of a group one row
at most is chosen, and none where the group has a row in another language already; the numbers of any two languages
differ by one at most; a problem that joins or leaves the set moves few others.
"""

from __future__ import annotations

import hashlib

import numpy as np
import polars as pl

from curation.config.languages import TranslationSettings


def choose_problems(rows: pl.LazyFrame, settings: TranslationSettings, source: str = "en") -> dict[str, str]:
    """Return id → language to translate into, for round(share × problems in ``source``) problems.

    Of all problems their ids and groups are held, some 100 bytes each, of chosen ones more.

    Args:
        rows: id, group and lang of every problem of the set.
    """
    is_own = pl.col("lang").eq_missing(source) | pl.col("lang").is_null()
    own = rows.filter(is_own).group_by("group").agg(pl.col("id").min()).collect(engine="streaming")
    excluded = rows.filter(~is_own).select("group").unique().collect(engine="streaming")
    free = own.join(excluded, on="group", how="anti", nulls_equal=True)
    draws = (int(_draw(settings.seed, group), 16) for group in free["group"])
    order = np.argsort(np.fromiter(draws, np.uint64, free.height), kind="stable")
    picked = free[order[: round(settings.share * own.height)]]
    room = _room(picked.height, settings)
    assignment: dict[str, str] = {}
    for group, name in picked.select("group", "id").iter_rows():
        wishes = sorted(settings.targets, key=lambda target: _draw(settings.seed, f"{target}|{group}"))
        target = next(wish for wish in wishes if room[wish])
        room[target] -= 1
        assignment[name] = target
    return assignment


def _room(count: int, settings: TranslationSettings) -> dict[str, int]:
    """Return how many problems each language takes."""
    each, rest = divmod(count, len(settings.targets))
    return {target: each + (place < rest) for place, target in enumerate(settings.targets)}


def _draw(seed: int, text: str) -> str:
    return hashlib.blake2b(f"{seed}|{text}".encode(), digest_size=8).hexdigest()
