"""Translations that ask something else in ways next to those of `corrupting_meaning`.

A number in words becomes another, a fraction is turned over, half becomes double, at least becomes at most, a percent
sign goes. Word lists are the benchmark's own, as there.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping

from tests.gates.corrupting_meaning import Corruption

NUMBER_WORDS: dict[str, tuple[str, ...]] = {
    "de": ("zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn", "zwölf", "zwanzig", "dreißig"),
    "fr": ("deux", "trois", "quatre", "cinq", "six", "sept", "huit", "neuf", "dix", "douze", "vingt", "trente"),
    "es": ("dos", "tres", "cuatro", "cinco", "seis", "siete", "ocho", "nueve", "diez", "doce", "veinte", "treinta"),
    "it": ("due", "tre", "quattro", "cinque", "sei", "sette", "otto", "nove", "dieci", "dodici", "venti", "trenta"),
    "ru": ("два", "три", "четыре", "пять", "шесть", "семь", "восемь", "девять", "десять", "двенадцать", "двадцать"),
    "zh": ("两", "三", "四", "五", "六", "七", "八", "九", "十"),
}
"""By language: small numbers in words, in order; one becomes its neighbour."""

RANKS: dict[str, tuple[tuple[str, str], ...]] = {
    "de": tuple((f"{one}{end}", f"{other}{end}") for end in ("", "n", "r", "s", "m") for one, other in (
        ("erste", "zweite"), ("zweite", "dritte"), ("dritte", "vierte"), ("vierte", "fünfte"), ("fünfte", "sechste"))),
    "fr": (("première", "deuxième"), ("premier", "deuxième"), ("deuxième", "troisième"), ("troisième", "quatrième"),
        ("quatrième", "cinquième"), ("cinquième", "sixième")),
    "es": tuple((f"{one}{end}", f"{other}{end}") for end in ("o", "a") for one, other in (
        ("primer", "segund"), ("segund", "tercer"), ("tercer", "cuart"), ("cuart", "quint"), ("quint", "sext"))),
    "ru": (("первый", "второй"), ("первой", "второй"), ("первого", "второго"), ("второй", "третий"),
        ("второго", "третьего"), ("вторая", "третья"), ("третий", "четвёртый"), ("третья", "четвёртая"),
        ("третьего", "четвёртого"), ("четвёртый", "пятый"), ("пятый", "шестой")),
    "zh": (("第一", "第二"), ("第二", "第三"), ("第三", "第四"), ("第四", "第五"), ("第五", "第六")),
}  # fmt: skip
"""By language: an ordinal, and the next one."""

_ZH_COUNTED = "[个只名位本张件天年条块支辆袋盒箱朵棵把双份瓶杯次倍组盘套台部次人篮架顶头磅小]"

FRACTION_WORDS: dict[str, tuple[tuple[str, str], ...]] = {
    "de": (("Drittel", "Viertel"), ("Viertel", "Fünftel"), ("Fünftel", "Drittel")),
    "fr": (("tiers", "quart"), ("quart", "tiers"), ("cinquième", "quart")),
    "es": (("tercio", "cuarto"), ("tercera parte", "cuarta parte"), ("cuarta parte", "tercera parte")),
    "it": (("terzo", "quarto"), ("quarto", "quinto")),
    "ru": (("треть", "четверть"), ("трети", "четверти"), ("четверть", "треть"), ("четверти", "трети")),
    "zh": (("三分之", "四分之"), ("四分之", "五分之"), ("五分之", "四分之")),
}
"""By language: a part, and the other one that is put there."""

HALVES: dict[str, tuple[tuple[str, str], ...]] = {
    "de": (("die Hälfte", "das Doppelte"), ("halb so", "doppelt so"), ("doppelt so", "halb so")),
    "fr": (("la moitié", "le double"), ("le double", "la moitié"), ("deux fois plus", "deux fois moins")),
    "es": (("la mitad", "el doble"), ("el doble", "la mitad")),
    "it": (("la metà", "il doppio"), ("il doppio", "la metà")),
    "ru": (("в два раза больше", "в два раза меньше"), ("половину", "вдвое больше"), ("вдвое больше", "вдвое меньше")),
    "zh": (("一半", "两倍"), ("两倍", "一半"), ("2倍", "一半")),
}
"""By language: half and double, and what is put there."""

BOUNDS: dict[str, tuple[tuple[str, str], ...]] = {
    "de": (("mindestens", "höchstens"), ("wenigstens", "höchstens"), ("nicht mehr als", "nicht weniger als")),
    "fr": (("au moins", "au plus"), ("pas plus de", "pas moins de"), ("au maximum", "au minimum")),
    "es": (("al menos", "como máximo"), ("por lo menos", "a lo sumo"), ("no más de", "no menos de")),
    "it": (("almeno", "al massimo"), ("non più di", "non meno di")),
    "ru": (("по крайней мере", "не более чем"), ("не менее", "не более"), ("хотя бы", "не более чем")),
    "zh": (("至少", "至多"), ("最少", "最多"), ("不超过", "不少于"), ("不少于", "不超过")),
}
"""By language: a bound, and the other one; either way round."""

PERCENT: dict[str, str] = {
    "de": r"\d(\s?%|\s?\\%|[ -]?Prozent)",
    "fr": r"\d(\s?%|\s?\\%| pour ?cent)",
    "es": r"\d(\s?%|\s?\\%| por ciento)",
    "it": r"\d(\s?%|\s?\\%| per cento)",
    "ru": r"\d(\s?%|\s?\\%| процент(?:ов|а)?(?![а-я]))",
    "zh": r"\d(\s?[%％]|\s?\\%)",
}

EACH: dict[str, str] = {
    "de": r" jeweils\b| pro Stück\b| je(?= \d| \$)",
    "fr": r" chacune?s?\b| (?:la )?pièce\b| l['’]unité\b",
    "es": r" cada un[oa]\b| c/u\b",
    "it": r" ciascun[oa]\b| l['’]un[oa]\b",
    "ru": r" кажд(?:ый|ая|ое|ые|ую|ого|ой)(?=[.,;?! ])| за штуку\b| по(?= \d)",
}
"""By language: a word that says that a number is each one's; Chinese says it by its order."""

