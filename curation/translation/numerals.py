"""The numbers of a text: those written in digits, each with the readings it allows, and those written in words.

Digits: ``2.000`` is two thousand to a German and two to an Englishman, so a token carries every value that some of the
languages reads in it, and two tokens agree where their values meet. A fraction ``3/4`` is one token. Words: the
numerals of the languages up to millions, with halves, thirds, dozens and doublings.

Invariants: pure functions; digits glued to letters (``x2``, ``H2O``) are tokens too; nothing is read twice.
Not here: which number must be found again (`invariants`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache

from curation.languages.vocabulary import language, languages
from curation.translation.numeral_words import POSITIONAL, STEMS, WORDS
from curation.translation.numerals_positional import positional, positional_runs

_FRACTION_SIGNS = {sign: f" {top}/{bottom}" for sign, top, bottom in (
    ("½", 1, 2), ("⅓", 1, 3), ("⅔", 2, 3), ("¼", 1, 4), ("¾", 3, 4), ("⅕", 1, 5), ("⅛", 1, 8), ("⅜", 3, 8), ("⅝", 5, 8),
    ("⅞", 7, 8),
)}  # fmt: skip
_OTHER_SIGNS = str.maketrans("０１２３４５６７８９⁄∕", "0123456789//")
_SPACES = "\u00a0\u202f\u2009"
_DIGITS = re.compile(
    rf"(?P<over>\d+\s?/\s?\d+)(?![\d/])"
    rf"|(?P<clock>\d{{1,2}}[:h]\d{{2}})(?!\d)"
    rf"|(?P<grouped>[1-9]\d{{0,2}}(?:(?P<by>[.,'’{_SPACES} ])\d{{3}})(?:(?P=by)\d{{3}})*(?:[.,]\d+)?)(?!\d)"
    rf"|(?P<decimal>(?<!\d\.)\d+\.\d+(?!\.?\d)|(?<!\d,)\d+,\d+(?!,?\d)|(?<![\w.,)}}\]])\.\d+(?!\.?\d))"
    rf"|(?P<whole>\d+)"
)
_LATEX_COMMA = re.compile(r"(?<=\d)(?:\{,\}|\\[,;!:]|\{\\,\}|~|\\\s)(?=\d)")
_HAN = tuple(lang.numerals for lang in languages() if not lang.spaced)
_SPACED = tuple(lang.numerals for lang in languages() if lang.spaced)
_HAN_SCALES = {sign: int(value) for words in _HAN for value, signs in words.behind_digits.items() for sign in signs}
_HAN_SCALE = re.compile(
    rf"\s?([{''.join(_HAN_SCALES)}])(?!{'|'.join(words.positional['scale_ends'] for words in _HAN)})"
)
_SPACED_SCALES: dict[int, list[str]] = {}
for _words in _SPACED:
    for _value, _patterns in _words.behind_digits.items():
        _SPACED_SCALES.setdefault(int(_value), []).extend(_patterns)
_GROUPS = "|".join(
    f"(?P<x{value}>{'|'.join(patterns)})" for value, patterns in sorted(_SPACED_SCALES.items(), reverse=True)
)
_SPACED_SCALE = re.compile(rf"[\s-]?(?:{_GROUPS})(?![^\W\d_])", re.IGNORECASE)
_SCALED = re.compile(rf"\d(?:{_HAN_SCALE.pattern}|{_SPACED_SCALE.pattern})", re.IGNORECASE)
_THOUSANDS = re.compile(r"[kK](?![^\W_])")
_CENTS = re.compile(r"(?<=\d)[\s\u00a0]cents?(?!\w)")
"""Cents behind digits, which are a hundred elsewhere."""
_REMEMBERED = 256
"""Texts whose numbers are kept: those of one pair are asked for again and again."""
_WORD = re.compile(r"[^\W\d_]+")
_NAMED = {
    lang: re.compile(rf"(?<![^\W\d_])([^\W\d_]+) ({'|'.join(map(str.capitalize, words))})(?![^\W\d_])")
    for lang, words in WORDS.items()
}
"""A capitalised numeral behind another word."""


@dataclass(frozen=True, slots=True)
class NumeralToken:
    """A number in digits: its text, where it starts, and the values that it may have.

    Example: ``NumeralToken("2.000", 14, frozenset({Fraction(2), Fraction(2000)}))``
    """

    text: str
    start: int
    values: frozenset[Fraction]


def plain_digits(text: str) -> str:
    """Make full-width digits plain, write fraction signs out, and read LaTeX's separators between digits as spaces."""
    for sign, written in _FRACTION_SIGNS.items():
        text = text.replace(sign, written)
    text = text.translate(_OTHER_SIGNS)
    return _LATEX_COMMA.sub(lambda match: "," if match[0] == "{,}" else "\u00a0", text)


def in_digits(text: str, lang: str) -> list[NumeralToken]:
    """Return every number written in digits, in order. ``text`` is `plain_digits`'s, or has no need of it."""
    return list(_in_digits(text, lang))


