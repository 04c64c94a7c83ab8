"""The numbers of a text, each with what it stands with: its unit, or the noun that it counts.

A number that keeps its unit or its noun is still what it was, wherever it stands. Units are `units`', with factors (3
times), shares of each (in each of 16 blocks), ratios (2:3) and fractions as units of their own; nouns are those that
`Meaning.counted` names in every language.

Invariants: pure functions over prose and formulas that are a number alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from curation.languages.stripping import parts
from curation.languages.vocabulary import language
from curation.translation.numeral_words import months_of
from curation.translation.numerals import NumeralToken, in_digits, plain_digits, scale_end, word_tokens
from curation.translation.quantities import prose_of_units
from curation.translation.units import UnitMention, units_mentioned
from curation.translation.word_pairs import NOTHING, Around

_NUMBER = re.compile(r"[\d.,\s{}/]+(?:\\%)?")
_DISPLAYED = re.compile(
    r"\$\$.*?\$\$|\\\[.*?\\\]|\\\(.*?\\\)|\\begin\s*\{(\w+\*?)\}.*?\\end\s*\{\1\}|```.*?```|`[^`\n]+`", re.DOTALL
)
_YEAR = re.compile(r"(?:19|20)\d\d")
_OF_A_NAME = re.compile(r"\s(?:[A-Z]{3}|[A-Z][a-z]+ [A-Z])")
"""What stands behind the year of a contest: 2017 AMC, 2007 Math Kangaroo."""
_CURRENCIES = "$€£¢"
_BLANKS = " \u00a0\u202f-个"
"""What may stand between a number and its unit."""


@dataclass(frozen=True, slots=True)
class TiedNumber:
    """A number in digits, the values that it may have, the unit that it stands with, the noun that it counts, its role,
    the kinds of the subordinate clauses that it stands in, and the text around it up to the next numbers.

    Example: ``TiedNumber("5", frozenset({Fraction(5)}), None, "box")`` of ``5 boxes``
    """

    text: str
    values: frozenset[Fraction]
    unit: str | None
    noun: str | None = None
    role: str | None = None
    clauses: frozenset[str] = frozenset()
    around: Around = NOTHING

    @property
    def tie(self) -> str | None:
        """Return the role, unit and noun that tell a number from others; None where it has none."""
        if self.role == "year of a date":
            return self.role
        kept = [word for word in (self.role, self.thing) if word]
        return " ".join(kept) or None

    @property
    def thing(self) -> str | None:
        """Return the unit or noun alone, for a role that only one language says."""
        return self.unit or (f"counted {self.noun}" if self.noun else None)


def tied_numbers(text: str, lang: str, spelt: frozenset[Fraction] = frozenset()) -> list[TiedNumber]:
    """Return the numbers in digits of a text but ordinals, in order, with what stands behind or before each.

    Args:
        spelt: values of which numbers in words are returned, too.
    """
    plain = prose_of_units(plain_digits(without_terms(text)))
    mentions = units_mentioned(plain, lang)
    tied: list[TiedNumber] = []
    clauses = _clauses(plain, lang)
    words = [token for token in word_tokens(plain, lang) if token.values <= spelt] if spelt else []
    tokens = sorted((*in_digits(plain, lang), *words), key=lambda token: token.start)
    ends = [0, *(token.start + len(token.text) for token in tokens)]
    starts = [*(token.start for token in tokens[1:]), len(plain)]
    for at, token in enumerate(tokens):
        end = scale_end(plain, token.start + len(token.text))
        if _ordinal(lang).match(plain, end):
            continue
        unit = _unit(plain, token.start, end, lang, mentions)
        noun = _noun(plain, end, lang) if unit is None else None
        unit = unit or ("fraction" if "/" in token.text else None)
        role = _role(plain, token, end, lang, unit, mentions)
        within = frozenset(kind for start, last, kind in clauses if start <= token.start < last)
        around = Around(plain[ends[at] : token.start], plain[ends[at + 1] : starts[at]])
        tied.append(TiedNumber(token.text, token.values, unit, noun, role, within, around))
    return tied


def _clauses(text: str, lang: str) -> list[tuple[int, int, str]]:
    """Return the subordinate clauses of a text: where each begins and ends, and its kind."""
    low = text.lower()
    kinds = language(lang).meaning.clauses.items()
    return [(*match.span(), kind) for kind, words in kinds for match in re.finditer(words, low)]


@cache
def _ordinal(lang: str) -> re.Pattern[str]:
    """Return the expression of the letters that make a number in digits an ordinal, which counts nothing: 6th."""
    letters = [suffix for suffix in language(lang).dates.day_suffixes if suffix.isalpha()]
    return re.compile(rf"(?:{'|'.join(letters)})(?![^\W_])" if letters else r"(?!)")


def _unit(text: str, start: int, end: int, lang: str, mentions: Sequence[UnitMention]) -> str | None:
    unit = next((one.unit for one in mentions if _before(text, start, one)), None)
    unit = unit or next((one.unit for one in mentions if _behind(text, end, one)), None)
    if unit is None and _times(lang).match(text, end):
        return "times"
    if unit is None and (re.match(r"\s?[:：]\s?\d", text[end:]) or re.search(r"\d\s?[:：]\s?\Z", text[:start])):
        return "ratio"
    if unit is None and _counts_each(text, start, end, lang):
        return "each"
    return unit


def _role(
    text: str, token: NumeralToken, end: int, lang: str, unit: str | None, mentions: Sequence[UnitMention]
) -> str | None:
    """Return whether a number is a year's, a rate (8 feet per minute) or what each share is of (every 8 children)."""
    meaning, spaced = language(lang).meaning, language(lang).spaced
    is_year = _YEAR.fullmatch(token.text) is not None
    if is_year and (
        unit == "year" or (unit is None and (_is_dated(text, token.start, lang) or _OF_A_NAME.match(text, end)))
    ):
        return "year of a date"
    before = text[max(0, token.start - 24) : token.start].lower()
    bound = r"(?<![^\W\d_])(?:{})\s[$€£]?\Z" if spaced else r"(?:{})\Z"
    is_than = re.search(bound.format(meaning.than), before) is not None
    if is_than and unit is None:
        return "than"
    if re.search(bound.format(meaning.every), before):
        return "every"
    is_rank = not spaced and text[: token.start].endswith(language(lang).meaning.rank)
    if unit is None and (is_rank or _label(lang, text, token.start)):
        return "label"
    mention = next((one for one in mentions if one.unit == unit and one.start >= end - 1), None)
    is_price = any(_before(text, token.start, one) for one in mentions)
    if unit is None:
        return "rate" if _counted_rate(text, token.start, end, lang) else None
    is_rate = (mention is not None or is_price) and _is_rate(text, token.start, end, mention, is_price, lang)
    return "rate" if is_rate else "than" if is_than else None


