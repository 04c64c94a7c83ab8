"""The words of `Meaning`, of one language, as one expression."""

from __future__ import annotations

import re
from functools import cache

from curation.languages.vocabulary import language


@cache
def matcher(lang: str, name: str) -> re.Pattern[str]:
    """Return one expression of a list of `Meaning`, the longest alternatives first."""
    listed = getattr(language(lang).meaning, name)
    if not listed:
        return re.compile(r"(?!)")
    alternatives = "|".join(sorted(listed, key=len, reverse=True))
    return re.compile(rf"(?<![^\W_])(?:{alternatives})(?![^\W_])" if language(lang).spaced else f"(?:{alternatives})")
