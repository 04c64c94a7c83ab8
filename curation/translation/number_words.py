"""What the numbers of a text say beside their digits: ordinals, words that imply a number, words that name one again.

A number in words that is gone while another came in was replaced: three for two, a quarter for a third, double for
half. Either alone says nothing, for translations leave words out (a couple) and bring some in (a dozen).

Invariants: pure functions over both whole texts; a half that is now double is no violation where less came in or went:
half as many is two times fewer in other languages.
"""

from __future__ import annotations

import re
from collections import Counter
from fractions import Fraction
from functools import cache

from curation.languages.vocabulary import language
from curation.translation.comparisons import ranks, read
from curation.translation.numeral_words import WORDS
from curation.translation.numerals import in_compounds, in_digits, in_names, in_words, plain_digits, word_tokens
from curation.translation.units import units_mentioned
from curation.translation.violations import Violation

_ONE, _HALF = Fraction(1), Fraction(1, 2)
_QUARTER = Fraction(25)
"""Cents of a coin that is called by its part of a dollar."""


@cache
def _listed(lang: str, field: str) -> tuple[tuple[Fraction, re.Pattern[str]], ...]:
    """Return the expressions of ``ordinals``, ``implied`` or ``like_parts``, each with its value."""
    table: dict[str, str | tuple[str, ...]] = getattr(language(lang).numerals, field)
    bounded = r"(?<![^\W\d_])(?:{})(?![^\W\d_])" if language(lang).spaced else "(?:{})"
    return tuple(
        (Fraction(value), re.compile(bounded.format(words if isinstance(words, str) else "|".join(words))))
        for value, words in table.items()
    )


def ordinals(text: str, lang: str) -> list[Fraction]:
    """Return the values of the ordinals in a text: ``[Fraction(6)]`` of the sixth grade."""
    return [value for value, words in _listed(lang, "ordinals") for _ in words.finditer(text.lower())]


def implied(text: str, lang: str) -> list[Fraction]:
    """Return numbers that a text does not say, but another language may: 25 of a quarter, the coin."""
    return [value for value, words in _listed(lang, "implied") for _ in words.finditer(text.lower())]


def named_again(text: str, lang: str) -> list[Fraction]:
    """Return the numbers that name again what was counted before: ``[Fraction(3)]`` of three boys … the three boys."""
    referring = language(lang).numerals.referring
    if not referring or not language(lang).spaced:
        return []
    words = re.findall(rf"(?<![^\W\d_])(?:{referring}) (\d+|[^\W\d_]+)", text.lower())
    values = [Fraction(word) if word.isdigit() else WORDS[lang].get(word) for word in words]
    said = Counter([*(min(token.values) for token in in_digits(text, lang)), *in_words(text, lang)])
    return [value for value in values if value is not None and said[value] > 1]


def pronouns(text: str, lang: str) -> list[Fraction]:
    """Return the numbers that only stand with a pronoun, and that others leave out: the three of them, who are they."""
    referring, behind = language(lang).numerals.referring, language(lang).numerals.referring_behind
    words = re.findall(rf"(?<![^\W\d_])(?:{referring}) ([^\W\d_]+) (?:{behind})", text.lower()) if behind else []
    return [WORDS[lang][word] for word in words if word in WORDS[lang]]


def replaced_words(original: str, translated: str, source: str, target: str) -> list[Violation]:
    """Return a violation where a number in words is gone and another one came in."""
    before, after = plain_digits(original), plain_digits(translated)
    words_before, words_after = firm_words(before, source), firm_words(after, target)
    said = Counter([*words_before, *digit_values(before, source)])
    there = Counter([*words_after, *digit_values(after, target)])
    ranks_before, ranks_after = Counter(ordinals(before, source)), Counter(ordinals(after, target))
    elsewhere = {_ONE, *(ranks_after - ranks_before), *in_names(original, source)}
    elsewhere |= {*in_compounds(translated, target)}
    lost = [
        value
        for value in dict.fromkeys(words_before)
        if said[value] > there[value] + _ranked(value, ranks_after) and value not in elsewhere
    ]
    known = {_ONE, *(ranks_before - ranks_after), *implied(before, source), *in_names(original, source)}
    known |= {*in_compounds(original, source)}
    known |= percentages(before, source)
    known |= coins(before, source)
    new = [
        value
        for value in dict.fromkeys(words_after)
        if there[value] > said[value] + _ranked(value, ranks_before)
        and value not in known
        and not (said[_HALF] and said[value - _HALF])
    ]
    for value in lost:
        for other in new:
            if value * other != 1 or not said_by_less(original, translated, source, target, max(value, other)):
                return [Violation("numbers", f"{value} of the original is {other} in the translation")]
    return []


