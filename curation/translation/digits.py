"""Compare numbers in digits of two texts; ``2.000`` is 2 or 2000."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from curation.languages.stripping import formula_segments

_FRACTION_SIGNS = {"½": "1/2", "⅓": "1/3", "⅔": "2/3", "¼": "1/4", "¾": "3/4", "⅕": "1/5", "⅛": "1/8", "⅜": "3/8"}
_SIGNS = str.maketrans("０１２３４５６７８９⁄∕", "0123456789//")
_LATEX_COMMA = re.compile(r"(?<=\d)(?:\{,\}|\\[,;!:]|\{\\,\}|~|\\\s)(?=\d)")
_SPACES = "\u00a0\u202f\u2009"
_NUMBER = re.compile(
    rf"(?P<over>\d+\s?/\s?\d+)(?![\d/])"
    rf"|(?P<grouped>[1-9]\d{{0,2}}(?:(?P<by>[.,'’{_SPACES} ])\d{{3}})(?:(?P=by)\d{{3}})*(?:[.,]\d+)?)(?!\d)"
    rf"|(?P<decimal>(?<!\d\.)\d+\.\d+(?!\.?\d)|(?<!\d,)\d+,\d+(?!,?\d)|(?<![\w.,)}}\]])\.\d+(?!\.?\d))"
    rf"|\d+"
)
_SCALES = {"thousand": 10**3, "k": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_SCALES |= {"万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8, "千": 10**3, "百": 10**2}
_SCALE = re.compile(rf"[\s-]?({'|'.join(_SCALES)})(?![A-Za-z])", re.IGNORECASE)
_HALF_DAY = re.compile(r"(?:[:.]\d\d)?\s?(a|p)\.?m\b", re.IGNORECASE)
_NOON = 12
_GROUPED = re.compile(r"(?<![\d.,])[1-9]\d{0,2}([.,])\d{3}(?![\d]|[.,]\d)")
_SHOWN = 6
_IN_WORDS = 12
"""Whole numbers up to it may become words, which a reader compares."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number in digits and its possible values."""

    text: str
    values: frozenset[Fraction]


def numbers_of(text: str) -> list[Number]:
    """Return a text's numbers in digits, in order, also in words (``x2``)."""
    for sign, written in _FRACTION_SIGNS.items():
        text = text.replace(sign, f" {written}")
    text = _LATEX_COMMA.sub(lambda match: "," if match[0] == "{,}" else "\u00a0", text.translate(_SIGNS))
    return [Number(match[0], _values(match, text)) for match in _NUMBER.finditer(text)]


def _values(match: re.Match[str], text: str) -> frozenset[Fraction]:
    if match["over"]:
        top, bottom = map(int, match["over"].split("/"))
        return frozenset({Fraction(top, bottom or 1)})
    values = _readings(match[0], match["by"])
    if scale := _SCALE.match(text, match.end()):
        values |= {value * _SCALES[scale[1].lower()] for value in values}
    if half := _HALF_DAY.match(text, match.end()):
        is_morning = half[1].lower() == "a"
        values |= {value % _NOON + (0 if is_morning else _NOON) for value in values}
    return values


def _readings(digits: str, by: str | None) -> frozenset[Fraction]:
    """Return possible values of digits: ``1,234.5`` has one, ``1,234`` two."""
    bare = re.sub(rf"['’{_SPACES} ]", "", digits)
    marks = re.findall(r"[.,]", bare)
    last = max(bare.rfind("."), bare.rfind(","))
    grouped = Fraction(int(re.sub("[.,]", "", bare)))
    decimal = Fraction(f"0{re.sub('[.,]', '', bare[:last])}.{bare[last + 1 :]}") if marks else grouped
    if len(set(marks)) == 2:
        return frozenset({decimal})
    if len(marks) > 1 or not marks:
        return frozenset({grouped})
    return frozenset({grouped, decimal}) if by is not None else frozenset({decimal})


def unmatched(before: Sequence[Number], after: Sequence[Number]) -> tuple[list[Number], list[Number]]:
    """Return each text's numbers without a partner in the other."""
    free, missing = list(after), []
    for number in sorted(before, key=lambda number: len(number.values)):
        matches = [candidate for candidate in free if candidate.values & number.values]
        if matches:
            free.remove(next((candidate for candidate in matches if candidate.values == number.values), matches[0]))
        else:
            missing.append(number)
    return missing, free


def changed_numbers(original: str, translated: str) -> str | None:
    """Return what is wrong with a translation's numbers; small ones may become words and back."""
    missing, new = unmatched(numbers_of(original), numbers_of(translated))
    lost = [number for number in missing if new or not _may_be_a_word(number)]
    if not lost:
        return None
    replacement = f"; new there: {_listed(new)}" if new else ""
    return f"missing from the translation: {_listed(lost)}{replacement}"


def _may_be_a_word(number: Number) -> bool:
    return any(value < 1 or (value.denominator == 1 and value <= _IN_WORDS) for value in number.values)


def _listed(numbers: Sequence[Number]) -> str:
    return ", ".join(number.text for number in numbers[:_SHOWN])


def misread_thousands(text: str, original: str, *, decimal_comma: bool) -> str | None:
    """Return a number whose thousands look like decimals, as 1,000 in German, unless a decimal in ``original``."""
    decimals = {Fraction(n.text) for n in numbers_of(original) if re.fullmatch(r"\d*\.\d+", n.text)}
    prose = "".join(segment for segment, is_formula in formula_segments(text) if not is_formula)
    for match in _GROUPED.finditer(prose):
        is_decimal = Fraction(match[0].replace(",", ".")) in decimals
        if match[1] == (",", ".")[not decimal_comma] and not is_decimal:
            return match[0]
    return None
