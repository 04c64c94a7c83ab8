"""Units: which words are units, and which of them are the same or convert.

A unit is kept as normalised text, ``"cm^2"``. `convert` gives the factor between two units where both are known and
of one dimension. Count nouns ("apples", "ways") are units that say nothing: `is_known` is False for them.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

_TABLE = """
length 1 m meter meters metre metres метр метров 米
length 1/100 cm centimeter centimeters centimetre centimetres см 厘米
length 1/1000 mm millimeter millimeters millimetre millimetres мм 毫米
length 1/10 dm decimeter decimeters decimetre decimetres 分米
length 1000 km kilometer kilometers kilometre kilometres км 千米 公里
length 0.0254 inch inches
length 0.3048 ft foot feet
length 0.9144 yd yard yards
length 1609.344 mile miles mi
time 1 s sec secs second seconds 秒
time 60 min mins minute minutes 分钟
time 3600 h hr hrs hour hours 小时
time 86400 day days 天
time 604800 week weeks
mass 1 g gram grams grammes 克
mass 1000 kg kilogram kilograms kgs кг 千克 公斤
mass 1/1000 mg milligram milligrams
mass 1000000 tonne tonnes 吨
mass 453.59237 lb lbs
mass 28.349523125 oz ounce ounces
volume 1 l L liter liters litre litres 升
volume 1/1000 ml mL milliliter milliliters millilitre millilitres 毫升
dollar 1 money dollar dollars usd 美元
dollar 1/100 cent cents 美分
euro 1 euro euros eur
yuan 1 yuan rmb 元
pound 1 pound pounds
rupee 1 rupee rupees rs
ruble 1 ruble rubles рублей руб
angle 1 rad radian radians
percent 1 % percent pct percentage percents процентов prozent
degree 1 deg degree degrees 度
speed 1 m/s mps
speed 5/18 km/h kph kmh km/hr
speed 0.44704 mph
energy 1 j joule joules
energy 1000 kj
force 1 n newton newtons
power 1 w watt watts
power 1000 kw
voltage 1 v volt volts
frequency 1 hz hertz
temperature 1 degc celsius
fahrenheit 1 degf fahrenheit
"""
_UNITS: dict[str, tuple[str, Fraction]] = {
    name: (dimension, Fraction(factor))
    for dimension, factor, *names in (line.split() for line in _TABLE.split("\n") if line)
    for name in names
}
_SAYS_NOTHING = frozenset("unit units times time th st nd rd ways way".split())
_POWERS = {"square": 2, "sq": 2, "squared": 2, "cubic": 3, "cu": 3, "cubed": 3, "平方": 2, "立方": 3}
_POWER = re.compile(r"(.+?)\^?\{?([23])\}?")
_WORD = re.compile(r"[^\s{}()\\.,;]+")


@lru_cache(maxsize=2048)
def normalise_unit(text: str) -> str:
    """One spelling: known units by their name in the table with ``^2``, others as their lower-case words."""
    words = [word for word in _WORD.findall(text.replace("\\", " ")) if word]
    power = 1
    kept = []
    for word in words:
        if word.lower() in _POWERS:
            power = _POWERS[word.lower()]
        else:
            kept.append(word)
    if kept and kept[0].lower() in ("of", "per"):
        kept = kept if kept[0] == "per" else kept[1:]
    joined = "".join(kept) if any("^" in word or "/" in word for word in kept) else " ".join(kept)
    match = _POWER.fullmatch(joined)
    if match and is_unit(match.group(1)):
        joined, power = match.group(1), int(match.group(2))
    name = joined if joined in _UNITS else joined.lower()
    name = re.sub(r"\s*per\s*", "/", name) if "per " in name or " per" in name else name
    if name in _SAYS_NOTHING:
        return ""
    if name in _UNITS:
        dimension, factor = _UNITS[name]
        if dimension in ("percent", "degree"):
            return "%" if dimension == "percent" else "deg"
        name = next(other for other, known in _UNITS.items() if known == (dimension, factor))
    return f"{name}^{power}" if power > 1 and name else name


def is_unit(word: str) -> bool:
    """Whether a word is a unit of the table (or one that says nothing)."""
    return word in _UNITS or word.lower() in _UNITS or word.lower() in _SAYS_NOTHING or word.lower() in _POWERS


def is_known(unit: str) -> bool:
    """Whether a normalised unit is of the table."""
    return unit == "" or unit == "deg" or unit.partition("^")[0] in _UNITS


def convert(one: str, other: str) -> Fraction | None:
    """How many ``other`` one ``one`` is, where that is known."""
    if one == other:
        return Fraction(1)
    (name, _, power), (other_name, _, other_power) = one.partition("^"), other.partition("^")
    if power != other_power or name not in _UNITS or other_name not in _UNITS:
        return None
    (dimension, factor), (other_dimension, other_factor) = _UNITS[name], _UNITS[other_name]
    if dimension != other_dimension:
        return None
    return (factor / other_factor) ** int(power or 1)
