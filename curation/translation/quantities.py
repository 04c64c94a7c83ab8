"""Whether a translation has the numbers and units of its original.

A number in digits must be there again, in digits of any of the languages' styles or in words; a number in words that
is three or more must be there again, in words, in digits, or inside a word (``sechsseitig``); those of names (Sally
Four) need not. Numbers are counted: one that stands twice must stand twice.
What the original writes in words may be in digits in the translation and the other way round, but a word serves once.

Units are compared where they stand with a number or an amount of money: each must be named again, and no other of its
dimension may come in.

Invariants: pure functions; no number is converted (a mile that became 1.6 km is another problem).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

from curation.languages.stripping import parts
from curation.languages.vocabulary import language
from curation.translation.comparisons import read
from curation.translation.number_words import firm_words, implied, named_again, ordinals, percentages, pronouns
from curation.translation.numeral_words import months_of
from curation.translation.numerals import NumeralToken, in_compounds, in_digits, in_names, in_words, plain_digits
from curation.translation.units import DIMENSIONS, is_named, units_with_numbers
from curation.translation.violations import Violation

_LEAST_WORD = 3
"""Number words below it are articles and pronouns in one language or another, and are not asked for."""
_SHOWN = 6
_QUOTED = re.compile(r"(?<![^\s(])\"([^\W\d_][^\"\n]{0,80})\"")
"""A quotation, whose closing mark is no sign of inches."""
_HOLIDAY = re.compile(r"4(?:th)? of July")
_ONE, _HALF = Fraction(1), Fraction(1, 2)


def numbers(original: str, translated: str, source: str, target: str) -> list[Violation]:
    """Return violations for numbers that are missing, and for numbers that came in."""
    before, after = plain_digits(original), plain_digits(translated)
    violations: list[Violation] = []
    missing, extra = _unmatched(in_digits(before, source), in_digits(after, target))
    all_before, all_after = in_words(before, source), in_words(after, target)
    words_before, words_after = _word_surplus(all_before, all_after)
    words_after += _taken_by_loose(before, source, all_before, all_after)
    months_before, months_after = months_named(original, source), months_named(translated, target)
    ranks_before, ranks_after = _word_surplus(ordinals(before, source), ordinals(after, target))
    again = [value for value in named_again(before, source) if value in (*all_after, *_values(after, target))]
    missing, extra = _said_together(missing, extra, {*all_before, *_values(before, source)}, before)
    if read(translated, target).factors:  # 1/3 as many is three times fewer
        whole = (token for token in in_digits(after, target) if "/" not in token.text)
        divisors = {*all_after, *(value for token in whole for value in token.values)}
        less = [token for token in missing if token.values & {1 / value for value in divisors if value > 1}]
        extra = [token for token in extra if not token.values & {1 / value for one in less for value in one.values}]
        missing = [token for token in missing if token not in less]
    if not language(target).answers.articles:
        missing = [token for token in missing if token.text != "1"]
    missing = [token for token in missing if not _is_in_name(token, before, _values(after, target))]
    missing, words_before = _as_parts(missing, words_before, before, source, {*all_after, *_values(after, target)})
    ranks_after += in_compounds(translated, target)
    ranks_after += [1 / value for value in words_after if value and _is_ordinal(1 / value, before, source)]
    if read(original, source).factors:  # three times fewer are a third
        ranks_after += [1 / value for value in words_after if 0 < value < _HALF]
    missing_texts = [
        token.text
        for token in missing
        if not _adds_half(token, all_after)
        and not any(_take_match(token, values) for values in (words_after, months_after, ranks_after, again))
    ]
    hints = implied(before, source)
    extra_texts = [
        token.text
        for token in extra
        if token.text != "1"
        and not any(_take_match(token, values) for values in (words_before, months_before, ranks_before, hints))
        and not _adds_half(token, all_before)
    ]
    if not missing_texts:  # what is only said once more is no other number
        said = {*all_before, *_values(before, source)}
        extra_texts = [token.text for token in extra if token.text in extra_texts and not token.values & said]
    if missing_texts:
        violations.append(Violation("numbers", f"missing from the translation: {', '.join(missing_texts[:_SHOWN])}"))
    if extra_texts:
        violations.append(Violation("numbers", f"not in the original: {', '.join(extra_texts[:_SHOWN])}"))
    words_before, _ = _word_surplus(
        words_before,
        in_names(original, source) + in_compounds(translated, target) + ranks_after + again + pronouns(before, source),
    )
    there = {*all_after, *_values(after, target)}  # said twice, it may be said once
    unmatched = [
        str(value)
        for value in words_before
        if value >= _LEAST_WORD and value.denominator == 1 and not (value in there and all_before.count(value) > 1)
    ]
    if unmatched:
        listed = ", ".join(unmatched[:_SHOWN])
        violations.append(
            Violation("numbers", f"written in words in the original, missing from the translation: {listed}")
        )
    return violations


def _taken_by_loose(text: str, lang: str, before: Sequence[Fraction], after: Sequence[Fraction]) -> list[Fraction]:
    """Return the numbers in words that would stand for both or a pair alone, and may stand for digits as well."""
    loose = Counter(before) - Counter(firm_words(text, lang))
    return [value for value, count in loose.items() for _ in range(min(count, after.count(value)))]


def _is_in_name(token: NumeralToken, text: str, there: Sequence[Fraction]) -> bool:
    """Return whether digits are a part of a name that comes again, such as mp3, or of a holiday."""
    glued = text[max(0, token.start - 1) : token.start].isalpha() and any(value in there for value in token.values)
    return glued or _HOLIDAY.match(text, token.start) is not None


def _as_parts(
    missing: list[NumeralToken], words: list[Fraction], text: str, lang: str, there: set[Fraction]
) -> tuple[list[NumeralToken], list[Fraction]]:
    """Return what is left of missing numbers when a percentage may be said as a part: 25 % as a quarter."""
    parts_said = percentages(text, lang) & there
    kept = [token for token in missing if not any(value / 100 in parts_said for value in token.values)]
    return kept, [value for value in words if value / 100 not in parts_said]


def _is_ordinal(value: Fraction, text: str, lang: str) -> bool:
    """Return whether a number is written as an ordinal in digits: a 5th."""
    suffixes = "|".join(language(lang).dates.day_suffixes)
    return bool(suffixes) and re.search(rf"(?<!\d){value}(?:{suffixes})(?!\w)", text) is not None


def _said_together(
    missing: list[NumeralToken], extra: list[NumeralToken], said: set[Fraction], text: str
) -> tuple[list[NumeralToken], list[NumeralToken]]:
    """Return what is left when 1 1/2, or 2 and a half, may be 1.5 or 2.5, and $0.20 be 20 cents."""
    for token in list(extra):
        (value, *_) = sorted(token.values)
        whole, part = Fraction(int(value)), value - int(value)
        pieces = [next((one for one in missing if one.values == {piece}), None) for piece in (whole, part)]
        if part and part in said and (whole in said or not whole):
            extra = [one for one in extra if one is not token]
            missing = [one for one in missing if one not in pieces]
        else:
            cents = next((one for one in missing if one.values & {value / 100, value * 100}), None)
            if cents is not None and re.search(r"[$€£¢]|cents?\b", text):
                extra = [one for one in extra if one is not token]
                missing = [one for one in missing if one is not cents]
    return missing, extra


def _values(text: str, lang: str) -> list[Fraction]:
    return [value for token in in_digits(text, lang) for value in token.values]


def _adds_half(token: NumeralToken, words: Sequence[Fraction]) -> bool:
    """Return whether a text says a number in words as so many and a half."""
    return _HALF in words and any((value - _HALF).denominator == 1 for value in token.values)


def _unmatched(
    before: Sequence[NumeralToken], after: Sequence[NumeralToken]
) -> tuple[list[NumeralToken], list[NumeralToken]]:
    """Return the tokens of either side without a partner of equal value; the surest partners are matched first."""
    free = list(after)
    missing: list[NumeralToken] = []
    alike = Counter(token.text for token in before) & Counter(token.text for token in after)
    for token in sorted(
        before,
        key=lambda candidate: (
            candidate.text == "1",
            len(candidate.values),
            candidate.text not in alike,
            candidate.start,
        ),
    ):
        partner = next(
            (candidate for candidate in free if (candidate.text, candidate.values) == (token.text, token.values)), None
        )
        partner = partner or next((candidate for candidate in free if candidate.values == token.values), None)
        partner = partner or next((candidate for candidate in free if candidate.values & token.values), None)
        if partner is None:
            missing.append(token)
        else:
            free.remove(partner)
    return _in_pieces(missing, free)


def _in_pieces(missing: list[NumeralToken], extra: list[NumeralToken]) -> tuple[list[NumeralToken], list[NumeralToken]]:
    """Return what is left when ``2,3`` on one side may be ``2, 3`` on the other: two numbers, not a decimal one."""
    for mine, theirs in ((missing, extra), (extra, missing)):
        for token in [token for token in mine if "," in token.text]:
            pieces = [frozenset({Fraction(piece)}) for piece in token.text.split(",") if piece.isdigit()]
            partners: list[NumeralToken] = []
            for piece in pieces:
                partner = next(
                    (candidate for candidate in theirs if candidate.values == piece and candidate not in partners), None
                )
                partners += [partner] if partner is not None else []
            if pieces and len(partners) == len(pieces):
                mine.remove(token)
                for partner in partners:
                    theirs.remove(partner)
    return missing, extra


def _word_surplus(before: Sequence[Fraction], after: Sequence[Fraction]) -> tuple[list[Fraction], list[Fraction]]:
    """Return numbers in words of either side without an equal on the other. A one, which may be an article, stays."""
    free, surplus = list(after), []
    for value in before:
        if value in free and value != _ONE:
            free.remove(value)
        else:
            surplus.append(value)
    return surplus, free


def _take_match(token: NumeralToken, words: list[Fraction]) -> bool:
    """Return whether a number in words stands for these digits, and remove it from ``words``. An article is no 1.00."""
    if token.values == {_ONE} and not token.text.isdigit():
        return False
    for value in words:
        if value in token.values:
            words.remove(value)
            return True
    return False


def months_named(text: str, lang: str) -> list[Fraction]:
    """Return the months named in a text, by their number."""
    low = text.lower()
    return [
        Fraction(number)
        for number, name in enumerate(months_of(lang), 1)
        for _ in re.finditer(rf"(?<![^\W\d_]){name}(?![^\W\d_])", low)
    ]


def units(original: str, translated: str, source: str, target: str) -> list[Violation]:
    """Return a violation for units of the original's numbers that the translation no longer names, or exchanged."""
    before, after = prose_of_units(original), prose_of_units(translated)
    units_before, units_after = units_with_numbers(before, source), units_with_numbers(after, target)
    missing = sorted(unit for unit in units_before if not is_named(unit, after, target))
    if is_named("cent", after, target):  # $0.20 may be 20 cents
        missing = [unit for unit in missing if unit not in ("dollar", "euro")]
    if "pound" in units_after and not is_named("pound", before, source):  # pounds may be money
        missing = [unit for unit in missing if unit != "lb"]
    extra = sorted(unit for unit in units_after if not is_named(unit, before, source))
    if not missing:
        return []
    swapped = [(unit, other) for unit in missing for other in extra if DIMENSIONS[unit] == DIMENSIONS[other]]
    if swapped:
        return [Violation("units", ", ".join(f"{unit} became {other}" for unit, other in swapped))]
    return [Violation("units", f"no longer named: {', '.join(missing)}")]


def prose_of_units(text: str) -> str:
    """Take the dollars of formulas away, so that they are not read as money, and make ``\\\\$`` plain."""
    pieces = [f" {piece} " if is_formula else _QUOTED.sub(r"\1 ", piece) for piece, is_formula in parts(text)]
    return re.sub(r"\\(?:text|mathrm|operatorname|rm)\s*\{?\s*([^{}]*)\}?", r" \1 ", "".join(pieces)).replace("\\", "")
