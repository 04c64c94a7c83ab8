"""Whether times of the afternoon are still ones of the afternoon.

Where a day has twenty-four hours, 3:30 p.m. is 15:30, or 3:30 with a word of the afternoon; 3:30 alone is a time of the
night. A word of the afternoon anywhere in the translation is believed to be said of each such time.

Invariants: a pure function over whole texts. Not here: a morning that became an evening (`written_alike`).
"""

from __future__ import annotations

import re
from functools import cache

from curation.languages.vocabulary import language
from curation.translation.violations import Violation

_NOON = 12


@cache
def _afternoon(lang: str) -> re.Pattern[str]:
    """Return the expression of the words that say the second half of the day."""
    words = "|".join(language(lang).numerals.second_half)
    bounds = (r"(?<![^\W\d_])", r"(?![^\W\d_])") if language(lang).spaced else ("", "")
    return re.compile(f"{bounds[0]}(?:{words}){bounds[1]}" if words else r"(?!)", re.IGNORECASE)


def half_days(original: str, translated: str, source: str, target: str) -> list[Violation]:
    """Return a violation for a time of the afternoon that is only said as one of the first twelve hours."""
    if not language(source).numerals.half_day or _afternoon(target).search(translated):
        return []
    behind = rf"\s?(?:{_afternoon(source).pattern})"
    for hour, minutes in re.findall(rf"(?<![\d.,:])(\d{{1,2}})[:.]([0-5]\d){behind}", original, re.IGNORECASE):
        later = str(int(hour) + _NOON)
        said = re.compile(rf"(?<![\d.,:])0?{int(hour)}(?:[:.hч]|\s?\w{{1,5}}\s?){minutes}(?!\d)")
        if int(hour) < _NOON and said.search(translated) and not re.search(rf"(?<!\d){later}(?!\d)", translated):
            return [Violation("numbers", f"{hour}:{minutes} of the afternoon is {hour}:{minutes} alone")]
    return []
