"""What aligned sentences deny, and what they say of more and less.

    polarity      a sentence that denies still denies, one that does not still does not
    comparisons   more is not less, at least not at most, older not younger

Invariants: pure functions over the words of `Meaning`; formulas are left out.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, lru_cache

from curation.languages.stripping import parts
from curation.languages.vocabulary import language
from curation.translation.meaning_words import matcher
from curation.translation.numerals import in_digits, in_words, word_tokens
from curation.translation.sentences import Segment, sides
from curation.translation.violations import Violation

_NOUGHT = re.compile(r"(?<![\d.,:])0(?![\d:]|[.,]\d)")
"""A nought that is no digit of another number: what most sentences do not have is looked for quickly."""


@dataclass(frozen=True, slots=True)
class Said:
    """What a sentence says of more and less, and how often it denies; ``bounds`` are limits that deny a more."""

    up: int
    down: int
    least: int
    most: int
    bounds: int
    denied: int
    negative: int
    forms: int
    privative: int
    torn: int
    yet: int
    zeros: int
    enough: int
    largest: int
    smallest: int
    smaller: int
    factors: tuple[Fraction | None, ...]


@lru_cache(maxsize=256)
def read(text: str, lang: str) -> Said:
    """Return what a text says, in a language."""
    pieces = parts(text)
    plain = "".join(" " if is_formula else piece for piece, is_formula in pieces).lower().replace("’", "'")
    formulas = " ".join(piece for piece, is_formula in pieces if is_formula)
    plain = plain.replace(" n't", "n't")
    torn, yet = (len(matcher(lang, name).findall(plain)) for name in ("torn", "yet"))
    superlatives = plain
    if any(matcher(lang, name).search(plain) for name in ("largest", "smallest")):
        superlatives = matcher(lang, "at_most").sub(" ; ", matcher(lang, "at_least").sub(" ; ", plain))
    plain = matcher(lang, "idioms").sub(" ", plain)
    plain, least = matcher(lang, "at_least").subn(" ; ", plain)
    limits = matcher(lang, "at_most").finditer(plain)
    bounds = sum(matcher(lang, "negations").search(match[0]) is not None for match in limits)
    plain, most = matcher(lang, "at_most").subn(" ; ", plain)
    largest, smallest = (len(matcher(lang, name).findall(superlatives)) for name in ("largest", "smallest"))
    compared, less = matcher(lang, "less").subn(" ; ", plain)
    affirmed, denied = matcher(lang, "negations").subn(" ; ", plain)
    return Said(
        up=least + len(matcher(lang, "more").findall(compared)),
        down=most + less,
        least=least,
        most=most,
        bounds=bounds,
        denied=denied,
        negative=len(matcher(lang, "negative_words").findall(affirmed)),
        forms=len(matcher(lang, "negative_forms").findall(affirmed)),
        privative=len(matcher(lang, "privative").findall(affirmed)),
        torn=torn,
        yet=yet,
        zeros=_zeros(affirmed, lang) + len(_NOUGHT.findall(formulas)),
        enough=len(matcher(lang, "suffices").findall(compared)),
        largest=largest,
        smallest=smallest,
        smaller=len(matcher(lang, "smaller").findall(plain)),
        factors=tuple(_factor(plain, match, lang) for match in matcher(lang, "times_less").finditer(plain)),
    )


def _zeros(text: str, lang: str) -> int:
    """Return how often a text says nought, in digits or in words."""
    digits = sum(0 in token.values for token in in_digits(text, lang)) if _NOUGHT.search(text) else 0
    return digits + sum(0 in token.values for token in word_tokens(text, lang))


def _factor(text: str, match: re.Match[str], lang: str) -> Fraction | None:
    """Return the number of a factor that makes less, before its word or in it; None where none stands there."""
    numbers = [*in_digits(match[0], lang), *word_tokens(match[0], lang)]
    if not numbers:
        before = text[max(0, match.start() - 16) : match.start()]
        numbers = sorted((*in_digits(before, lang), *word_tokens(before, lang)), key=lambda token: token.start)
    return max(numbers[-1].values) if numbers else None


def _as_limits(mine: Said, other: Said) -> Said:
    """Return what a side says, where its denied more is the other's at most: without spending more, at most as much."""
    limits = min(other.most - mine.most, mine.denied - other.denied)
    if limits <= 0:
        return mine
    return replace(mine, up=mine.up - limits, down=mine.down + limits, denied=mine.denied - limits)


