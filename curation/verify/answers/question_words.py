r"""The expressions that `question` looks for in a statement, compiled for one language.

The words are `curation.languages.vocabulary.questions`'s; here their blanks are filled.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from functools import cache

from curation.languages.vocabulary import Language, languages
from curation.languages.vocabulary.questions import Questions
from curation.verify.answers.units import is_known, normalise_unit

_NAME = r"[a-zA-Z](?:_\{?\w\}?)?(?![A-Za-zÀ-ɏЀ-ӿ\\'’])"
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
    unit_name: re.Pattern[str]
    """A unit by its name or sign; groups are keys of ``units``."""
    units: dict[str, str]
    """Normalised units by their group in ``unit_name``."""
    power: re.Pattern[str]
    powers: dict[str, int]
    per: re.Pattern[str]
    places: dict[str, int]
    """Names of groups of <place> → digits behind the point."""
    numbers: dict[str, int]
    """Words of <number> → value."""
    joiner: re.Pattern[str]
    """What stands between two <names>."""

    def matches(self, field: str, text: str) -> Iterator[re.Match[str]]:
        """Yield the matches of a field's expressions, one expression after the other."""
        for expression in self.expressions[field]:
            yield from expression.finditer(text)

    def has(self, field: str, text: str) -> bool:
        """Return whether a text has a match of a field's expressions."""
        return any(expression.search(text) for expression in self.expressions[field])

    def unit(self, match: re.Match[str]) -> str | None:
        """Return the normalised unit that a match of <unit> begins with; None where that is none that converts."""
        found = self._simple_unit(match["unit"])
        if found is None:
            return None
        unit, rest = found
        per = self.per.match(rest)
        if per is None:
            return unit
        under = self._simple_unit(rest[per.end() :])
        return normalise_unit(f"{unit}/{under[0]}") if under is not None else None

    def _simple_unit(self, text: str) -> tuple[str, str] | None:
        """Return the unit that a text begins with, with its power, and the rest of the text."""
        before = self.power.match(text)
        match = self.unit_name.match(text, before.end() if before else 0)
        if match is None:
            return None
        name = match.group().strip()
        unit = next((self.units[group] for group, word in match.groupdict().items() if word is not None), None)
        unit = unit if unit is not None else normalise_unit(name)
        behind = None if before else self.power.match(text, match.end())
        power = before or behind
        unit = f"{unit}^{self.powers[power['power'].lower()]}" if power and unit else unit
        end = behind.end() if behind else match.end()
        return (unit, text[end:]) if unit and is_known(unit) else None


@cache
def question_words(code: str) -> QuestionWords:
    """Return the expressions of the language with an ISO 639-1 code, those of English where it has no file."""
    known = {lang.code: lang for lang in languages()}
    lang = known.get(code, known["en"])
    numbers, powers = (
        _numbers(lang),
        {word.lower(): int(at) for at, words in lang.units.powers.items() for word in words},
    )
    unit_name, units = _units(lang)
    own = lang.questions
    places = {f"place{number}": int(at) for number, at in enumerate(own.places)}
    longest = sorted(zip(places, own.places, strict=True), key=lambda item: -max(map(len, own.places[item[1]])))
    place = "|".join(f"(?P<{group}>{'|'.join(own.places[at])})" for group, at in longest)
    end = r"(?!\w)" if lang.spaced else ""
    joiners = "|".join((*lang.answers.and_words, "and", r"\\text\s*\{\s*and\s*\}"))
    apart = r"\s+" if lang.spaced else r"\s*"
    separator = rf"(?:\s*[,、，]\s*(?:(?:{joiners})\s+)?|{apart}(?:{joiners}){apart})"
    blanks = {
        "<number>": (r"(?<![\w.])" if lang.spaced else "") + rf"(?P<number>\d{{1,2}}|{_any(numbers)})",
        "<unit>": r"(?=(?P<unit>(?![A-Za-z](?![\w/^]))\S[^,.;:?!()，。？（）]{0,40}))",
        "<unit or letter>": r"(?=(?P<unit>\S[^,.;:?!()，。？（）]{0,40}))",
        "<formula>": _FORMULA,
        "<names>": rf"(?<![A-Za-zÀ-ɏЀ-ӿ\\])(?P<names>(?>{_NAME}(?:{separator}{_NAME}){{0,7}}))",
        "<step>": _STEP,
        "<place>": f"(?:{place}){end}",
    }
    further = {
        "unit": (
            r"____\s*[(（]?\s*<unit>",
            r"____\s*[(（]?\s*<unit or letter>[^\s,.;，。；)）]{1,14}(?=\s*(?:[).）。,，;；?？]|$))",
            r"[(（]\s*<unit>[^()（）]{1,30}[)）]",
            r"[(（]\s*\w{1,3}\s+<unit or letter>[^\s()（）]{1,14}\s*[)）]",
        ),
        "integers": (_IN_FORMULAS,),
        "positive": (_POSITIVE_IN_FORMULAS,),
    }
    expressions = {
        item.name: _compile((*getattr(own, item.name), *further.get(item.name, ())), blanks)
        for item in fields(Questions)
        if item.name != "places"
    }
    space, end = (r"\s+", r"(?!\w)") if lang.spaced else (r"\s*", "")
    power = re.compile(rf"\s*(?P<power>{_any(powers) or '(?!)'})\.?{end}\s*", re.IGNORECASE)
    per = re.compile(rf"(?:{space}(?:{'|'.join(own.per) or '(?!)'}){space}|\s*/\s*)", re.IGNORECASE)
    return QuestionWords(
        expressions,
        unit_name,
        units,
        power,
        powers,
        per,
        places,
        numbers,
        re.compile(separator),
    )


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
    return numbers | {word.lower(): int(value) for value, word in more if 1 < int(value) < 13}


def _units(lang: Language) -> tuple[re.Pattern[str], dict[str, str]]:
    """Return the expression of a unit's name or sign, and the normalised units by the groups of it."""
    named: dict[str, set[str]] = {}
    for words in lang.units.written.values():
        for word in words:
            named.setdefault(normalise_unit(word), set()).add(re.escape(word))
    if lang.spaced:  # a lone character means too much: 分 is a minute, a cent and a point
        for name, words in lang.units.beside_numbers.items():
            named.setdefault(normalise_unit(name), set()).update(word for word in words if len(word) > 1)
    units = {f"unit{number}": unit for number, unit in enumerate(named) if unit not in ("", "%") and is_known(unit)}
    alternatives = [
        f"(?P<{group}>{'|'.join(sorted(named[unit], key=len, reverse=True))})" for group, unit in units.items()
    ]
    longest = sorted(alternatives, key=len, reverse=True)
    end = r"(?!\w)" if lang.spaced else ""
    signs = "|".join(sign.replace("^", r"\s*\^?\s*") for sign in sorted((*_SIGNS, *_LETTERS), key=len, reverse=True))
    return re.compile(rf"(?-i:{signs})(?![\w^/])|(?:{'|'.join(longest)}){end}", re.IGNORECASE), units


def _any(words: Iterable[str]) -> str:
    return "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))
