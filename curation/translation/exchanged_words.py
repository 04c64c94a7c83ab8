"""Numbers in words that became others in their own sentence: twice that is three times, four that are five.

Stricter than `number_words`, which compares whole texts: here a number in words that stands nowhere in a segment, while
another came in, was exchanged. From three to ten none comes in at all.

Invariants: pure functions over aligned segments.
"""

from __future__ import annotations

import re
from collections import Counter
from fractions import Fraction

from curation.languages.vocabulary import language
from curation.translation.number_words import (
    coins,
    digit_values,
    firm_words,
    implied,
    ordinals,
    percentages,
    said_by_less,
)
from curation.translation.numerals import in_compounds, in_names, in_words, plain_digits, word_tokens
from curation.translation.quantities import months_named
from curation.translation.sentences import Segment, sides
from curation.translation.violations import Violation

_ONE, _TWO, _DOZEN = Fraction(1), Fraction(2), Fraction(12)
_CAPITALS = re.compile(r"(?<![.?!] )(?<!\A)\b[A-Z][a-z]+|(?<=[.?!] )[A-Z][a-z]+(?=['’]s| and | [a-z]+(?:s|ed)\b)")
_LISTED = re.compile(r",(?: and)? |(?<!,) and ")
_SIGN = re.compile(r"(?<![A-Za-z\\])[A-Za-z](?:_\{?\w\}?)?(?![A-Za-z])")
_SIGNS = re.compile(
    r"\$?[A-Za-z](?:_\{?\w\}?)?\$?(?:(?:\s?[,<>]\s?|,? and )\$?[A-Za-z](?:_\{?\w\}?)?\$?(?![A-Za-z])){1,9}"
)
"""A sign that names a number or point, and several of them."""
_MOST = 10
"""Largest number in words that may not come in; a dozen, a hundred, noon do."""


def exchanged_words(segment: Segment, source: str, target: str, original: str = "") -> list[Violation]:
    """Return a violation where a number in words of a segment stands nowhere in it, and another one came in.

    Both and a pair count here: they may go, but do not become three. From three to ten none comes in at all, unless
    another sentence of the original says it, and its own says none: four people …, the four of them.
    """
    before, after = plain_digits(segment.before), plain_digits(segment.after)
    words_before, words_after = in_words(before, source), in_words(after, target)
    if not words_after:
        return []
    said, there = {*words_before, *digit_values(before, source)}, {*words_after, *digit_values(after, target)}
    kept = {*(Counter(ordinals(after, target)) - Counter(ordinals(before, source))), *implied(after, target)}
    kept |= {*in_compounds(segment.after, target)}
    kept |= {*in_names(segment.before, source)}
    kept |= {
        1 / rank for rank in (*kept, *ordinals(after, target)) if rank > 2
    }  # the third month, which could be a third
    lost = [value for value in words_before if value != _ONE and value not in there | kept]
    known = {*ordinals(before, source), *in_compounds(segment.before, source), *implied(before, source)}
    known |= {*in_names(segment.before, source), *(said - {_ONE})}
    known |= {1 / value for value in lost if value and _is_by_less(segment, source, target, value)}
    known |= percentages(before, source)
    known |= coins(before, source)
    known |= {value + part for value in said for part in said if part < 1}  # a minute and a half
    known |= {Fraction(100)} if implied(before, source) else set()  # a coin of 25 cents, which are hundreds as well
    known |= set() if language(target).spaced else {_DOZEN}  # the sign of a dozen is also to beat
    counts = (_halves_and_doubles(before, source), _halves_and_doubles(after, target))
    if _is_doubled(*counts) and not implied(before, source) and not _is_by_less(segment, source, target, _TWO):
        return [Violation("numbers", f"half and double are exchanged in {sides(segment)}")]
    elsewhere = {*in_words(original, source)}
    fewer, more = _by_count((before, source), (after, target))
    new = [value for value in words_after if value not in known and (value != _ONE or _whole_part(after, target))]
    again = [value for value in words_after if value in more and 2 < value <= _MOST and value not in kept]
    for other in (*new, *again):
        gone = lost if other in new else [value for value in lost if value in fewer and value.denominator == 1]
        value = next((value for value in gone if value.denominator > 1 or other.denominator == 1), None)
        if value is not None:
            return [Violation("numbers", f"{value} is {other} in {sides(segment)}")]
    for other in new:
        is_known = (
            (other in elsewhere and not words_before)
            or months_named(before, source)
            or other == _listed(before)
            or other in _listed_signs(segment.before)
            or words_after.count(other) <= ordinals(after, target).count(other)
        )
        named = _names_again(after, target, other) and not fewer and (other in elsewhere or other <= _named(original))
        if 2 < other <= _MOST and not is_known and not named:
            return [Violation("numbers", f"{other} came in: {sides(segment)}")]
    return []


