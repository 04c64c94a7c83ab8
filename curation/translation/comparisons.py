"""What aligned sentences deny, and what they say of more and less.

    polarity      a sentence that denies still denies, one that does not still does not
    comparisons   more is not less, at least not at most, older not younger

Invariants: pure functions over the words of `Meaning`; formulas are left out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from curation.languages.stripping import parts
from curation.languages.vocabulary import language
from curation.translation.numerals import in_digits, in_words
from curation.translation.sentences import Segment, sides
from curation.translation.violations import Violation


@cache
def _matcher(lang: str, name: str) -> re.Pattern[str]:
    """Return one expression of a list of `Meaning`, the longest alternatives first."""
    listed = getattr(language(lang).meaning, name)
    if not listed:
        return re.compile(r"(?!)")
    alternatives = "|".join(sorted(listed, key=len, reverse=True))
    return re.compile(rf"(?<![^\W_])(?:{alternatives})(?![^\W_])" if language(lang).spaced else f"(?:{alternatives})")


@dataclass(frozen=True, slots=True)
class Said:
    """What a sentence says of more and less, and how often it denies."""

    up: int
    down: int
    denied: int
    negative: int
    forms: int
    smaller: int
    factors: int


@cache
def read(text: str, lang: str) -> Said:
    """Return what a text says, in a language."""
    plain = "".join(" " if is_formula else piece for piece, is_formula in parts(text)).lower().replace("’", "'")
    plain = _matcher(lang, "idioms").sub(" ", plain)
    plain, least = _matcher(lang, "at_least").subn(" ; ", plain)
    plain, most = _matcher(lang, "at_most").subn(" ; ", plain)
    compared, less = _matcher(lang, "less").subn(" ; ", plain)
    affirmed, denied = _matcher(lang, "negations").subn(" ; ", plain)
    factors = len(_matcher(lang, "times_less").findall(plain))
    return Said(
        up=least + len(_matcher(lang, "more").findall(compared)),
        down=most + less,
        denied=denied,
        negative=len(_matcher(lang, "negative_words").findall(affirmed)),
        forms=len(_matcher(lang, "negative_forms").findall(affirmed)),
        smaller=len(_matcher(lang, "smaller").findall(plain)),
        factors=factors,
    )


def polarity(segment: Segment, source: str, target: str) -> list[Violation]:
    """Return a violation where one side denies and the other does not, in another word either.

    A word that denies by itself explains no lost negation where the original has such a word as well.
    """
    before, after = read(segment.before, source), read(segment.after, target)
    if before.denied > after.denied + max(0, after.negative - before.forms):
        return [Violation("polarity", f"a negation is lost: {sides(segment)}")]
    if after.denied > before.denied + max(0, before.negative - after.forms):
        return [Violation("polarity", f"a negation came in: {sides(segment)}")]
    return []


def _has_part(text: str, lang: str) -> bool:
    """Return whether a text has a half, a third or another number below one, in words or as 1/2."""
    digits = (token for token in in_digits(text, lang) if "/" in token.text)
    return any(value < 1 for value in (*in_words(text, lang), *(value for token in digits for value in token.values)))


def comparisons(segment: Segment, source: str, target: str) -> list[Violation]:
    """Return a violation where less came in, or more took the place of less.

    "Four times as many" is said with more in many languages, so more alone may come in; less may only where
    a half, a discount or another such word explains it.
    """
    before, after = read(segment.before, source), read(segment.after, target)
    halved = _has_part(segment.before, source)
    if after.factors > before.factors and not halved:
        return [Violation("comparisons", f"a factor became one of less: {sides(segment)}")]
    if after.down > before.down + (before.smaller if after.up >= before.up else 0):
        return [Violation("comparisons", f"more became less: {sides(segment)}")]
    kept = int(halved and _has_part(segment.after, target))  # half as many is the half
    if after.up > before.up and after.down < before.down - kept:
        return [Violation("comparisons", f"less became more: {sides(segment)}")]
    return []