def _both(segment: Segment, source: str, target: str) -> tuple[Said, Said]:
    """Return what both sides of a segment say."""
    before, after = read(segment.before, source), read(segment.after, target)
    return _as_limits(before, after), _as_limits(after, before)


def polarity(segment: Segment, source: str, target: str) -> list[Violation]:
    """Return a violation where one side denies and the other does not, in another word either.

    A word that denies by itself explains no lost negation where the original has such a word as well. Nought denies
    where the other side does not say it: zero points are no points. What one language says once, another may say again.
    """
    before, after = _both(segment, source, target)
    noughts = before.zeros - after.zeros
    denied = before.denied + max(0, noughts)
    if after.torn or denied > after.denied + max(0, -noughts) + max(0, after.negative - before.forms):
        return [Violation("polarity", f"a negation is lost: {sides(segment)}")]
    if after.enough > before.enough and (before.denied > after.denied or before.negative or before.privative):
        return [Violation("polarity", f"what is not enough is: {sides(segment)}")]
    if before.privative > before.denied and not (after.denied or after.negative or after.privative):
        return [Violation("polarity", f"what ends or is lacking does not: {sides(segment)}")]
    if not before.denied and after.denied - after.yet > denied + max(0, before.negative - after.forms):
        return [Violation("polarity", f"a negation came in: {sides(segment)}")]
    return []


@cache
def ranks(lang: str) -> re.Pattern[str]:
    """Return the expression of ordinals that could be parts: the third month, but not the third of something."""
    numerals = language(lang).numerals
    words = "|".join(word for value, listed in numerals.parts.items() if value != "1/2" for word in listed)
    if not (words and numerals.referring and language(lang).spaced):
        return re.compile(r"(?!)")
    return re.compile(rf"(?<![^\W\d_])(?:{numerals.referring}) (?:{words})(?![^\W\d_])(?! of)", re.IGNORECASE)


def _parts_of(text: str, lang: str) -> list[Fraction]:
    """Return the halves, thirds and other numbers below one of a text, in words or as 1/2."""
    text = ranks(lang).sub(" ", text)
    digits = (token for token in in_digits(text, lang) if "/" in token.text)
    said = (*in_words(text, lang), *(value for token in digits for value in token.values))
    return [value for value in said if value < 1]


def comparisons(segment: Segment, source: str, target: str) -> list[Violation]:
    """Return a violation where less came in, or more took the place of less.

    "Four times as many" is said with more in many languages, so more alone may come in; less may only where
    a half, a discount or another such word explains it.
    """
    before, after = _both(segment, source, target)
    parts_before = _parts_of(segment.before, source)
    halved = bool(parts_before)
    if len(after.factors) > len(before.factors):
        known: Counter[Fraction | None] = Counter([*before.factors, *(1 / value for value in parts_before if value)])
        excess = Counter[Fraction | None](factor for factor in after.factors if factor is not None) - known
        if not parts_before or excess:
            return [Violation("comparisons", f"a factor became one of less: {sides(segment)}")]
    if after.down > before.down + (before.smaller if after.up >= before.up else 0):
        return [Violation("comparisons", f"more became less: {sides(segment)}")]
    upper = after.largest + after.most - before.largest - before.most
    lower = after.smallest + after.least - before.smallest - before.least
    if upper * lower < 0:
        return [Violation("comparisons", f"most and least are turned: {sides(segment)}")]
    if before.bounds and after.up and after.down < before.down and not (after.most or after.denied or after.negative):
        return [Violation("comparisons", f"a limit is lost: {sides(segment)}")]
    kept = int(halved and bool(_parts_of(segment.after, target)))  # half as many is the half
    if after.up > before.up and after.down < before.down - kept:
        return [Violation("comparisons", f"less became more: {sides(segment)}")]
    return []
