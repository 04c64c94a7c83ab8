"""What an original and its translation write in ways that differ, written alike before both are compared.

    0. 10            0.10, where the translation has it
    8.15 a.m.        8:15, and 8.15 Uhr or 20.15 Uhr likewise
    8:15, 05:00:00   one number each, where both texts have them
    3 quarters       3/4, where the other text says the fraction
    one out of nine  1/9, where the other text says the fraction
    3-digit          three-digit, where the translation has it in a word
    $8$ by $8$       8, where the translation counts by 8 once
    the tens digit   no number, where both name the same place

Invariants: pure functions; nothing is written that the other text does not have: a translation that is wrong stays so.
Not here: what only the translation writes doubtfully (`readings`).
"""

from __future__ import annotations

import re
from collections import Counter
from fractions import Fraction
from functools import cache
from itertools import pairwise

from curation.languages.vocabulary import language
from curation.translation.numeral_words import WORDS
from curation.translation.numerals import in_digits, in_words, is_hour, is_morning, plain_digits, word_tokens
from curation.translation.readings import as_the_original_reads

_PARTED = re.compile(r"(?<![\d.,])(\d{1,3})([.,]) (\d{2,})(?!\d)")
_DOTTED_CLOCK = re.compile(r"(?<![\d.,:])(\d{1,2})\.([0-5]\d)(?![\d.,]\d|\d)")
_CLOCK = re.compile(r"(?<![\d.,:])(\d{1,2}):([0-5]\d)(?![\d:])")
_BY_ITSELF = re.compile(r"(\$+)(\d+)\1 by \1\2\1")
_COMPOUND = re.compile(r"(?<![\d.,/$-])(\d{1,2})(?=-[a-z]{3,})")
_HOURS = 12
_MOST_SHARE = 100
"""Largest denominator of a share that is looked for in words."""


def written_alike(original: str, translated: str, source: str, target: str) -> tuple[str, str]:
    """Return both texts with what they write differently written alike.

    >>> written_alike("It is 0. 10.", "它是0.10。", "en", "zh")
    ('It is 0.10.', '它是0.10。')
    """
    if _PARTED.search(original):
        original = _joined(original, _numbers(translated, target))
    original, translated = _clocks(original, translated, source)
    original, translated = _as_one(original, translated, source, target)
    shares = _fractions(original, source), _fractions(translated, target)
    original = _shares(original, shares[1], source)
    translated = _shares(translated, shares[0], target)
    original = _in_words(_counted_by(original, translated), translated, source, target)
    original, translated = _places(original, translated, source, target)
    return original, as_the_original_reads(original, translated, source, target)


def _numbers(text: str, lang: str) -> set[Fraction]:
    """Return every number of a text, in any reading."""
    plain = plain_digits(text)
    return {*in_words(plain, lang), *(value for token in in_digits(plain, lang) for value in token.values)}


def _fractions(text: str, lang: str) -> set[Fraction]:
    """Return the numbers below one that a text says as such, in words or as 1/9."""
    plain = plain_digits(text)
    over = (value for token in in_digits(plain, lang) if "/" in token.text for value in token.values)
    return {value for value in (*in_words(plain, lang), *over) if 0 < value < 1}


def _joined(text: str, there: set[Fraction]) -> str:
    """Return a text without the blank behind a decimal point or a sign of thousands, where the other side has none."""

    def written(match: re.Match[str]) -> str:
        whole, sign, rest = match.groups()
        if sign == "," and len(rest) != 3:
            return match[0]
        both = Fraction(f"{whole}.{rest}") if sign == "." else Fraction(whole + rest)
        return whole + sign + rest if both in there and not {Fraction(whole), Fraction(rest)} <= there else match[0]

    return _PARTED.sub(written, text)


def _clocks(original: str, translated: str, source: str) -> tuple[str, str]:
    """Return both texts with colons in times of the day that either writes with a point."""
    times = {(int(hour), minute) for hour, minute in _CLOCK.findall(original)}

    def is_time(match: re.Match[str]) -> bool:
        return is_hour(original, match.end(), source) and int(match[1]) <= _HOURS

    times |= {(int(match[1]), match[2]) for match in _DOTTED_CLOCK.finditer(original) if is_time(match)}
    if not times:
        return original, translated
    times |= {(hour + _HOURS, minute) for hour, minute in times if hour < _HOURS}

    def written(match: re.Match[str]) -> str:
        return f"{match[1]}:{match[2]}" if (int(match[1]), match[2]) in times else match[0]

    original = _DOTTED_CLOCK.sub(lambda match: written(match) if is_time(match) else match[0], original)
    return original, _DOTTED_CLOCK.sub(written, translated)


@cache
def _times(lang: str) -> re.Pattern[str]:
    """Return the expression of a time of the day: hours, minutes, seconds."""
    clock = language(lang).numerals.clock
    between = rf":|\s?(?:{clock})\s?" if clock else ":"
    return re.compile(rf"(?<![\d.,:])(\d{{1,2}})(?:{between})([0-5]\d)(?::([0-5]\d))?(?![\d:])")


