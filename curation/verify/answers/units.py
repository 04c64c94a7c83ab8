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
length^3 1/1000 L l liter liters litre litres 升
length^3 1/1000000 ml mL cc milliliter milliliters millilitre millilitres 毫升
length^2 10000 hectare hectares ha
length 1/1000000 um micrometer micrometers micrometre micrometres micron microns
length 1/1000000000 nm nanometer nanometers
time 1/1000 ms millisecond milliseconds
time 1/1000000 us microsecond microseconds
time 1/1000000000 ns nanosecond nanoseconds
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
length/time 5/18 kph kmh
length/time 0.44704 mph
mass*length^2/time^2 1000 J j joule joules 焦耳 焦
mass*length^2/time^2 1000000 kJ kj kilojoule kilojoules
mass*length^2/time^2 1/6241509074460763 eV
mass*length/time^2 1000 N n newton newtons 牛顿 牛
mass*length/time^2 1000000 kN
mass*length^2/time^3 1000 W w watt watts 瓦
mass*length^2/time^3 1000000 kW kw kilowatt kilowatts
mass*length^2/time^3/current 1000 V v volt volts 伏
mass*length^2/time^3/current^2 1000 Omega ohm ohms 欧姆 欧
mass/length/time^2 1000 Pa pa pascal pascals
mass/length/time^2 1000000 kPa kpa kilopascal kilopascals
current 1 A amp amps ampere amperes 安培
current 1/1000 mA
current*time 1 C coulomb coulombs 库仑
mass/time^2/current 1000 T tesla teslas
mass*length^2/time^2/current 1000 Wb weber webers
time^-1 1 Hz hz hertz 赫兹
time^-1 1000 kHz khz kilohertz
time^-1 1000000 MHz mhz megahertz
amount 1 mol mole moles
kelvin 1 K kelvin kelvins
length 0.01 centimètre centimètres centímetro centímetros centimetro centimetri zentimeter сантиметр сантиметров
length 1 mètre mètres metro metros metri метра
length 1000 kilomètre kilomètres kilómetro kilómetros chilometri километр километров
time 3600 heure heures hora horas ore stunde stunden час часа часов
time 60 minuten minuto minutos minuti минут минуты
time 1 seconde secondes segundo segundos secondi sekunden секунд секунды
time 86400 jour jours día días giorni tage дней дня
mass*length^2/time^3/current 1 mV millivolt millivolts
mass*length^2/time^3/current 1000000 kV kilovolt kilovolts
mass*length^2/time^3 1 mW milliwatt milliwatts
mass*length^2/time^3 1000000000 MW megawatt megawatts
mass*length^2/time^2 3600000000 kWh kwh
mass*length^2/time^2 4184 cal calorie calories
mass*length^2/time^3/current^2 1000000 kOmega
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
_PART = re.compile(r"\s*(?:([^\W\d_]+|%)(?:\s*\^?\{?\s*(-?\d)\s*\}?)?|([/*.·])|(\s|\{|\}|\(|\)))\s*")
_POWER = re.compile(r"(.+?)\^?\{?([23])\}?")
_WORD = re.compile(r"[^\s{}()\\.,;]+")


@lru_cache(maxsize=2048)
def normalise_unit(text: str) -> str:
    """One spelling: known units by their name in the table with ``^2``, others as their lower-case words."""
    compound = _compound(text)
    if compound is not None:
        return compound
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


def _compound(text: str) -> str | None:
    """One spelling of a product of powers of known units, "kg*m/s^2"; None for a single unit and anything else."""
    powers: dict[str, int] = {}
    sign, position, parts = 1, 0, 0
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
            name = _named(word)
            if name is None or _UNITS[name][0] in ("percent", "degree"):
                return None
            powers[name] = powers.get(name, 0) + sign * int(power or 1)
            parts += 1
    if parts < 2:
        return None
    above = [name if power == 1 else f"{name}^{power}" for name, power in sorted(powers.items()) if power > 0]
    under = ["/" + (name if power == -1 else f"{name}^{-power}") for name, power in sorted(powers.items()) if power < 0]
    return ("*".join(above) or "1") + "".join(under)


def _named(word: str) -> str | None:
    """The table's first name for a unit."""
    known = word if word in _UNITS else word.lower() if len(word) > 1 else ""
    return next((other for other, row in _UNITS.items() if row == _UNITS[known]), None) if known in _UNITS else None


def is_unit(word: str) -> bool:
    """Whether a word is a unit of the table (or one that says nothing)."""
    return word in _UNITS or word.lower() in _UNITS or word.lower() in _SAYS_NOTHING or word.lower() in _POWERS


def is_known(unit: str) -> bool:
    """Whether a normalised unit is of the table, or a product of such."""
    return unit == "" or unit == "deg" or _measured(unit) is not None


def convert(one: str, other: str) -> Fraction | None:
    """How many ``other`` one ``one`` is, where that is known."""
    if one == other:
        return Fraction(1)
    left, right = _measured(one), _measured(other)
    if left is None or right is None or left[0] != right[0]:
        return None
    return left[1] / right[1]


@lru_cache(maxsize=2048)
def _measured(unit: str) -> tuple[dict[str, int], Fraction] | None:
    """The dimensions of a normalised unit and its size in base units."""
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
    """ "kg*m/s^2" as its names and powers."""
    found = []
    for joint, part in re.findall(r"(^|[*/])([^*/]+)", product):
        name, _, power = part.partition("^")
        if name != "1":
            exponent = int(power) if power.lstrip("-").isdigit() else 1
            found.append((name, -exponent if joint == "/" else exponent))
    return found