@lru_cache(maxsize=_REMEMBERED)
def _in_digits(text: str, lang: str) -> tuple[NumeralToken, ...]:
    return tuple(token for match in _DIGITS.finditer(text) for token in _tokens(match, text, lang))


def _tokens(match: re.Match[str], text: str, lang: str) -> list[NumeralToken]:
    """Return the tokens of one match of `_DIGITS`: two for a clock with minutes, else one."""
    digits, start = match[0], match.start()
    if match["over"]:
        top, bottom = (int(part) for part in digits.split("/"))
        return [NumeralToken(digits, start, frozenset({Fraction(top, bottom)} if bottom else {Fraction(top)}))]
    if match["clock"]:
        hour, minute = re.split("[:h]", digits)
        hours = NumeralToken(hour, start, _half_day(Fraction(int(hour)), text[match.end() :], lang))
        return [hours] if int(minute) == 0 else [hours, NumeralToken(minute, start, frozenset({Fraction(int(minute))}))]
    values = _readings(digits, match["by"], lang)
    rest = text[match.end() : match.end() + 24]
    if _THOUSANDS.match(rest):  # $280k, though 3k may be a term
        return [NumeralToken(digits, start, values | {value * 1000 for value in values})]
    scale = _scale(rest)
    if scale != 1:
        values = frozenset(value * scale for value in values)
    elif match["whole"] and _is_reduction(rest, lang):
        values = frozenset(Fraction(100) - value * (10 if value < 10 else 1) for value in values)
    elif match["whole"] and len(digits) <= 2:
        values = frozenset(hour for value in values for hour in _half_day(value, rest, lang))
    return [NumeralToken(digits, start, values)]


def _is_reduction(rest: str, lang: str) -> bool:
    """Return whether digits say how many tenths of a price are left: 8折 is 20 % off."""
    sign = language(lang).numerals.positional.get("reduction_sign")
    return sign is not None and re.match(rf"\s?{sign}", rest) is not None


def _readings(digits: str, by: str | None, lang: str) -> frozenset[Fraction]:
    """Return the values of a token of digits and separators; a comma parts thousands where a point is the decimal."""
    bare = re.sub(rf"['’{_SPACES} ]", "", digits)
    marks = re.findall(r"[.,]", bare)
    if not marks:
        return frozenset({Fraction(int(bare))})
    if len(set(marks)) == 2:  # 1.234,5: the last is the decimal sign
        last = max(bare.rfind("."), bare.rfind(","))
        return frozenset({Fraction(f"{re.sub('[.,]', '', bare[:last])}.{bare[last + 1 :]}")})
    grouped = Fraction(int(re.sub("[.,]", "", bare)))
    if len(marks) > 1:
        return frozenset({grouped})
    decimal = Fraction(f"0{bare.replace(',', '.')}")
    if by == "," and not language(lang).decimal_comma and not bare.startswith("0"):
        return frozenset({grouped})
    return frozenset({grouped, decimal}) if by is not None and not bare.startswith("0") else frozenset({decimal})


def _scale(rest: str) -> int:
    """Return what a numeral behind the digits multiplies them by: 3万, 2 million."""
    sign = _HAN_SCALE.match(rest)
    if sign:
        return _HAN_SCALES[sign[1]]
    word = _SPACED_SCALE.match(rest)
    return int((word.lastgroup or "x1")[1:]) if word else 1


def scale_end(text: str, end: int) -> int:
    """Return where a number in digits ends with the numeral behind them: behind 万 of 3万, million of 2 million."""
    scale = _HAN_SCALE.match(text, end) or _SPACED_SCALE.match(text, end)
    return scale.end() if scale else end


_NOON = Fraction(12)


@cache
def _clock(lang: str) -> re.Pattern[str] | None:
    """Return the expression of what stands behind an hour of a twelve-hour clock, in a language that has one."""
    numerals = language(lang).numerals
    if not numerals.half_day:
        return None
    between = "|".join((*numerals.half_day_range, "-", "–", ":"))
    return re.compile(rf"(?:\s?(?:{between})\s?\d{{1,2}})*\s?(?:{'|'.join(numerals.half_day)})", re.IGNORECASE)


@cache
def _behind(lang: str, name: str) -> re.Pattern[str]:
    words = getattr(language(lang).numerals, name)
    return re.compile(rf"\s?(?:{'|'.join(words)})" if words else r"(?!)", re.IGNORECASE)


def is_hour(text: str, end: int, lang: str) -> bool:
    """Return whether what ends there is an hour of a twelve-hour clock, by the word behind it."""
    return _behind(lang, "half_day").match(text, end) is not None


def is_morning(text: str, end: int, lang: str) -> bool:
    """Return whether what ends there is an hour of the morning, by the word behind it."""
    return _behind(lang, "forenoon").match(text, end) is not None


