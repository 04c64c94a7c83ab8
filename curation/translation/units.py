"""Units and currencies, as the seven languages name them beside a number."""

from __future__ import annotations

import re

_NAMES: dict[str, tuple[str, str]] = {
    "dollar": ("money", r"\$|US\$|USD|dollars?|bucks?|d[óo]lar(?:es)?|dollari|dollaro|доллар\w*|美元|美金|元|块"),
    "euro": ("money", r"€|euros?|eur|евро|欧元"),
    "pound": ("money", r"£|pounds? sterling|livres? sterling|libras? esterlinas?|sterline|英镑"),
    "cent": ("cents", r"¢|cents?|centimes?|centavos?|centesim[oi]|centésimos?|cts?|цент\w*|"
        r"美分|分|penn(?:y|ies)|pence"),
    "percent": ("share", r"%|per ?cent|percentage|pour ?cent|por ciento|per cento|prozent\w*|процент\w*|百分之?|折"),
    "km": ("length", r"km|kilomet(?:er|re)s?|kilom[èe]tres?|kil[óo]metros?|chilometr[io]|kilometern?|км|"
        r"километр\w*|千米|公里"),
    "mile": ("length", r"miles?|mi|milles?|millas?|miglia|miglio|meilen?|мил(?:я|и|ь|ю|ей|ях|ям)|英里"),
    "foot": ("length", r"feet|foot|ft|pieds?|pies?|piedi|piede|fu(?:ß|ss)|фут\w*|英尺"),
    "inch": ("length", r"inch(?:es)?|pouces?|pulgadas?|pollic[ei]|zoll|дюйм\w*|英寸"),
    "yard": ("length", r"yards?|yd|yardas?|iarde?|ярд\w*|码"),
    "cm": ("length", r"cm|centimet(?:er|re)s?|centim[èe]tres?|cent[íi]metros?|centimetr[io]|zentimetern?|см|"
        r"сантиметр\w*|厘米|公分"),
    "m": ("length", r"m|met(?:er|re)s?|m[èe]tres?|metros?|metr[io]|metern?|м|метр\w*|米"),
    "kg": ("mass", r"kg|kilograms?|kilos?|kilogrammes?|kilogramos?|chil(?:o|i|ogramm[oi])|kilogramm|кг|"
        r"килограмм\w*|千克|公斤"),
    "gram": ("mass", r"g|grams?|grammes?|gramos?|gramm[oi]?|гр?|грамм\w*|克"),
    "lb": ("mass", r"pounds?|lbs?|livres?|libras?|libbre|libbra|pfund|фунт\w*|磅"),
    "ounce": ("mass", r"ounces?|oz|onces?|onzas?|once|oncia|unzen?|унци\w*|盎司"),
    "liter": ("volume", r"lit(?:er|re)s?|l|litros?|litr[io]|litern?|литр\w*|л|升"),
    "gallon": ("volume", r"gallons?|gal|galones|gal[óo]n|gallon[ie]|gallonen?|галлон\w*|加仑"),
    "second": ("time", r"seconds?|sec|secs|secondes?|segundos?|second[io]|sekunden?|секунд\w*|秒"),
    "minute": ("time", r"minutes?|min|mins|minutos?|minut[io]|minuten?|минут\w*|мин|分钟?"),
    "hour": ("time", r"hours?|hrs?|h|heures?|horas?|or[ae]|stunden?|час\w*|ч|小时"),
    "day": ("time", r"days?|jours?|journées?|d[íi]as?|giorn[oi]|tag(?:e|en|es)?|дн(?:я|ей|и|ю|ем|ям|ях|"
        r"евн\w*)|день|сут\w+|天|日"),
    "week": ("time", r"weeks?|semaines?|semanas?|settiman[ae]|wochen?|недел\w*|周|星期|礼拜"),
    "month": ("time", r"months?|mois|mes(?:es)?|mes[ei]|monat(?:e|en|s)?|месяц\w*|月"),
    "year": ("time", r"years?|yrs?|ans?|années?|años?|ann[io]|jahr(?:e|en|es)?|лет\w*|год\w*|年|岁"),
}  # fmt: skip
DIMENSIONS = {name: dimension for name, (dimension, _) in _NAMES.items()}
"""Unit → what it measures."""

_COMPARED = frozenset(
    "dollar euro pound percent km mile foot inch yard cm kg gram lb gallon liter".split()
)  # fmt: skip
"""Units that a translation must name again; hours and days are too often said otherwise (a day: daily, 24 h)."""
_BEFORE = re.compile(r"(?P<dollar>\$|US\$)\s?\d|(?P<euro>€)\s?\d|(?P<pound>£)\s?\d")
_BEHIND = {
    name: re.compile(rf"\d\s?(?:-\s?)?(?:{pattern})(?![^\W\d_])" if name in ("m", "gram", "liter", "foot")
                     else rf"(?:\d\s?-?\s?(?:{pattern}))(?![a-zа-яà-ÿ])", re.IGNORECASE)
    for name, (_, pattern) in _NAMES.items()
}  # fmt: skip
_ANYWHERE = {
    name: re.compile(rf"(?<![^\W\d_])(?:{pattern})(?![a-zа-яà-ÿ])|(?<=[\u3400-\u9fff\d\s])(?:{pattern})", re.IGNORECASE)
    for name, (_, pattern) in _NAMES.items()
}


def units_with_numbers(text: str) -> set[str]:
    """The compared units that stand directly with a number, or an amount of money.

    Example: ``units_with_numbers("a 5 km walk costs $3") == {"km", "dollar"}``
    """
    found = {name for match in _BEFORE.finditer(text) for name, value in match.groupdict().items() if value}
    return found | {name for name in _COMPARED if _BEHIND[name].search(text)}


def is_named(unit: str, text: str) -> bool:
    """Whether a unit is named anywhere in a text, in any of the languages."""
    return _ANYWHERE[unit].search(text) is not None
