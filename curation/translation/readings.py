"""What a translation writes in a way that can be read twice, read as its original says.

    12 800          an iPhone 12 that costs 800, where the original has both numbers and not 12,800
    cinq cents      five cents, where the original speaks of cents and of five, not of 500
    coupé en deux   in half, where the original says so
    半小时          30 minutes, where the original says so
    下午4点         16:00, where the original says so
    边长4英尺       4 feet by 4 feet, where the original says so

Invariants: pure functions; a text in which nothing is doubtful comes back as it is. Nothing is read so that the
original does not have: a translation that is wrong stays wrong.
"""

from __future__ import annotations

import re
from fractions import Fraction

from curation.languages.vocabulary import language
from curation.translation.numerals import in_digits, in_words, plain_digits, word_tokens
from curation.translation.units import is_named

_TWO_NUMBERS = re.compile(r"(?<![\d.,])(\d{1,3})[ \u00a0\u202f](\d{3})(?![\d.,]\d|\d)")
_HALF, _THIRTY = Fraction(1, 2), Fraction(30)
_NOON = 12
_REACH = 40
"""Characters before a word in which its number is looked for."""


def as_the_original_reads(original: str, translated: str, source: str, target: str) -> str:
    """Return a translation whose doubtful numbers are written so that they are read as the original's."""
    plain = plain_digits(original)
    said = {*in_words(plain, source), *(value for token in in_digits(plain, source) for value in token.values)}
    translated = _TWO_NUMBERS.sub(lambda match: _parted(match, said), translated)
    if language(target).numerals.hundreds_or_cents and is_named("cent", original, source):
        translated = _cents(translated, said, target)
    translated = _in_squares(_of_the_day(translated, said, target), plain, source)
    translated = _in_minutes(translated, plain, source, target)
    return _halved(translated, in_words(plain, source).count(_HALF), target)


def _parted(match: re.Match[str], said: set[Fraction]) -> str:
    """Return two numbers further apart where the original has both, and not the one that they would be together."""
    both = {Fraction(match[1]), Fraction(match[2])}
    return f"{match[1]}  {match[2]}" if both <= said and Fraction(match[1] + match[2]) not in said else match[0]


def _cents(text: str, said: set[Fraction], lang: str) -> str:
    """Return a text whose words for hundreds are signs of cents where the original has the number before them."""
    hundreds = re.compile(rf"(?<![^\W\d_])(?:{language(lang).numerals.hundreds_or_cents})(?![^\W\d_])")
    read, end = "", 0
    for match in hundreds.finditer(text):
        before = (read + text[end : match.start()])[-_REACH:]
        tokens = word_tokens(before, lang)
        last = tokens[-1] if tokens and not before[tokens[-1].start + len(tokens[-1].text) :].strip() else None
        is_counted = last is not None and any(value in said and 100 * value not in said for value in last.values)
        read += text[end : match.start()] + ("¢" if is_counted else match[0])
        end = match.end()
    return read + text[end:]


def _of_the_day(text: str, said: set[Fraction], lang: str) -> str:
    """Return a text whose hours of the afternoon are counted from midnight where the original has those alone."""
    afternoon = language(lang).numerals.afternoon

    def written(match: re.Match[str]) -> str:
        hour = int(match[1])
        return str(hour + _NOON) if hour not in said and hour + _NOON in said else match[0]

    return re.sub(afternoon, written, text) if afternoon else text


def _in_squares(text: str, plain: str, source: str) -> str:
    """Return a text that says both sides of a square, of which it says one, where the original says both."""
    by = language(source).numerals.by
    for match in re.finditer(rf"(?<![\d.,])(\d+)(?:[ -][^\W\d_]+)? ?(?:{by}) ?\1(?![\d.,]\d|\d)", plain):
        side = re.compile(rf"(?<![\d.,]){match[1]}(?![\d.,]\d|\d)")
        there = len(side.findall(plain_digits(text)))
        if 0 < there == len(side.findall(plain)) - 1:
            text = side.sub(f"{match[1]} × {match[1]}", text, count=1)
    return text


def _in_minutes(text: str, plain: str, source: str, target: str) -> str:
    """Return a text that says 30 minutes for half an hour, as often as the original has more of them than it."""
    lacking, there = (
        sum(_THIRTY in token.values for token in in_digits(one, lang))
        for one, lang in ((plain, source), (plain_digits(text), target))
    )
    if lacking <= there:
        return text
    expression, written = language(target).numerals.half_hour
    return re.sub(expression, written, text, count=lacking - there, flags=re.IGNORECASE)


def _halved(text: str, halves: int, lang: str) -> str:
    """Return a text that says half for in two, as often as the original has more halves than it."""
    halving = language(lang).numerals.halving
    lacking = halves - in_words(plain_digits(text), lang).count(_HALF) if halving and halves else 0
    if lacking <= 0:
        return text
    half = language(lang).numerals.parts["1/2"][0]

    def written(match: re.Match[str]) -> str:
        start, end = (at - match.start() for at in match.span("two"))
        return f"{match[0][:start]}{half}{match[0][end:]}"

    return re.sub(rf"(?<![^\W\d_])(?:{halving})(?![^\W\d_])", written, text, count=lacking, flags=re.IGNORECASE)
