"""A data card's words."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from curation.languages.names import NAMES
from curation.languages.vocabulary import languages
from curation.records import DropReason

_WORDS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))

REASON_WORDS: Mapping[str, str] = {DropReason(name): words for name, words in _WORDS["reasons"].items()}

COLUMN_WORDS: Mapping[str, str] = _WORDS["columns"]


@cache
def language_names() -> Mapping[str, str]:
    """Return the known languages' English names by code."""
    return {**NAMES, **{language.code: language.name for language in languages()}}


def count_phrase(number: int, noun: str) -> str:
    """Return a number and its noun, as ``1,250 rows`` or ``no rows``."""
    word = noun if number == 1 else f"{noun}s"
    return f"{number:,} {word}" if number else f"no {word}"


def share(part: float, whole: float) -> str:
    """Return a percentage, never rounded to 0 or 100; a dash without total."""
    if whole == 0:
        return "–"
    percent = 100 * part / whole
    if 0 < percent < 0.05:
        return "< 0.1 %"
    if 99.95 <= percent < 100:
        return "> 99.9 %"
    return f"{percent:.1f} %"


def capital(text: str) -> str:
    """Return the text with its first letter capitalised."""
    return text[:1].upper() + text[1:]


def by_count(reasons: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return reasons that occurred by falling count, then name."""
    return sorted(((r, n) for r, n in reasons.items() if n), key=lambda pair: (-pair[1], pair[0]))


def reason_words(reason: str) -> str:
    """Return a drop reason in words."""
    return REASON_WORDS.get(reason, reason.replace("_", " "))


def by_reason(reasons: Mapping[str, int]) -> str:
    """Return counts by reason, as in ``5 never solved, 2 too easy``."""
    return ", ".join(f"{count:,} {reason_words(reason)}" for reason, count in by_count(reasons)) or "none"
