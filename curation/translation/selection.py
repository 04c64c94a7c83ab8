"""Which problems are translated, and into what: a share, spread evenly over the languages, by hash.

Invariants: the choice depends on the problems' groups and the seed only, never on order or shards; of a group one row
at most is chosen, and none where the group has a row in another language already; the numbers of any two languages
differ by one at most; a problem that joins or leaves the set moves few others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from curation.config.languages import TranslationSettings


def choose_problems(
    rows: Iterable[tuple[str, str, str | None]], settings: TranslationSettings, source: str = "en"
) -> dict[str, str]:
    """Return id → language to translate into, for round(share × problems in ``source``) problems.

    Args:
        rows: id, group and lang of every problem of the set.
    """
    own: dict[str, str] = {}
    excluded: set[str] = set()
    for name, group, lang in rows:
        if lang == source or lang is None:
            own[group] = min(name, own.get(group, name))
        else:
            excluded.add(group)
    free = sorted((group for group in own if group not in excluded), key=lambda group: _draw(settings.seed, group))
    picked = free[: round(settings.share * len(own))]
    room = _room(len(picked), settings)
    assignment: dict[str, str] = {}
    for group in picked:
        wishes = sorted(settings.targets, key=lambda target: _draw(settings.seed, f"{target}|{group}"))
        target = next(wish for wish in wishes if room[wish])
        room[target] -= 1
        assignment[own[group]] = target
    return assignment


def _room(count: int, settings: TranslationSettings) -> dict[str, int]:
    """Return how many problems each language takes."""
    each, rest = divmod(count, len(settings.targets))
    return {target: each + (place < rest) for place, target in enumerate(settings.targets)}


def _draw(seed: int, text: str) -> str:
    return hashlib.blake2b(f"{seed}|{text}".encode(), digest_size=8).hexdigest()
