"""Decides which words are units, and which units convert.

A unit is normalised text: ``"cm^2"``, or a counted thing such as "stuffed goats" (`is_counted_thing`).
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

from curation.languages.vocabulary import languages

_TABLE = """
length 1 m
length 1/100 cm
length 1/1000 mm
length 1/10 dm
length 1000 km
length 0.0254 inch in
length 0.3048 ft
length 0.9144 yd
length 1609.344 mile mi
time 1 s
time 60 min
time 3600 h
time 86400 day
time 604800 week
mass 1 g
mass 1000 kg
mass 1/1000 mg
mass 1000000 tonne
mass 453.59237 lb
mass 28.349523125 oz
length^3 1/1000 L l
length^3 1/1000000 ml mL cc
length^2 10000 hectare ha
length 1/1000000 um
length 1/1000000000 nm
time 1/1000 ms
time 1/1000000 us
time 1/1000000000 ns
dollar 1 money usd
dollar 1/100 cent
euro 1 euro eur
yuan 1 yuan rmb
pound 1 pound
rupee 1 rupee rs
ruble 1 ruble
angle 1 rad
percent 1 % pct
degree 1 deg
length/time 5/18 kph kmh
length/time 0.44704 mph
mass*length^2/time^2 1000 J j
mass*length^2/time^2 1000000 kJ kj
mass*length^2/time^2 1/6241509074460763 eV
mass*length/time^2 1000 N n
mass*length/time^2 1000000 kN
mass*length^2/time^3 1000 W w
mass*length^2/time^3 1000000 kW kw
mass*length^2/time^3/current 1000 V v
mass*length^2/time^3/current^2 1000 Omega
mass/length/time^2 1000 Pa pa
mass/length/time^2 1000000 kPa kpa
current 1 A
current 1/1000 mA
current*time 1 C
mass/time^2/current 1000 T
mass*length^2/time^2/current 1000 Wb
time^-1 1 Hz hz
time^-1 1000 kHz khz
time^-1 1000000 MHz mhz
amount 1 mol
kelvin 1 K
mass*length^2/time^3/current 1 mV
mass*length^2/time^3/current 1000000 kV
mass*length^2/time^3 1 mW
mass*length^2/time^3 1000000000 MW
mass*length^2/time^2 3600000000 kWh kwh
mass*length^2/time^2 4184 cal
mass*length^2/time^3/current^2 1000000 kOmega
temperature 1 degc
fahrenheit 1 degf
"""
"""A unit per line: dimension, size in base units, name, and signs in any language."""

_VOCABULARIES = tuple(vocab.units for vocab in languages())
_UNITS: dict[str, tuple[str, Fraction]] = {
    name: (dimension, Fraction(factor))
    for dimension, factor, *names in (line.split() for line in _TABLE.split("\n") if line)
    for name in (*names, *(word for units in _VOCABULARIES for word in units.written.get(names[0], ())))
}
_MEANINGLESS = frozenset(word for units in _VOCABULARIES for word in units.empty)
_NUMERALS = tuple(vocab.numerals for vocab in languages())
_NO_THINGS = frozenset(
    word.lower()
    for vocab, numerals in zip(languages(), _NUMERALS, strict=True)
    for words in (
        *(vocab.answers.relating_words, numerals.units, numerals.tens),
        *(words for table in (numerals.scales, numerals.parts, numerals.more) for words in table.values()),
    )
    for word in words
)
_ORDINAL_ENDINGS = frozenset(("th", "st", "nd", "rd"))
MAX_WORDS_OF_A_THING = 4
_POWERS = {word: int(power) for units in _VOCABULARIES for power, words in units.powers.items() for word in words}
_POWER_PREFIXES = tuple(word for word in _POWERS if not word.isascii())
_PART = re.compile(r"\s*(?:([^\W\d_]+|%)(?:\s*\^?\{?\s*(-?\d)\s*\}?)?|([/*.·])|(\s|\{|\}|\(|\)))\s*")
_POWER = re.compile(r"(.+?)\^?\{?([23])\}?")
_WORD = re.compile(r"[^\s{}()\\.,;]+")


@lru_cache(maxsize=2048)
def normalise_unit(text: str) -> str:
    """Return known units by table name with ``^2``, others as lower-case words."""
    text = text.replace("~", " ")
    compound = _compound(text)
    if compound is not None:
        return compound
    words = [word for word in _WORD.findall(text.lstrip("^{ ").replace("\\", " ")) if word]
    words = words[1:] if len(words) > 1 and words[0] in _ORDINAL_ENDINGS else words
    power = 1
    unit_words = []
    for word in words:
        prefix = word if word.lower() in _POWERS else next(filter(word.startswith, _POWER_PREFIXES), "")
        power = _POWERS[prefix.lower()] if prefix else power
        if word != prefix:
            unit_words.append(word.removeprefix(prefix))
    if not unit_words:
        return " ".join(words)  # "squared" alone
    unit_text = "".join(unit_words) if any("^" in word or "/" in word for word in unit_words) else " ".join(unit_words)
    match = _POWER.fullmatch(unit_text)
    if match and is_unit(match.group(1)):
        unit_text, power = match.group(1), int(match.group(2))
    name = unit_text if unit_text in _UNITS else unit_text.lower()
    name = re.sub(r"\s*per\s*", "/", name) if "per " in name or " per" in name else name
    if name in _MEANINGLESS:
        return ""
    if name in _UNITS:
        dimension, factor = _UNITS[name]
        if dimension in ("percent", "degree"):
            return "%" if dimension == "percent" else "deg"
        name = next(known for known, row in _UNITS.items() if row == (dimension, factor))
    return f"{name}^{power}" if power > 1 and name else name


def _compound(text: str) -> str | None:
    """Return a product of powers of known units in one spelling: "kg*m/s^2"."""
    powers: dict[str, int] = {}
    sign, position, count = 1, 0, 0
    text = text.replace("\\cdot", "*").replace(" per ", "/")
    while position < len(text):
        match = _PART.match(text, position)
        if match is None:
            return None
        position = match.end()
        word, power, joint, _ = match.groups()
        if joint:
            sign = -1 if joint == "/" else sign
        if word:
            name = _table_name(word)
            if name is None or _UNITS[name][0] in ("percent", "degree"):
                return None
            powers[name] = powers.get(name, 0) + sign * int(power or 1)
            count += 1
    if count < 2:
        return None
    above = [name if power == 1 else f"{name}^{power}" for name, power in sorted(powers.items()) if power > 0]
    under = ["/" + (name if power == -1 else f"{name}^{-power}") for name, power in sorted(powers.items()) if power < 0]
    return ("*".join(above) or "1") + "".join(under)


def _table_name(word: str) -> str | None:
    key = word if word in _UNITS else word.lower() if len(word) > 1 else ""
    return next((known for known, row in _UNITS.items() if row == _UNITS[key]), None) if key in _UNITS else None


def is_unit(word: str) -> bool:
    """Return whether a word is a unit, a power (square), or meaningless."""
    return word in _UNITS or word.lower() in _UNITS or word.lower() in _MEANINGLESS or word.lower() in _POWERS


def is_known(unit: str) -> bool:
    """Return whether all of a unit's factors are in the table."""
    return unit in ("", "deg", "ratio") or _dimensions_and_size(unit) is not None


