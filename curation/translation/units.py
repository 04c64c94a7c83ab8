"""Units and currencies, as the languages name them beside a number."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache

from curation.languages.vocabulary import language

_SIGNS: dict[str, tuple[str, tuple[str, ...]]] = {
    "dollar": ("money", (r"\$", r"US\$", "USD")),
    "euro": ("money", ("€", "eur")),
    "pound": ("money", ("£",)),
    "rupee": ("money", ()),
    "cent": ("money", ("¢",)),
    "percent": ("share", ("%", "％")),
    "km": ("length", ("kms?", "kmp?h", "kph")),
    "mile": ("length", ("mi", "mph")),
    "foot": ("length", ("ft", r"(?<=\d)['’′](?=\s?\d)")),
    "inch": ("length", ('(?<=\\d)["”″]',)),
    "yard": ("length", ("yd",)),
    "cm": ("length", ("cms?",)),
    "m": ("length", ("m", "mtrs?", "mts")),
    "mm": ("length", ("mm",)),
    "kg": ("mass", ("kgs?",)),
    "gram": ("mass", ("g", "gms?", "gr")),
    "lb": ("mass", ("lbs?",)),
    "ounce": ("mass", ("oz",)),
    "liter": ("volume", ("l", "ltrs?", "lts")),
    "ml": ("volume", ("ml",)),
    "gallon": ("volume", ("gal",)),
    "second": ("time", ("secs?", r"(?<=\d\s)s")),
    "minute": ("time", ("min", "mins")),
    "hour": ("time", ("hrs?", "h")),
    "day": ("time", ()),
    "week": ("time", ()),
    "month": ("time", ()),
    "year": ("time", ("yrs?",)),
}
"""Unit → what it measures, and the expressions of the signs for it that every language uses."""


DIMENSIONS = {name: dimension for name, (dimension, _) in _SIGNS.items()}
"""Unit → what it measures."""

_COMPARED = frozenset(
    "dollar euro pound rupee percent km mile foot inch yard cm kg gram lb gallon liter".split()
)  # fmt: skip
"""Units that a translation must name again; hours and days are too often said otherwise (a day: daily, 24 h)."""
_REMEMBERED = 256
"""Texts whose units are kept: those of one pair are asked for again and again."""
_BEFORE = re.compile(r"(?P<dollar>\$|US\$)\s?\d|(?P<euro>€)\s?\d|(?P<pound>£)\s?\d")


@cache
def _names(unit: str, lang: str) -> str:
    """Return the alternatives that name a unit in a language or in English, signs first."""
    named = (language(code).units.beside_numbers.get(unit, ()) for code in dict.fromkeys((lang, "en")))
    return "|".join((*_SIGNS[unit][1], *(word for words in named for word in words)))


@cache
def _behind(unit: str, lang: str) -> re.Pattern[str]:
    names = _names(unit, lang)
    if unit in ("m", "gram", "liter", "foot"):
        return re.compile(rf"\d\s?(?:-\s?)?(?:{names})(?![^\W\d_])", re.IGNORECASE)
    return re.compile(rf"(?:\d\s?-?\s?(?:{names}))(?![a-zа-яà-ÿ])", re.IGNORECASE)


@cache
def _anywhere(unit: str, lang: str) -> re.Pattern[str]:
    names = _names(unit, lang)
    return re.compile(rf"(?<![^\W\d_])(?:{names})(?![a-zа-яà-ÿ])|(?<=[\u3400-\u9fff\d\s])(?:{names})", re.IGNORECASE)


def units_with_numbers(text: str, lang: str) -> set[str]:
    """Return the compared units that stand directly with a number, or an amount of money.

    Example: ``units_with_numbers("a 5 km walk costs $3", "en") == {"km", "dollar"}``
    """
    before_numbers = {name for match in _BEFORE.finditer(text) for name, value in match.groupdict().items() if value}
    return before_numbers | {name for name in _COMPARED if _behind(name, lang).search(text)}


def is_named(unit: str, text: str, lang: str) -> bool:
    """Return whether a unit is named anywhere in a text, in its language or in English."""
    return _anywhere(unit, lang).search(text) is not None


@cache
def _mentions(lang: str) -> tuple[re.Pattern[str], tuple[str, ...]]:
    """Return the expression of every unit as a language and its signs name it, and the unit of each of its groups.

    Words that stand apart share one look behind and ahead, so that most places of a text are passed over at once.
    """
    spaced = language(lang).spaced
    counted = rf"(?<=[\d{language(lang).meaning.counts}])\s?"
    words: list[tuple[str, str]] = []
    run_together: list[tuple[str, str]] = []
    letters: list[tuple[str, str]] = []
    signs: list[tuple[str, str]] = []
    for unit, (_, written) in _SIGNS.items():
        for word in language(lang).units.beside_numbers.get(unit, ()):
            (words if spaced else run_together).append((word, unit))
        words += [(word, unit) for word in language("en").units.beside_numbers.get(unit, ())]
        for sign in written:
            is_word = sign[-1].isalpha() or sign[-1] == "?"
            (letters if is_word else signs).append((rf"(\s?{sign})" if is_word else f"({sign})", unit))
    for listed in (words, run_together):
        listed.sort(key=lambda one: -len(one[0]))
    expressions = (
        rf"(?<![^\W\d_])(?:{'|'.join(f'({word})' for word, _ in words)})(?![^\W\d_])",
        *(rf"(\s?{word})" if len(word) > 1 else rf"({counted}{word})" for word, _ in run_together),
        rf"(?<=\d)(?:{'|'.join(sign for sign, _ in letters)})(?![^\W\d_])",
        *(sign for sign, _ in signs),
    )
    units = tuple(unit for _, unit in (*words, *run_together, *letters, *signs))
    return re.compile("|".join(expressions), re.IGNORECASE), units


@dataclass(frozen=True, slots=True)
class UnitMention:
    """A unit as a text names it, and where.

    Example: ``UnitMention("km", 5, 7)`` of ``walk 5 km`` (the space before it counts).
    """

    unit: str
    start: int
    end: int


def units_mentioned(text: str, lang: str) -> list[UnitMention]:
    """Return every unit that a text names, in order, beside a number or not.

    Example: ``[one.unit for one in units_mentioned("60 miles per hour", "en")] == ["mile", "hour"]``
    """
    return list(_mentioned(text, lang))


@lru_cache(maxsize=_REMEMBERED)
def _mentioned(text: str, lang: str) -> tuple[UnitMention, ...]:
    expression, units = _mentions(lang)
    return tuple(
        UnitMention(units[(match.lastindex or 1) - 1], match.start(), match.end())
        for match in expression.finditer(text)
    )