def _is_rate(text: str, start: int, end: int, mention: UnitMention | None, is_price: bool, lang: str) -> bool:
    """Return whether a number with its unit is measured by another: 8 feet per minute, $5 each."""
    per = language(lang).meaning.per
    last = end if is_price or mention is None else mention.end
    behind = text[last : last + 24].lower()
    if language(lang).spaced:
        return re.match(rf"\s?(?:{per})(?:[\s.,;?!]|\Z|(?<=[/'’]))", behind) is not None
    if re.match(rf"(?:{per})", behind):
        return True
    return re.search(rf"(?:{per})\d{{0,4}}[^，。,\d]{{1,5}}\Z", text[max(0, start - 24) : start].lower()) is not None


def _is_dated(text: str, start: int, lang: str) -> bool:
    """Return whether a year stands behind a month, or a short word as in 2020: a number of things seldom does."""
    before = text[max(0, start - 24) : start]
    if not language(lang).spaced:
        return False
    months = "|".join(months_of(lang))
    return re.search(rf"(?:^|[\s(])(?:[^\W\d_]{{1,3}}|(?:{months})\.?)\s\Z", before, re.IGNORECASE) is not None


@cache
def _labels(lang: str) -> re.Pattern[str]:
    """Return the expression of the word right before a number, and of the two characters where words run together."""
    return re.compile(r"(?<![^\W\d_])([^\W\d_]{4,})\s\Z" if language(lang).spaced else r"([\u3400-\u9fff]{2})\s?\Z")


