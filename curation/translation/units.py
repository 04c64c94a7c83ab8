"""Units and currencies, as the languages name them beside a number."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from curation.languages.vocabulary import language

_SIGNS: dict[str, tuple[str, tuple[str, ...]]] = {
    "dollar": ("money", (r"\$", r"US\$", "USD")),
    "euro": ("money", ("€", "eur")),
    "pound": ("money", ("£",)),
    "cent": ("money", ("¢",)),
    "percent": ("share", ("%", "％")),
    "km": ("length", ("kms?",)),
    "mile": ("length", ("mi", "mph")),
    "foot": ("length", ("ft",)),
    "inch": ("length", ('(?<=\\d)["”″]',)),
    "yard": ("length", ("yd",)),
    "cm": ("length", ("cms?",)),
    "m": ("length", ("m",)),
    "mm": ("length", ("mm",)),
    "kg": ("mass", ("kgs?",)),
    "gram": ("mass", ("g",)),
    "lb": ("mass", ("lbs?",)),
    "ounce": ("mass", ("oz",)),
    "liter": ("volume", ("l",)),
    "ml": ("volume", ("ml",)),
    "gallon": ("volume", ("gal",)),
    "second": ("time", ("sec", "secs")),
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
    "dollar euro pound percent km mile foot inch yard cm kg gram lb gallon liter".split()
)  # fmt: skip
"""Units that a translation must name again; hours and days are too often said otherwise (a day: daily, 24 h)."""
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
    """Return the expression of every unit as a language and its signs name it, and the unit of each of its groups."""
    spaced = language(lang).spaced
    counted = rf"(?<=[\d{language(lang).meaning.counts}])\s?"
    named = language(lang).units.beside_numbers
    expressions: list[tuple[int, str, str]] = []
    for unit, (_, signs) in _SIGNS.items():
        for word in named.get(unit, ()):
            bounded = (
                rf"(?<![^\W\d_]){word}(?![^\W\d_])" if spaced else rf"\s?{word}" if len(word) > 1 else counted + word
            )
            expressions.append((len(word), bounded, unit))
        for word in language("en").units.beside_numbers.get(unit, ()):
            expressions.append((len(word), rf"(?<![^\W\d_]){word}(?![^\W\d_])", unit))
        for sign in signs:
            letters = sign[-1].isalpha() or sign[-1] == "?"
            expressions.append((0, rf"(?<=\d)\s?{sign}(?![^\W\d_])" if letters else sign, unit))
    expressions.sort(key=lambda one: -one[0])
    joined = "|".join(f"({expression})" for _, expression, _ in expressions)
    return re.compile(joined, re.IGNORECASE), tuple(unit for _, _, unit in expressions)


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
    expression, units = _mentions(lang)
    return [
        UnitMention(units[(match.lastindex or 1) - 1], match.start(), match.end())
        for match in expression.finditer(text)
    ]