def coins(text: str, lang: str) -> set[Fraction]:
    """Return how many quarters a text counts, which are coins as well as parts: two quarters are two coins."""
    names = next((words for value, words in _listed(lang, "implied") if value == _QUARTER), None)
    if names is None:
        return set()
    return {4 * min(token.values) for token in word_tokens(text, lang) if names.search(token.text)}


def percentages(text: str, lang: str) -> set[Fraction]:
    """Return the parts that the percentages of a text are: a quarter of 25 %."""
    ends = {mention.start for mention in units_mentioned(text, lang) if mention.unit == "percent"}
    numbers = (*in_digits(text, lang), *word_tokens(text, lang))
    behind = [(token, token.start + len(token.text)) for token in numbers]
    return {min(token.values) / 100 for token, end in behind if ends & {end, end + 1}}


def new_parts(original: str, translated: str, source: str, target: str) -> list[Violation]:
    """Return a violation for a third, a quarter … that a translation says more often than its original does.

    The original's ordinals count, for they name parts too, and so do its percentages and coins: 25 % is a quarter.
    """
    before, after = plain_digits(original), plain_digits(translated)
    known = Counter([*_small_parts(before, source), *(1 / rank for rank in _ranks_in_digits(before, source))])
    known.update(value / 100 for value in (*digit_values(before, source), *implied(before, source)))
    said = {*in_words(before, source), *digit_values(before, source)}
    known.update(percentages(before, source))
    known.update(1 / value for value in said if value > 2)  # hour three is the third one
    known.update(value for value, words in _listed(source, "like_parts") for _ in words.finditer(before.lower()))
    words = Counter(in_words(before, source))
    for rank, count in Counter(ordinals(before, source)).items():  # sixth-graders, whose sixth is no word for a part
        known[1 / rank] += max(0, count - words[1 / rank])
    parts = Counter(_small_parts(after, target))
    for value in parts:
        if parts[value] > known[value]:
            return [Violation("numbers", f"{value} came in, which the original does not say so often")]
    return []


def _small_parts(text: str, lang: str) -> list[Fraction]:
    """Return the parts of a text but halves: 1/3 and 2/3 of a third and two thirds, in words and in digits."""
    digits = [value for token in in_digits(text, lang) if "/" in token.text for value in token.values]
    return [value for value in (*in_words(text, lang), *digits) if 0 < value < 1 and value != _HALF]


def _ranks_in_digits(text: str, lang: str) -> list[Fraction]:
    """Return the ordinals in digits of a text: 4 of the 4th."""
    suffixes = "|".join(language(lang).dates.day_suffixes)
    return [Fraction(rank) for rank in re.findall(rf"(?<!\d)([3-9]|10)(?:{suffixes})(?!\w)", text) if suffixes]


def firm_words(text: str, lang: str) -> list[Fraction]:
    """Return the numbers in words of a text without those that other languages leave out, such as both."""
    text = ranks(lang).sub(" ", text)
    values = in_words(text, lang)
    if language(lang).spaced:
        loose = language(lang).numerals.loose
        for token in word_tokens(text, lang):
            if token.text.strip() in loose:
                values.remove(*token.values)
    return values


def digit_values(text: str, lang: str) -> list[Fraction]:
    """Return every reading of the numbers in digits of a text."""
    return [value for token in in_digits(text, lang) for value in token.values]


def _ranked(value: Fraction, ranks: Counter[Fraction]) -> int:
    """Return how often a part, which an ordinal also names, is an ordinal in the other text: a third, the third."""
    return ranks[1 / value] if value.numerator == 1 and value.denominator > 2 else 0


def said_by_less(original: str, translated: str, source: str, target: str, factor: Fraction) -> bool:
    """Return whether half as many is two times fewer, or cut into fifths into five parts."""
    if factor > 2:
        return True
    return len(read(translated, target).factors) > len(read(original, source).factors)