def _half_day(hour: Fraction, rest: str, lang: str) -> frozenset[Fraction]:
    """Return the hours that an hour may be elsewhere: one of a twelve-hour clock, of the other twelve too.

    One of the morning is itself alone, but for 12 a.m.
    """
    clock = _clock(lang)
    if clock is None or hour > _NOON or not clock.match(rest):
        return frozenset({hour})
    if is_morning(rest, 0, lang):
        return frozenset({hour}) if hour < _NOON else frozenset({hour, Fraction(0), 2 * _NOON})
    return frozenset({hour, hour + _NOON})


def in_words(text: str, lang: str) -> list[Fraction]:
    """Return every number written in words of the language, in order; halves and doublings are 1/2 and 2."""
    text = _CENTS.sub(" ", _SCALED.sub(" ", text))
    if language(lang).numerals.order == POSITIONAL:
        return positional(text, lang)
    return [value for token in _western(text.lower().replace("’", "'"), lang) for value in token.values]


def in_names(text: str, lang: str) -> list[Fraction]:
    """Return the numbers of names, such as Sally Four, who is so called in every language."""
    words = WORDS.get(lang, {})
    names = (match for match in _NAMED[lang].finditer(text)) if words else ()
    return [words[name[2].lower()] for name in names if name[1][0].isupper() and name[1].lower() not in words]


def in_compounds(text: str, lang: str) -> list[Fraction]:
    """Return the numbers that longer words begin with: sechsseitig, verdreifacht, шестигранный, triplicó."""
    words = WORDS.get(lang, {})
    others = [word for word in _WORD.findall(text.lower()) if word not in words]
    return [value for value, stem in STEMS.get(lang, ()) for word in others if stem.match(word)]


def word_tokens(text: str, lang: str) -> list[NumeralToken]:
    """Return the numbers written in words, each where it stands; of positional numerals those that are one run."""
    if language(lang).numerals.order == POSITIONAL:
        return [NumeralToken(run, at, frozenset({value})) for run, at, value in positional_runs(text, lang)]
    return list(_western(text.lower().replace("’", "'"), lang))


@lru_cache(maxsize=_REMEMBERED)
def _western(text: str, lang: str) -> tuple[NumeralToken, ...]:
    """Return the numbers of a text in spaced words, joined as they add up: twenty-five, deux cent trois, treinta y
    uno.
    """
    numerals = language(lang).numerals
    for compound, single in numerals.compounds.items():
        text = text.replace(compound, single.ljust(len(compound)))
    words, joiners = WORDS[lang], numerals.joiners
    numbers: list[NumeralToken] = []
    current: Fraction | None = None
    begin = end = last = 0
    for match in _WORD.finditer(text):
        between = text[end : match.start()].strip(" -\u00a0")
        value = words.get(match[0])
        if value is not None and _is_rank(text, match, value, lang):
            value = None
        if value is None and match[0] in joiners and not between:
            end = match.end()
            continue
        is_half_more = value == Fraction(1, 2) and last != end  # two and a half, which are no halves
        joined = None
        if current is not None and value is not None and not between and not is_half_more:
            joined = _joined(current, value)
        if joined is None and current is not None:
            numbers.append(NumeralToken(text[begin:last], begin, frozenset({current})))
        if joined is None:
            begin = match.start()
        current = joined if joined is not None else value
        end = last = match.end()
    last_number = [NumeralToken(text[begin:last], begin, frozenset({current}))] if current is not None else []
    return (*numbers, *last_number)


def _is_rank(text: str, match: re.Match[str], value: Fraction, lang: str) -> bool:
    """Return whether a part is the ordinal of a joined word: fourth-graders."""
    behind = re.match(r"-([^\W\d_]+)", text[match.end() :])
    if behind is None or not 0 < value < Fraction(1, 2) or behind[1] in WORDS[lang]:
        return False
    return re.fullmatch(language(lang).numerals.ordinals.get(str(1 / value), r"(?!)"), match[0]) is not None


def _joined(before: Fraction, value: Fraction) -> Fraction | None:
    """Return what two numerals make together; None where they are two numbers."""
    if value.denominator > 1:  # two thirds; four quarters of a year are counted
        is_part = 0 < before < 20 and value.numerator == 1 and not (value == Fraction(1, 4) and before >= 4)
        return before * value if before.denominator == 1 and is_part else None
    if before.denominator > 1:
        return None
    if value in (100, 1000, 10**6, 10**9):
        return before * value if 0 < before < (20 if value == 100 else value) else None  # vingt cents are twenty
    low = before % 100
    fits_tens = low >= 20 and low % 10 == 0 and (value < 10 or (low in (60, 80) and value < 20))
    fits_hundreds = before >= 100 and low == 0 and value < 100
    fits_thousands = before >= 1000 and before % 1000 == 0 and value < 1000
    return before + value if value > 0 and (fits_tens or fits_hundreds or fits_thousands) else None
