r"""The expressions that `question` looks for in a statement, compiled for one language.

The words are `curation.languages.vocabulary.questions`'s; here their blanks are filled.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from functools import cache

from curation.languages.vocabulary import Language, languages, one_of
from curation.languages.vocabulary.questions import Questions
from curation.verify.answers.units import is_known, normalise_unit

_NAME = r"[a-zA-Z](?:_\{?\w\}?)?(?![A-Za-z\\'’])"
_FORMULA = (
    r"(?:\$\$?(?P<dollars>[^$]{1,120})\$\$?|\\\((?P<round>.{1,120}?)\\\)|\\\[(?P<square>.{1,120}?)\\\]"
    r"|(?P<bare>\d{0,4}[a-zA-Z](?:\s*[+*-]\s*\d{0,4}[a-zA-Z]){1,6})(?![\w^]))"
)
FORMULA_GROUPS = ("dollars", "round", "square", "bare")
_STEP = r"(?P<step>0[.,]0{0,8}1|1[,.]?0{0,6})(?!\d|[.,]\d)(?!\s*(?:%|c?m\b|mm\b|k[mg]\b))"
_SIGNS = tuple(
    (
        "km cm mm dm kg mg ml mL cm^2 cm^3 mm^2 mm^3 km^2 dm^2 dm^3 m^2 m^3 ft^2 ft^3 in^2 in^3 kWh kHz MHz Hz kJ kPa "
        "m/s km/h kmh km/s cm/s m/min ft/s mi/h m/s^2 g/cm^3 kg/m^3 mph"
    ).split()
)
"""Signs of units that are read wherever a unit may stand; single letters only in brackets and behind a blank."""

_LETTERS = ("m", "s", "g", "h", "L")
_IN_FORMULAS = r"(?<![A-Za-z\\])<names>\s*\\in\s*\\mathbb\s*\{?\s*[ZN]"
_POSITIVE_IN_FORMULAS = (
    r"(?<![A-Za-z\\])<names>\s*\\in\s*\\mathbb\s*\{?\s*"
    r"(?:[ZRQ]\s*\}?\s*(?:_\s*\{?\s*>\s*0|\^\s*\{?\+)|N\s*\}?\s*\^\s*\{?\s*[*+])"
)


@dataclass(frozen=True, slots=True)
class QuestionWords:
    """One language's expressions by their field of `Questions`, and what their blanks mean."""

    expressions: dict[str, tuple[re.Pattern[str], ...]]
    units: tuple[tuple[re.Pattern[str], str], ...]
    """Expressions of a whole unit's name, and the normalised unit."""
    powers: dict[str, int]
    places: dict[str, int]
    """Names of groups of <place> → digits behind the point."""
    numbers: dict[str, int]
    """Words of <number> → value."""

    def matches(self, field: str, text: str) -> Iterator[re.Match[str]]:
        """Yield the matches of a field's expressions, one expression after the other."""
        for expression in self.expressions[field]:
            yield from expression.finditer(text)

    def has(self, field: str, text: str) -> bool:
        """Return whether a text has a match of a field's expressions."""
        return any(expression.search(text) for expression in self.expressions[field])

    def unit(self, match: re.Match[str]) -> str | None:
        """Return the normalised unit that a match of <unit> names; None for one that cannot be converted."""
        over = self._simple_unit(match.group("before"), match.group("unit"), match.group("behind"))
        if over is None or match.group("under") is None:
            return over
        under = self._simple_unit(None, match.group("under"), None)
        return normalise_unit(f"{over}/{under}") if under is not None else None

    def _simple_unit(self, before: str | None, name: str, behind: str | None) -> str | None:
        unit = next((unit for expression, unit in self.units if expression.fullmatch(name)), None)
        if unit is None:
            unit = normalise_unit(name)
        power = self.powers.get((before or behind or "").lower())
        unit = f"{unit}^{power}" if power else unit
        return unit if unit and is_known(unit) else None


