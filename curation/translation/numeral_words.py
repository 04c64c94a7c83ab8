"""The numerals of the languages as words, with the fractions and multiples that are single words.

The words are `curation.languages.vocabulary`'s; here they become tables. Numerals that are one word (einunddreißig,
trentuno) are put together from their pieces, up to the thousands. Positional ones are read by `numerals_positional`.
"""

from __future__ import annotations

import re
from fractions import Fraction

from curation.languages.vocabulary import language, languages, one_of
from curation.languages.vocabulary.parts import Numerals

POSITIONAL = "positional"


def _glued(numerals: Numerals) -> dict[str, Fraction]:
    """Return the numerals that are one word: from 21 to 99, the hundreds, the thousands."""
    units, tens, glue = numerals.units, numerals.tens, numerals.glue
    glued: dict[str, Fraction] = {}
    for ten, word in enumerate(tens, 2):
        for unit in range(1, 10):
            value = Fraction(10 * ten + unit)
            if numerals.order == "unit_first":
                glued[f"{glue['one'] if unit == 1 else units[unit]}{glue['joint']}{word}"] = value
                continue
            stem = word[:-1] if unit in (1, 8) else word
            glued[stem + units[unit]] = value
            if unit == 3:
                glued[word + glue["three"]] = value
    smaller = {**{word: Fraction(value) for value, word in enumerate(units[1:], 1)}, **glued}
    smaller |= {word: Fraction(10 * ten) for ten, word in enumerate(tens, 2)}
    for count in range(1, 10):
        first = (glue["one_hundred"] if count == 1 else units[count]) + glue["hundred"]
        glued[first] = Fraction(100 * count)
        glued |= {first + word: 100 * count + value for word, value in smaller.items()}
    for word, value in smaller.items():
        glued[f"{glue['one'] if word == units[1] else word}{glue['thousand']}"] = 1000 * value
    return glued


def _words(numerals: Numerals) -> dict[str, Fraction]:
    """Return a language's words for numbers, each with its number."""
    table = {word: Fraction(value) for value, word in enumerate(numerals.units)}
    table |= {word: Fraction(10 * value) for value, word in enumerate(numerals.tens, 2)}
    if numerals.order in ("unit_first", "ten_first"):
        table |= _glued(numerals)
    for words in (numerals.scales, numerals.parts, numerals.more):
        table |= {word: Fraction(value) for value, listed in words.items() for word in listed}
    return table


WORDS = {lang.code: _words(lang.numerals) for lang in languages() if lang.numerals.order != POSITIONAL}
"""By language: word → its number."""

_PREFIXES = one_of(lambda lang: lang.numerals.stem_prefixes)
STEMS = {
    lang.code: tuple(
        (Fraction(value), re.compile(rf"(?:{_PREFIXES})?(?:{stem}).")) for value, stem in lang.numerals.stems.items()
    )
    for lang in languages()
}
"""What words that are made of a numeral begin with, by language."""


def months_of(code: str) -> tuple[str, ...]:
    """Return expressions of the twelve months in a language; none where months are numbers."""
    dates = language(code).dates
    ending = f"(?:{'|'.join(dates.month_endings)}|)" if dates.month_endings else ""
    return tuple(name + ending for name in dates.month_stems or (forms.split()[0] for forms in dates.months))