_STILL_EACH = re.compile(r"(?<!\w)(?:по|zu|à|a)(?:\s[$€£]?\s?\d[\d.,]*(?:\s?[$€£]|\s\w+)?)?\Z")
"""What says each as well, where it is left before the word that goes: zu 4 $, по $8, à 20 $."""
_OVER = re.compile(r"(?<![\d/.,])(\d{1,2})/(\d{1,2})(?![\d/])|\\d?frac\{(\d{1,3})\}\{(\d{1,3})\}")


def _exchange(
    translated: str, pairs: tuple[tuple[str, str], ...], target: str, chance: random.Random, *, both: bool = False
) -> str | None:
    """Put the other of a pair where one stands; Chinese words anywhere, others as words."""
    listed = [pair for one, other in pairs for pair in (((one, other), (other, one)) if both else ((one, other),))]
    places = [
        (match.start(), match.end(), other)
        for one, other in listed
        for match in re.finditer(re.escape(one) if target == "zh" else rf"(?<!\w){re.escape(one)}(?!\w)", translated)
    ]
    if not places:
        return None
    start, end, other = chance.choice(places)
    return translated[:start] + other + translated[end:]


def number_word_changed(
    original: str, translated: str, target: str, answer: str, others: Mapping[str, str], chance: random.Random
) -> str | None:
    """Make one number in words its neighbour."""
    words = NUMBER_WORDS[target]
    bounded = (
        rf"(?<![第周期一二三四五六七八九十百千万点分之几])({'|'.join(words)})(?={_ZH_COUNTED})"
        if target == "zh"
        else rf"(?<![\w-])({'|'.join(words)})(?![\w-])"
    )
    matches = list(re.finditer(bounded, translated))
    if not matches:
        return None
    match = chance.choice(matches)
    at = words.index(match[1])
    other = words[at + 1] if at + 1 < len(words) else words[at - 1]
    return translated[: match.start(1)] + other + translated[match.end(1) :]


def fraction_inverted(
    original: str, translated: str, target: str, answer: str, others: Mapping[str, str], chance: random.Random
) -> str | None:
    """Turn one fraction in digits over."""
    matches = [match for match in _OVER.finditer(translated) if (match[1] or match[3]) != (match[2] or match[4])]
    if not matches:
        return None
    match = chance.choice(matches)
    turned = f"{match[2]}/{match[1]}" if match[1] else rf"\frac{{{match[4]}}}{{{match[3]}}}"
    return translated[: match.start()] + turned + translated[match.end() :]


def fraction_word_changed(
    original: str, translated: str, target: str, answer: str, others: Mapping[str, str], chance: random.Random
) -> str | None:
    """Make a third a quarter, or likewise."""
    return _exchange(translated, FRACTION_WORDS[target], target, chance)


def half_doubled(
    original: str, translated: str, target: str, answer: str, others: Mapping[str, str], chance: random.Random
) -> str | None:
    """Make half double, or double half."""
    return _exchange(translated, HALVES[target], target, chance)


def bound_turned(
    original: str, translated: str, target: str, answer: str, others: Mapping[str, str], chance: random.Random
) -> str | None:
    """Make at least at most, or the other way round."""
    return _exchange(translated, BOUNDS[target], target, chance, both=True)


def percent_dropped(
    original: str, translated: str, target: str, answer: str, others: Mapping[str, str], chance: random.Random
) -> str | None:
    """Leave a percentage's number without its sign."""
    matches = list(re.finditer(PERCENT[target], translated))
    if not matches:
        return None
    match = chance.choice(matches)
    return translated[: match.start(1)] + translated[match.end(1) :]


def each_lost(
    original: str, translated: str, target: str, answer: str, others: Mapping[str, str], chance: random.Random
) -> str | None:
    """Drop one word that makes a number each one's: what six books cost each is what they cost together."""
    if target not in EACH or not re.search(r"\d[^.?!]{0,30}\b(?:each|apiece)\s*[.,;?!]", original):
        return None
    matches = list(re.finditer(EACH[target], translated))
    if len(matches) != 1:
        return None  # of several, one says it still
    if _STILL_EACH.search(translated[: matches[0].start()]):
        return None
    return translated[: matches[0].start()] + translated[matches[0].end() :]


def rank_changed(
    original: str, translated: str, target: str, answer: str, others: Mapping[str, str], chance: random.Random
) -> str | None:
    """Make one ordinal the next one, where the text does not have that as well."""
    pairs = tuple(pair for pair in RANKS.get(target, ()) if pair[1] not in translated)
    return _exchange(translated, pairs, target, chance)


NEIGHBOURS: dict[str, Corruption] = {
    "number word changed": number_word_changed,
    "fraction inverted": fraction_inverted,
    "fraction word changed": fraction_word_changed,
    "half and double": half_doubled,
    "at least, at most": bound_turned,
    "percent dropped": percent_dropped,
    "each dropped": each_lost,
    "ordinal changed": rank_changed,
}
