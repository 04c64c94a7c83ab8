"""Whether what each of several has stays each one's: 30 dollars each for six books are not 30 dollars for six books.

Invariants: pure functions over aligned segments. One word of the translation's sentence that says so is enough: each,
per piece, both. Nothing is said of languages that have no such list (Chinese says it by its order).
"""

from __future__ import annotations

import re
from functools import cache

from curation.languages.vocabulary import language
from curation.translation.meaning_words import matcher
from curation.translation.sentences import Segment, sides
from curation.translation.violations import Violation

_REACH = 60
"""Characters from a number to the word behind it that says each."""


@cache
def _behind(lang: str) -> re.Pattern[str]:
    words = language(lang).meaning.each_behind
    return re.compile(rf"\d[^.?!]{{0,{_REACH}}}?(?:{words})" if words else r"(?!)", re.IGNORECASE)


def distribution(segment: Segment, source: str, target: str) -> list[Violation]:
    """Return a violation where a number is each one's in the original, and no word of the translation says so."""
    if not language(target).meaning.distributive or not _behind(source).search(segment.before):
        return []
    if matcher(target, "distributive").search(segment.after.lower()):
        return []
    return [Violation("order", f"what is each one's is not: {sides(segment)}")]