@cache
def question_words(code: str) -> QuestionWords:
    """Return the expressions of the language with an ISO 639-1 code, those of English where it has no file."""
    known = {lang.code: lang for lang in languages()}
    lang = known.get(code, known["en"])
    numbers, units, powers = _numbers(lang), _units(lang), _powers(lang)
    own = lang.questions
    places = {f"place{number}": int(at) for number, at in enumerate(own.places)}
    longest = sorted(zip(places, own.places, strict=True), key=lambda item: -max(map(len, own.places[item[1]])))
    place = "|".join(f"(?P<{group}>{'|'.join(own.places[at])})" for group, at in longest)
    end = r"(?!\w)" if lang.spaced else ""
    joiners = one_of(lambda each: each.answers.and_words) + r"|\\text\s*\{\s*and\s*\}"
    blanks = {
        "<number>": (r"(?<![\w.])" if lang.spaced else "") + rf"(?P<number>\d{{1,2}}|{_any(numbers)})",
        "<unit>": _unit_blank(lang, units, powers, _SIGNS),
        "<unit or letter>": _unit_blank(lang, units, powers, (*_SIGNS, *_LETTERS)),
        "<formula>": _FORMULA,
        "<names>": rf"(?<![A-Za-z\\])(?P<names>{_NAME}(?:\s*(?:,\s*(?:{joiners})?|、|{joiners})\s*{_NAME}){{0,7}})",
        "<step>": _STEP,
        "<place>": f"(?:{place}){end}",
    }
    further = {
        "unit": (
            r"____\s*[(（]?\s*<unit or letter>(?=\s*(?:[).）。,，;；?？]|$))",
            r"[(（]\s*<unit>\s*[)）]",
            r"[(（]\s*\w{1,3}\s+<unit or letter>\s*[)）]",
        ),
        "integers": (_IN_FORMULAS,),
        "positive": (_POSITIVE_IN_FORMULAS,),
    }
    expressions = {
        item.name: _compile((*getattr(own, item.name), *further.get(item.name, ())), blanks)
        for item in fields(Questions)
        if item.name != "places"
    }
    return QuestionWords(expressions, units, powers, places, numbers)


def _compile(expressions: Iterable[str], blanks: dict[str, str]) -> tuple[re.Pattern[str], ...]:
    """Return expressions with their blanks filled; those without blanks are joined into one."""
    plain: list[str] = []
    filled: list[str] = []
    for expression in expressions:
        text = expression
        for blank, content in blanks.items():
            text = text.replace(blank, content)
        (plain if text == expression else filled).append(text)
    joined = ["|".join(plain)] if plain else []
    return tuple(re.compile(text, re.IGNORECASE) for text in (*joined, *filled))


def _numbers(lang: Language) -> dict[str, int]:
    numbers = {word.lower(): value for value, word in enumerate(lang.numerals.units) if value}
    more = ((value, word) for value, words in lang.numerals.more.items() for word in words if value.isdigit())
    return numbers | {word.lower(): int(value) for value, word in more if int(value) < 13}


def _units(lang: Language) -> tuple[tuple[re.Pattern[str], str], ...]:
    named = [(re.escape(word), normalise_unit(word)) for words in lang.units.written.values() for word in words]
    for name, words in lang.units.beside_numbers.items():
        unit = normalise_unit(name)
        if is_known(unit):
            named += [(word, unit) for word in words]
    usable = [(word, unit) for word, unit in named if is_known(unit) and unit not in ("", "%") and len(word) > 1]
    singles = [(word, unit) for word, unit in named if len(word) == 1 and is_known(unit) and not lang.spaced]
    return tuple((re.compile(word, re.IGNORECASE), unit) for word, unit in (*usable, *singles) if unit)


def _powers(lang: Language) -> dict[str, int]:
    return {word.lower(): int(power) for power, words in lang.units.powers.items() for word in words}


def _unit_blank(
    lang: Language, units: tuple[tuple[re.Pattern[str], str], ...], powers: dict[str, int], signs: tuple[str, ...]
) -> str:
    """Return the expression of a unit with its power, and of another one that it is divided by."""
    sign = "|".join(sign.replace("^", r"\s*\^?\s*") for sign in sorted(signs, key=len, reverse=True))
    words = "|".join(sorted({expression.pattern for expression, _ in units}, key=len, reverse=True))
    power, per = _any(powers) or "(?!)", "|".join(lang.questions.per) or "(?!)"
    if not lang.spaced:
        name = rf"(?:(?-i:{sign})(?![A-Za-z/^])|{words})"
        return rf"(?P<before>{power})?(?P<unit>{name})(?P<behind>(?!))?(?:\s*(?:{per})\s*(?P<under>{words}))?"
    name = rf"(?:(?-i:{sign})(?![\w^])|(?:{words})(?!\w))"
    under = rf"(?:\s+(?:{per})\s+|\s*/\s*)(?P<under>(?:{words})(?!\w))"
    return (
        rf"(?:(?P<before>{power})\.?\s+)?(?P<unit>{name})(?:\s+(?P<behind>{power})(?!\w))?"
        rf"(?:{under}|(?!\s+(?:{per})\s|\s*/))"
    )


def _any(words: Iterable[str]) -> str:
    return "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))
