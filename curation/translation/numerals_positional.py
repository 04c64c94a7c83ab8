"""Numerals whose words stand for digits and powers of ten, without spaces: 三百零五, 二〇一九, 三分之二.

Invariants: pure functions; what a language writes is `Numerals` of its file, with ``order`` positional.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from curation.languages.vocabulary import language


@dataclass(frozen=True, slots=True)
class _Signs:
    """A language's signs and expressions, ready for use."""

    digits: dict[str, int]
    scales: dict[str, int]
    compounds: dict[str, str]
    numeral: re.Pattern[str]
    passed_over: re.Pattern[str]
    reduction: re.Pattern[str]
    twice: re.Pattern[str]
    dozen: re.Pattern[str]
    half: str
    fraction: str
    hundredth: str


@cache
def _signs(code: str) -> _Signs:
    """Return the signs of a language, compiled once a process."""
    numerals = language(code).numerals
    more = {sign: int(value) for value, signs in numerals.more.items() for sign in signs}
    rules = numerals.positional
    return _Signs(
        digits={sign: value for value, sign in enumerate(numerals.units)} | more,
        scales={sign: int(value) for value, signs in numerals.scales.items() for sign in signs},
        compounds=numerals.compounds,
        numeral=re.compile(rules["numeral"]),
        passed_over=re.compile(rules["passed_over"]),
        reduction=re.compile(rules["reduction"]),
        twice=re.compile(rules["twice"]),
        dozen=re.compile(rules["dozen"]),
        half=rules["half"],
        fraction=rules["fraction"],
        hundredth=rules["hundredth"],
    )


def positional(text: str, code: str) -> list[Fraction]:
    """Return every number written in words of a language with positional numerals; doublings and dozens at the end."""
    signs = _signs(code)
    text = signs.passed_over.sub(" ", text)
    for compound, single in signs.compounds.items():
        text = text.replace(compound, single)
    values = [
        Fraction(100 - 10 * signs.digits[match[1]] - (signs.digits[match[2]] if match[2] else 0))
        for match in signs.reduction.finditer(text)
    ]
    text = signs.reduction.sub(" ", text)
    values += [_value(match[0], signs) for match in signs.numeral.finditer(text)]
    values += [Fraction(2)] * len(signs.twice.findall(text))
    values += [Fraction(12)] * len(signs.dozen.findall(text))
    return values


def positional_runs(text: str, code: str) -> list[tuple[str, int, Fraction]]:
    """Return the numerals of a text, each with where it starts and its value; no doublings, no dozens."""
    signs = _signs(code)
    text = signs.passed_over.sub(lambda match: " " * len(match[0]), text)
    return [(match[0], match.start(), _value(match[0], signs)) for match in signs.numeral.finditer(text)]


def _value(numeral: str, signs: _Signs) -> Fraction:
    """Return the value of a numeral: a half, a fraction, a whole number; of 百分之四十, which is 40 %, 40."""
    if numeral == signs.half:
        return Fraction(1, 2)
    if signs.fraction in numeral:
        bottom, top = numeral.split(signs.fraction)
        if bottom == signs.hundredth:
            return Fraction(_whole(top, signs))
        low = _whole(bottom, signs)
        return Fraction(_whole(top, signs), low) if low else Fraction(0)
    return Fraction(_whole(numeral, signs))


def _whole(numeral: str, signs: _Signs) -> int:
    """Read ``三百零五`` as 305, and ``二〇一九``, digit by digit, as 2019."""
    if len(numeral) > 1 and not any(sign in signs.scales for sign in numeral):
        return int("".join(str(signs.digits[sign]) for sign in numeral))
    total = section = digit = 0
    for sign in numeral:
        if sign in signs.digits:
            digit = signs.digits[sign]
        elif signs.scales[sign] >= 10_000:
            total = (total + section + digit) * signs.scales[sign] if total + section + digit else signs.scales[sign]
            section = digit = 0
        else:
            section += (digit or 1) * signs.scales[sign]
            digit = 0
    return total + section + digit