def is_counted_thing(unit: str) -> bool:
    """Return whether a unit may name counted things: no word relates, negates or multiplies."""
    words = unit.split()
    return 0 < len(words) <= MAX_WORDS_OF_A_THING and all(
        len(word) > 2 and word.isalpha() and word not in _NO_THINGS and not is_unit(word) for word in words
    )


def conversion_factor(source: str, target: str) -> Fraction | None:
    """Return how many ``target`` units one ``source`` unit is."""
    if source == target:
        return Fraction(1)
    left, right = _dimensions_and_size(source), _dimensions_and_size(target)
    if left is None or right is None or left[0] != right[0]:
        return None
    return left[1] / right[1]


def is_power_of(unit: str, base: str) -> bool:
    """Return whether two units are different powers of one dimension: cm² and m."""
    left, right = _dimensions_and_size(unit), _dimensions_and_size(base)
    if left is None or right is None or len(left[0]) != 1 or len(right[0]) != 1:
        return False
    return left[0].keys() == right[0].keys() and left[0] != right[0]


@lru_cache(maxsize=2048)
def _dimensions_and_size(unit: str) -> tuple[dict[str, int], Fraction] | None:
    dimensions: dict[str, int] = {}
    size = Fraction(1)
    for name, power in _factors(unit):
        if name not in _UNITS:
            return None
        dimension, factor = _UNITS[name]
        size *= factor**power
        for base, exponent in _factors(dimension):
            dimensions[base] = dimensions.get(base, 0) + power * exponent
    return {base: power for base, power in dimensions.items() if power}, size


def _factors(product: str) -> list[tuple[str, int]]:
    factors = []
    for joint, factor in re.findall(r"(^|[*/])([^*/]+)", product):
        name, _, power = factor.partition("^")
        if name != "1":
            exponent = int(power) if power.lstrip("-").isdigit() else 1
            factors.append((name, -exponent if joint == "/" else exponent))
    return factors