def _as_one(original: str, translated: str, source: str, target: str) -> tuple[str, str]:
    """Return both texts with times of the day that both have as one number each: 8:15 as 815, 20:15 as 815."""
    mornings: set[tuple[int, ...]] = set()
    others: set[tuple[int, ...]] = set()
    for match in _times(source).finditer(original):
        (mornings if is_morning(original, match.end(), source) else others).add(_time(match))

    def is_evening(match: re.Match[str]) -> bool:
        """Return whether a time is one of the morning's in the original, and in the other half of the day here."""
        return int(match[1]) > _HOURS and _time(match) in mornings - others

    matches = list(_times(target).finditer(translated))
    both = (mornings | others) & {_time(match) for match in matches if not is_evening(match)}
    if not both:
        return original, translated

    def written(match: re.Match[str]) -> str:
        time = _time(match)
        return str(int("".join(map("{:02}".format, time)))) if time in both else match[0]

    def translation(match: re.Match[str]) -> str:
        return match[0] if is_evening(match) else written(match)

    return _times(source).sub(written, original), _times(target).sub(translation, translated)


def _time(match: re.Match[str]) -> tuple[int, ...]:
    """Return hours, of the first twelve, minutes and seconds of a time as it is written."""
    hour, *rest = (int(part) for part in match.groups() if part)
    return (hour - _HOURS if _HOURS < hour < 2 * _HOURS and len(rest) == 1 else hour, *rest)


@cache
def _parts(lang: str) -> re.Pattern[str]:
    """Return the expression of a number in digits with a part in words behind it: 3 quarters."""
    numerals = language(lang).numerals
    words = [word for value, listed in numerals.parts.items() if value != "1/2" for word in listed]
    if not words or not language(lang).spaced:
        return re.compile(r"(?!)")
    return re.compile(rf"(?<![\d.,/$])(\d{{1,2}})[ -]({'|'.join(words)})(?![^\W\d_])", re.IGNORECASE)


def _shares(text: str, there: set[Fraction], lang: str) -> str:
    """Return a text with 3/4 for its 3 quarters and its 3 out of 4, where the other side says that fraction."""

    def written(match: re.Match[str]) -> str:
        value = int(match[1]) * WORDS[lang][match[2].lower()]
        return f"{value.numerator}/{value.denominator}" if value in there else match[0]

    if not there:
        return text
    return _of_several(_parts(lang).sub(written, text), there, lang)


def _of_several(text: str, there: set[Fraction], lang: str) -> str:
    """Return a text with 1/9 for its one out of nine, where the other side says that fraction."""
    between = language(lang).numerals.out_of
    if not between:
        return text
    numbers = sorted((*in_digits(text, lang), *word_tokens(text, lang)), key=lambda token: token.start)
    for first, second in reversed(list(pairwise(numbers))):
        stop = second.start + len(second.text)
        gap = text[first.start + len(first.text) : second.start]
        low, high = min(first.values), min(second.values)
        if not 0 < low < high <= _MOST_SHARE or {low.denominator, high.denominator} != {1} or low / high not in there:
            continue
        if re.fullmatch(rf"\$* (?:{between}) \$*", gap):
            text = f"{text[: first.start]}{low}/{high}{text[stop:]}"
    return text


def _counted_by(original: str, translated: str) -> str:
    """Return an original with 8 for its 8 by 8, where the translation has it once less."""

    def written(match: re.Match[str]) -> str:
        number = re.compile(rf"(?<![\d.,]){match[2]}(?![\d.,]\d|\d)")
        once_less = len(number.findall(translated)) == len(number.findall(original)) - 1
        return f"{match[1]}{match[2]}{match[1]}" if once_less else match[0]

    return _BY_ITSELF.sub(written, original)


def _in_words(original: str, translated: str, source: str, target: str) -> str:
    """Return an original with the words of its 3-digit numbers, where the translation has fewer of these digits."""
    units = language(source).numerals.units
    counts = Counter(token.text for token in in_digits(plain_digits(original), source))
    there = Counter(token.text for token in in_digits(plain_digits(translated), target))

    def written(match: re.Match[str]) -> str:
        number = match[1]
        is_word = int(number) < len(units) and there[number] < counts[number]
        return units[int(number)] if is_word else number

    return _COMPOUND.sub(written, original)


@cache
def _place_names(lang: str) -> re.Pattern[str]:
    """Return one expression of the places of a number that a language names, each a group of its power of ten."""
    places = language(lang).numerals.places
    bounded = r"(?<![^\W\d_])(?:{})(?![^\W\d_])" if language(lang).spaced else "(?:{})"
    ordered = sorted(places.items(), key=lambda place: -int(place[0]))
    names = "|".join(f"(?P<p{power}>{words})" for power, words in ordered)
    return re.compile(bounded.format(names) if names else r"(?!)", re.IGNORECASE)


def _places(original: str, translated: str, source: str, target: str) -> tuple[str, str]:
    """Return both texts without the names of places that both name: the tens digit is no ten."""
    before, after = (
        {match.lastgroup for match in _place_names(lang).finditer(text)}
        for text, lang in ((original, source), (translated, target))
    )
    both = before & after
    if not both:
        return original, translated
    original, translated = (
        _place_names(lang).sub(lambda match: " " * len(match[0]) if match.lastgroup in both else match[0], text)
        for text, lang in ((original, source), (translated, target))
    )
    return original, translated
