"""Translations that ask something else, though every number, formula and language is right.

The classes of the project's issue on translation equivalence. Word lists here are the benchmark's own, by hand, and are
not read from the languages' files: what the checks look for must not decide what is planted.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping

from curation.languages.stripping import parts
from tests.gates.corruptions import SENTENCE_BORDER

_GROUPED = re.compile(r"(?<![\d.,])(\d{1,3})[.,\u00a0\u202f\u2009 ](\d{3})(?![\d.,]\d|\d)")

UNITS: dict[str, tuple[tuple[str, str], ...]] = {
    "de": (
        ("Stunden", "Minuten"), ("Minuten", "Stunden"), ("Stunde", "Minute"), ("Sekunden", "Minuten"),
        ("Tage", "Wochen"),
        ("Tagen", "Wochen"), ("Wochen", "Monate"), ("Monate", "Wochen"), ("Monaten", "Wochen"), ("Jahre", "Monate"),
        ("Jahren", "Monaten"), ("Meilen", "Kilometer"), ("Kilometer", "Meilen"), ("Meter", "Zentimeter"),
        ("Metern", "Zentimetern"),
        ("Zentimeter", "Meter"), ("Fuß", "Zoll"), ("Zoll", "Fuß"), ("Pfund", "Unzen"), ("Unzen", "Pfund"),
        ("Kilogramm", "Gramm"),
        ("Gramm", "Kilogramm"), ("Liter", "Gallonen"), ("Gallonen", "Liter"), ("US-Dollar", "Euro"),
        ("Dollar", "Euro"), ("$", "€"),
    ),
    "fr": (
        ("heures", "minutes"), ("heure", "minute"), ("minutes", "heures"), ("secondes", "minutes"),
        ("jours", "semaines"),
        ("semaines", "mois"), ("mois", "semaines"), ("ans", "mois"), ("années", "mois"), ("miles", "kilomètres"),
        ("kilomètres", "miles"),
        ("km", "miles"), ("mètres", "centimètres"), ("centimètres", "mètres"), ("cm", "m"), ("pieds", "pouces"),
        ("pouces", "pieds"),
        ("livres", "onces"), ("kg", "g"), ("kilos", "grammes"), ("grammes", "kilogrammes"), ("litres", "gallons"),
        ("gallons", "litres"),
        ("dollars", "euros"), ("$", "€"),
    ),
    "es": (
        ("horas", "minutos"), ("hora", "minuto"), ("minutos", "horas"), ("segundos", "minutos"), ("días", "semanas"),
        ("semanas", "meses"), ("meses", "semanas"), ("años", "meses"), ("millas", "kilómetros"),
        ("kilómetros", "millas"),
        ("metros", "centímetros"), ("centímetros", "metros"), ("pies", "pulgadas"), ("pulgadas", "pies"),
        ("libras", "onzas"),
        ("onzas", "libras"), ("kilogramos", "gramos"), ("gramos", "kilogramos"), ("litros", "galones"),
        ("galones", "litros"),
        ("dólares", "euros"), ("$", "€"),
    ),
    "it": (
        ("ore", "minuti"), ("minuti", "ore"), ("secondi", "minuti"), ("giorni", "settimane"), ("settimane", "mesi"),
        ("mesi", "settimane"),
        ("anni", "mesi"), ("miglia", "chilometri"), ("chilometri", "miglia"), ("metri", "centimetri"),
        ("centimetri", "metri"),
        ("piedi", "pollici"), ("pollici", "piedi"), ("libbre", "once"), ("chilogrammi", "grammi"),
        ("grammi", "chilogrammi"),
        ("litri", "galloni"), ("galloni", "litri"), ("dollari", "euro"), ("$", "€"),
    ),
    "ru": (
        ("часов", "минут"), ("часа", "минуты"), ("час", "минуту"), ("минут", "часов"), ("минуты", "часа"),
        ("секунд", "минут"), ("дней", "недель"),
        ("дня", "недели"), ("недель", "месяцев"), ("недели", "месяца"), ("месяцев", "недель"), ("месяца", "недели"),
        ("лет", "месяцев"),
        ("миль", "километров"), ("мили", "километра"), ("километров", "миль"), ("км", "миль"),
        ("метров", "сантиметров"), ("метра", "сантиметра"),
        ("см", "м"), ("сантиметров", "метров"), ("футов", "дюймов"), ("дюймов", "футов"), ("фунтов", "унций"),
        ("унций", "фунтов"), ("кг", "г"),
        ("килограммов", "граммов"), ("граммов", "килограммов"), ("литров", "галлонов"), ("галлонов", "литров"),
        ("долларов", "евро"), ("$", "€"),
    ),
    "zh": (
        ("小时", "分钟"), ("分钟", "小时"), ("秒", "分钟"), ("天", "周"), ("周", "个月"), ("个月", "周"),
        ("年", "个月"), ("岁", "个月"),
        ("英里", "公里"),
        ("公里", "英里"), ("千米", "英里"), ("厘米", "英寸"), ("米", "厘米"), ("英尺", "英寸"), ("英寸", "英尺"),
        ("磅", "盎司"), ("盎司", "磅"),
        ("公斤", "克"), ("千克", "克"), ("克", "千克"), ("升", "加仑"), ("加仑", "升"), ("美元", "欧元"),
        ("元", "欧元"),
    ),
}  # fmt: skip
"""By language: a unit as it stands behind a number, and the other one that is put there."""

NEGATIONS: dict[str, tuple[tuple[str, str], ...]] = {
    "de": ((r" nicht\b(?! nur|-)", ""), (r"\bkein(en|em|er|e|es)?\b", r"ein\1"), (r"\bohne\b", "mit"),
    (r"\bniemals\b|\bnie\b", "immer")),
    "fr": ((r"\b[Nn](?:e |['’])(\w+(?: \w+)?) (?:pas|jamais)\b", r"\1"), (r"\bsans\b", "avec"), (r"\baucune?\b", "un")),
    "es": ((r"\b(?:no|No) (?=\w+)(?!solo|sólo|más|menos)(?![^.,]*\bning)", ""),
    (r"(?<!\\)\bsin\b(?! [\w\\]?\s?\$| embargo| duda)", "con"), (r"\bnunca\b", "siempre")),
    "it": ((r"\b[Nn]on (?!solo|appena)", ""), (r"\bsenza\b", "con"), (r"\bmai\b", "sempre")),
    "ru": ((r"(?<![А-Яа-яё])(?<!никогда )(?<!никто )(?<!ничего )не (?!только|менее|более)(?![^.,]*\bни)", ""),
    (r"(?<![а-яё])без (?=[а-яё])", "с "),
    (r"(?<![а-яё])никогда(?![^.,;]{0,40}(?<![а-яё])не )", "всегда")),
    "zh": ((r"没有(?!人)", "有"), (r"(?<![是会能])不(?=[是会能想要需含包喜等为可再])(?!等式|能否|会不会|是不是)", ""),
    (r"没(?=[吃买卖去来卖完])", "")),
}  # fmt: skip
"""By language: a negation, and what is left when it is lost; those that deny nothing (non appena, пока … не, 能不能)
stay, and so does никогда before its не, which still denies."""

_DENIES_NOTHING = re.compile(r"(?<![а-яё])пока(?![а-яё])[^.,;!?]*$")
"""What stands before such a negation."""

COMPARISONS: dict[str, tuple[tuple[str, str], ...]] = {
    "de": (
        ("mehr", "weniger"), ("älter", "jünger"), ("länger", "kürzer"), ("größer", "kleiner"),
        ("höher", "niedriger"), ("schneller", "langsamer"),
        ("schwerer", "leichter"), ("mindestens", "höchstens"), ("teurer", "billiger"), ("größere", "kleinere"),
    ),
    "fr": (("plus", "moins"), ("supérieur", "inférieur"), ("supérieure", "inférieure"), ("au moins", "au plus")),
    "es": (("más", "menos"), ("mayor", "menor"), ("mayores", "menores"), ("al menos", "a lo sumo"),
    ("como mínimo", "como máximo")),
    "it": (("più", "meno"), ("maggiore", "minore"), ("maggiori", "minori"), ("almeno", "al massimo")),
    "ru": (
        ("больше", "меньше"), ("более", "менее"), ("старше", "младше"), ("длиннее", "короче"), ("выше", "ниже"),
        ("быстрее", "медленнее"),
        ("тяжелее", "легче"), ("дороже", "дешевле"),
    ),
    "zh": (
        ("多于", "少于"), ("大于", "小于"), ("高于", "低于"), ("至少", "至多"), ("多", "少"), ("更多", "更少"),
        ("大", "小"), ("更大", "更小"),
        ("以上", "以下"),
    ),
}  # fmt: skip
"""By language: two opposites, exchanged in either direction."""

_ZH_BETWEEN = re.compile(
    r"比(?!赛|萨|例|分|率)[^，。？！]{1,20}?(多(?!少|数)|(?<!多)少(?!年|女)|大(?!小|约|儿|家|概|学|型)|小(?!时|吃|儿|组|型|学|说|狗|猫|镇))"
    r"|(多于|少于|大于|小于|高于|低于|至少|至多|更多|更少|更大|更小)"
)
_NAME = re.compile(r"(?<![\w.-])[A-Z][a-zé]{2,}(?:[A-Z][a-z]+)?(?![\w-])")
_NO_NAMES = frozenset(
    "How The What When Each Every There They She His Her And But After Monday Tuesday Wednesday Thursday Friday "
    "Saturday "
    "Sunday January February March April June July August September October November December Let Find Suppose "
    "Given If "
    "For All Two Three One Determine Christmas American French English German Dollar Wenn Wie Der Die Das Les "
    "Une Los Las "
    "Para Por Con Per Quanti Non Sie Ein Eine Auf Nach Jede Jeder Sei Prove Show This That Some Both Dollars "
    "Paris Halloween".split()
)
_RU_HOLIDAYS = re.compile("Рождеств|Хэллоуин|Пасх|День$|Дн[яюе]|Свят")
_ZH_NAMES = (
    "约翰 玛丽 杰克 汤姆 莎拉 萨拉 丽莎 吉姆 詹姆斯 迈克 彼得 保罗 鲍勃 爱丽丝 安娜 大卫 史蒂夫 比利 雷蒙德 "
    "萨曼莎 卡拉 梅兰妮 图卢兹 查尔斯顿 西雅图 珍妮 "
    "艾米 凯特 简 山姆 本 马克 乔治 露西 艾玛 凯莉 吉尔 比尔 亨利 玛莎 蒂姆 尼克 罗伯特 苏珊 朱莉 苏菲亚 索菲亚 "
    "贝蒂 莉莉 杰森 瑞秋 蕾切尔 布莱恩 凯文 "
).split()

Corruption = Callable[[str, str, str, str, Mapping[str, str], random.Random], str | None]
"""Original, translation, target, answer, the same problem in other languages, chance → the broken translation."""


def _spans(text: str, word: str) -> list[re.Match[str]]:
    """Return where a word stands as one; Chinese ones anywhere."""
    bounded = re.escape(word) if "\u3400" <= word[0] <= "\u9fff" else rf"(?<!\w){re.escape(word)}(?!\w)"
    return list(re.finditer(bounded, text))


def unit_changed(
    original: str, translated: str, target: str, answer: str, others: Mapping[str, str], chance: random.Random
) -> str | None:
    """Put another unit of the same kind behind one number, or another currency before it."""
    changes: list[tuple[int, int, str]] = []
    has_formulas = "\\" in translated or any(is_formula for _, is_formula in parts(translated))
    for word, other in UNITS[target]:
        bounded = re.escape(word) + ("" if not word[-1].isalpha() or "\u3400" <= word[0] <= "\u9fff" else r"(?!\w)")
        behind = r"(?<![\d^_{\\])\d[\d.,]*[\s\u00a0\u202f]?个?(" + bounded + r")(?!\d)"
        if word != "$" or not has_formulas:
            changes += [(match.start(1), match.end(1), other) for match in re.finditer(behind, translated)]
        if word == "$" and not has_formulas:
            changes += [(match.start(), match.end(), other) for match in re.finditer(r"\$(?=\d)", translated)]
    if not changes:
        return None
    start, end, other = chance.choice(changes)
    return translated[:start] + other + translated[end:]


def negation_lost(
    original: str, translated: str, target: str, answer: str, others: Mapping[str, str], chance: random.Random
) -> str | None:
    """Take one negation away."""
    lost = [
        (match.start(), match.end(), match.expand(left))
        for pattern, left in NEGATIONS[target]
        for match in re.finditer(pattern, translated)
        if not _DENIES_NOTHING.search(translated[: match.start()])
    ]
    if not lost:
        return None
    start, end, left = chance.choice(lost)
    return translated[:start] + left + translated[end:]


def comparison_turned(
    original: str, translated: str, target: str, answer: str, others: Mapping[str, str], chance: random.Random
) -> str | None:
    """Exchange one more for less, older for younger, at least for at most, or the other way round."""
    places: list[tuple[int, int, str]] = []
    if target == "zh":
        turned = {one: other for pair in COMPARISONS["zh"] for one, other in (pair, pair[::-1])}
        for match in _ZH_BETWEEN.finditer(translated):
            group = 1 if match[1] else 2
            places.append((match.start(group), match.end(group), turned[match[group]]))
    else:
        for pair in COMPARISONS[target]:
            for one, other in (pair, pair[::-1]):
                places += [
                    (match.start(), match.end(), other)
                    for match in _spans(translated, one)
                    if _compares(translated, match, target)
                ]
    if not places:
        return None
    start, end, other = chance.choice(places)
    return translated[:start] + other + translated[end:]


def _compares(text: str, match: re.Match[str], target: str) -> bool:
    """Return whether a comparative is followed by its than, or bounds a number, within its sentence."""
    than = {"de": "als", "fr": r"que|qu['’]", "es": "que|de", "it": "di|del|della|che", "ru": "чем|,"}[target]
    rest = re.split(r"[.?!]", text[match.end() :], maxsplit=1)[0][:60]
    bounds = " " in match[0] or match[0] in ("mindestens", "höchstens", "almeno")
    return bool(re.search(rf"(?<!\w)(?:{than})(?!\w)" if than != "чем|," else r"чем", rest)) or bounds


def names_swapped(
    original: str, translated: str, target: str, answer: str, others: Mapping[str, str], chance: random.Random
) -> str | None:
    """Exchange two names in one sentence that has both, and more than an "and" between them."""
    pieces = [part for part in SENTENCE_BORDER.split(translated) if part]
    names = _names(original, translated, target)
    chances: list[tuple[int, str, str]] = []
    letter = "[а-яё]" if target == "ru" else r"[^\s\S]"  # Китом is another word than Кит
    for at, sentence in enumerate(pieces):
        here = [name for name in names if re.search(f"{re.escape(name)}(?!{letter})", sentence)]
        for first in here:
            for second in here:
                other = first[:3] != second[:3] if target == "ru" else first not in second and second not in first
                if first < second and other and _apart(sentence, first, second):
                    chances.append((at, first, second))
    if not chances:
        return None
    at, first, second = chance.choice(chances)
    pieces[at] = re.sub(
        f"(?:{re.escape(first)}|{re.escape(second)})(?!{letter})",
        lambda match: second if match[0] == first else first,
        pieces[at],
    )
    return ("" if target == "zh" else " ").join(pieces)


def _names(original: str, translated: str, target: str) -> list[str]:
    """Return the names in a translation: those written as in the original; the commonest Chinese ones; in Russian,
    capitalised words inside sentences.
    """
    if target == "zh":
        return [name for name in _ZH_NAMES if len(name) > 1 and name in translated]
    if target == "ru":
        inside = set(re.findall(r"(?<=[а-яё,] )[А-ЯЁ][а-яё]{2,}(?![а-яё-])", translated))
        return sorted(name for name in inside if not _RU_HOLIDAYS.match(name))
    common = set(_NAME.findall(original)) & set(_NAME.findall(translated)) - _NO_NAMES
    return sorted(name for name in common if name.lower() not in original.split())


def _apart(sentence: str, first: str, second: str) -> bool:
    """Return whether two names stand once each, with more than a conjunction or comma between them."""
    if sentence.count(first) != 1 or sentence.count(second) != 1:
        return False
    start, end = sorted((sentence.index(first), sentence.index(second)))
    between = (
        sentence[start + len(sentence[start:].split()[0]) : end]
        if " " in sentence[start:end]
        else sentence[start + len(first) : end]
    )
    words = re.findall(r"[^\W\d_]+", between)
    joined = {"und", "et", "y", "e", "и", "and", "oder", "ou", "o"}
    is_list = (
        all(word in joined or word[:1].isupper() for word in words)
        if sentence[:1] < "\u3400"
        else not re.search(r"[^和、与，\s]", between)
    )
    return not is_list


def notation_left(
    original: str, translated: str, target: str, answer: str, others: Mapping[str, str], chance: random.Random
) -> str | None:
    """Write one number of four to six digits as the other notation parts its thousands: 1,000 in German."""
    numbers = list(_GROUPED.finditer(translated))
    numbers = [match for match in numbers if f"{match[1]},{match[2]}" in original or match[1] + match[2] in original]
    if not numbers:
        return None
    number = chance.choice(numbers)
    sign = "." if target == "zh" else ","
    return translated[: number.start()] + number[1] + sign + number[2] + translated[number.end() :]


MEANING_CORRUPTIONS: dict[str, Corruption] = {
    "unit changed": unit_changed,
    "negation lost": negation_lost,
    "more and less turned": comparison_turned,
    "names swapped": names_swapped,
    "notation left": notation_left,
}