def exchanged_ranks(segment: Segment, source: str, target: str) -> list[Violation]:
    """Return a violation where an ordinal of a segment stands nowhere in it, and another one came in: third, fourth."""
    before, after = plain_digits(segment.before), plain_digits(segment.after)
    mine, others = Counter(ordinals(before, source)), Counter(ordinals(after, target))
    said = {*digit_values(before, source), *(1 / value for value in in_words(before, source) if 0 < value < 1)}
    there = {*digit_values(after, target), *(1 / value for value in in_words(after, target) if 0 < value < 1)}
    lost = sorted(rank for rank in mine - others if rank not in {*there, *in_compounds(after, target)})
    new = sorted(rank for rank in others - mine if rank not in said)
    if not lost or not new:
        return []
    return [Violation("numbers", f"what was the {lost[0]}. is the {new[0]}.: {sides(segment)}")]


def _by_count(before: tuple[str, str], after: tuple[str, str]) -> tuple[Counter[Fraction], Counter[Fraction]]:
    """Return the numbers in words that a side says less often than the other says them in any way, and the others."""
    words = [Counter(in_words(*side)) for side in (before, after)]
    both = [counted + Counter(digit_values(*side)) for counted, side in zip(words, (before, after), strict=True)]
    fewer, more = words[0] - both[1], both[1] - both[0]
    return Counter({value: count for value, count in fewer.items() if value != _ONE}), more


def _named(original: str) -> int:
    """Return how many a text names or lists at most: Becky, Jake and Silvia are the three of them."""
    return max(_listed(original), len(set(_CAPITALS.findall(original))))


def _listed(text: str) -> int:
    """Return how many things the longest list of a text has: three of Becky, Jake, and Silvia."""
    return max((len(_LISTED.findall(sentence)) for sentence in text.split(". ")), default=0) + 1


def _listed_signs(text: str) -> set[int]:
    """Return how many signs each list of them has, marked as formulas or compared in one: 4 points P, A, Q and B."""
    lists = (match[0] for match in _SIGNS.finditer(text))
    return {len(_SIGN.findall(listed)) for listed in lists}


def _names_again(text: str, lang: str, value: Fraction) -> bool:
    """Return whether a number in words only names again those counted before: these three, toutes les trois."""
    referring = language(lang).numerals.referring
    return any(
        token.values == {value} and re.search(rf"(?:{referring})\s?\Z", text[: token.start].lower()) is not None
        for token in word_tokens(text, lang)
    )


def _halves_and_doubles(text: str, lang: str) -> tuple[Counter[Fraction], Counter[Fraction]]:
    """Return the numbers in words that must come again, and all of them with halves in digits, each how often."""
    digits = [value for value in digit_values(text, lang) if value == 1 / _TWO]
    return Counter(firm_words(text, lang)), Counter([*in_words(text, lang), *digits])


def _is_doubled(
    before: tuple[Counter[Fraction], Counter[Fraction]], after: tuple[Counter[Fraction], Counter[Fraction]]
) -> bool:
    """Return whether one side says a half that the other does not say in any way, and the other so a double."""

    def more(value: Fraction, here: int) -> bool:
        sides = (before, after)
        return sides[here][0][value] > sides[1 - here][1][value]

    half = 1 / _TWO
    return (more(half, 1) and more(_TWO, 0)) or (more(half, 0) and more(_TWO, 1))


def _is_by_less(segment: Segment, source: str, target: str, value: Fraction) -> bool:
    return said_by_less(segment.before, segment.after, source, target, max(value, 1 / value))


def _whole_part(text: str, lang: str) -> bool:
    """Return whether a text says one as a fraction: three thirds."""
    tokens = word_tokens(text, lang)
    return any(token.values == frozenset({_ONE}) and len(token.text.split()) > 1 for token in tokens)