def _label(lang: str, text: str, start: int) -> bool:
    """Return whether a number is a name of its own: house 1 … house 2, where the same word stands before another."""
    match = _labels(lang).search(text[:start])
    if match is None:
        return False
    gap = r"\s" if language(lang).spaced else r"\s?"
    return len(set(re.findall(rf"(?<![^\W\d_]){re.escape(match[1])}{gap}(\d+)(?!\d)", text))) > 1 or (
        not language(lang).spaced and len(set(re.findall(rf"{re.escape(match[1])}(\d+)", text))) > 1
    )


def _counted_rate(text: str, start: int, end: int, lang: str) -> bool:
    """Return whether a number counts things by a measure: 4 sit-ups per minute, 每分钟4个."""
    per = language(lang).meaning.per
    if language(lang).spaced:
        return bool(re.match(rf"[\s-](?:[^\W\d_][\w-]*\s)(?:in )?(?:{per})\s", text[end : end + 40].lower()))
    return bool(re.search(rf"(?:{per})[^，。,\d]{{1,5}}\Z", text[max(0, start - 8) : start]))


def _counts_each(text: str, start: int, end: int, lang: str) -> bool:
    """Return whether a number says of how many each is meant: in each of 16 blocks."""
    if language(lang).spaced:
        return bool(re.search(rf"(?:{language(lang).meaning.each_of})\Z", text[:start].lower()))
    return bool(re.match(language(lang).meaning.each_of, text[end:]))


@cache
def _times(lang: str) -> re.Pattern[str]:
    """Return the expression of a word that makes the number before it a factor."""
    return re.compile(
        rf"[\s-]?(?:{'|'.join(language(lang).meaning.times)})(?![^\W_])"
        if language(lang).spaced
        else rf"\s?(?:{'|'.join(language(lang).meaning.times)})",
        re.IGNORECASE,
    )


@cache
def _nouns(lang: str) -> tuple[re.Pattern[str], tuple[str, ...]]:
    """Return the expression of a counted noun behind a number, one word between at most, and the noun of each group."""
    counted = language(lang).meaning.counted
    groups = "|".join(f"({'|'.join(words)})" for words in counted.values())
    if language(lang).spaced:
        return re.compile(rf"[\s-](?:[^\W\d_]+\s)?(?:{groups})(?![^\W\d_])", re.IGNORECASE), tuple(counted)
    return re.compile(rf"\s?[{language(lang).meaning.measures}]?[^\W\d_]{{0,2}}?(?:{groups})"), tuple(counted)


def _noun(text: str, end: int, lang: str) -> str | None:
    expression, nouns = _nouns(lang)
    match = expression.match(text, end)
    return nouns[(match.lastindex or 1) - 1] if match else None


def without_terms(text: str) -> str:
    """Return a text without its formulas but those that are a number: what stands in formulas is compared there."""
    pieces = (
        piece if not is_formula else f" {piece} " if _NUMBER.fullmatch(piece.strip()) else " "
        for piece, is_formula in parts(_DISPLAYED.sub(_undisplayed, text))
    )
    return "".join(pieces)


def _undisplayed(match: re.Match[str]) -> str:
    """Return a displayed formula as prose where it is a number alone: $$16$$ marbles."""
    shown = match[0].strip("$ ")
    return f" {shown} " if _NUMBER.fullmatch(shown) and shown[:1].isdigit() else " "


def _before(text: str, start: int, mention: UnitMention) -> bool:
    """Return whether a currency's sign stands directly before a number."""
    return mention.end <= start and not text[mention.end : start].strip() and _is_sign(text, mention)


def _is_sign(text: str, mention: UnitMention) -> bool:
    """Return whether a unit is a currency's sign, which stands before its number: $ or Rs."""
    return text[mention.end - 1] in _CURRENCIES or text[mention.start : mention.start + 2].lower() == "rs"


def _behind(text: str, end: int, mention: UnitMention) -> bool:
    """Return whether a unit stands directly behind a number, or with one word between if it is a word itself.

    A currency's sign before a number is that number's: one $50 bill.
    """
    if mention.start < end or (_is_sign(text, mention) and text[mention.end : mention.end + 2].strip()[:1].isdigit()):
        return False
    between = text[end : mention.start]
    if not between.strip(_BLANKS):
        return True
    return text[mention.end - 1] not in _CURRENCIES and re.fullmatch(r"[\s-][^\W\d_]{1,12}[\s-]", between) is not None
