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
from collections.abc import Sequence
from fractions import Fraction

from curation.languages.stripping import parts
from curation.languages.translation.numeral_words import months_of
from curation.languages.translation.numerals import (
    NumeralToken,
    in_compounds,
    in_digits,
    in_names,
    in_words,
    plain_digits,
)
from curation.languages.translation.units import DIMENSIONS, is_named, units_with_numbers
from curation.languages.translation.violations import Violation

_LEAST_WORD = 3
"""Number words below it are articles and pronouns in one language or another, and are not asked for."""
_SHOWN = 6
_ONE = Fraction(1)


def numbers(original: str, translated: str, source: str, target: str) -> list[Violation]:
    """Return numbers that are missing, and numbers that came in."""
    before, after = plain_digits(original), plain_digits(translated)
    missing, extra = _unmatched(in_digits(before, source), in_digits(after, target))
    said, now_said = _word_surplus(in_words(before, source), in_words(after, target))
    found: list[Violation] = []
    months, now_months = _months(original, source), _months(translated, target)
    lost = [token.text for token in missing if not _served(token, now_said) and not _served(token, now_months)]
    came = [token.text for token in extra if not _served(token, said) and not _served(token, months)]
    if lost:
        found.append(Violation("numbers", f"missing from the translation: {', '.join(lost[:_SHOWN])}"))
    if came:
        found.append(Violation("numbers", f"not in the original: {', '.join(came[:_SHOWN])}"))
    said, _ = _word_surplus(said, in_names(original, source) + in_compounds(translated, target))
    unsaid = [str(value) for value in said if value >= _LEAST_WORD and value.denominator == 1]
    if unsaid:
        shown = ", ".join(unsaid[:_SHOWN])
        found.append(Violation("numbers", f"written in words in the original, missing from the translation: {shown}"))
    return found


def _unmatched(
    before: Sequence[NumeralToken], after: Sequence[NumeralToken]
) -> tuple[list[NumeralToken], list[NumeralToken]]:
    """Return tokens of either side without a partner of equal value; the surest partners first."""
    free = list(after)
    missing: list[NumeralToken] = []
    for token in sorted(before, key=lambda one: (len(one.values), one.start)):
        partner = next((one for one in free if one.values == token.values), None)
        partner = partner or next((one for one in free if one.values & token.values), None)
        if partner is None:
            missing.append(token)
        else:
            free.remove(partner)
    return _in_pieces(missing, free)


def _in_pieces(missing: list[NumeralToken], extra: list[NumeralToken]) -> tuple[list[NumeralToken], list[NumeralToken]]:
    """Return what is left when ``2,3`` on one side may be ``2, 3`` on the other: two numbers, not a decimal one."""
    for one, other in ((missing, extra), (extra, missing)):
        for token in [token for token in one if "," in token.text]:
            pieces = [frozenset({Fraction(piece)}) for piece in token.text.split(",") if piece.isdigit()]
            partners: list[NumeralToken] = []
            for piece in pieces:
                partner = next((x for x in other if x.values == piece and x not in partners), None)
                partners += [partner] if partner is not None else []
            if pieces and len(partners) == len(pieces):
                one.remove(token)
                for partner in partners:
                    other.remove(partner)
    return missing, extra


def _word_surplus(before: Sequence[Fraction], after: Sequence[Fraction]) -> tuple[list[Fraction], list[Fraction]]:
    """Return numbers in words of either side without an equal on the other."""
    free, left = list(after), []
    for value in before:
        if value in free:
            free.remove(value)
        else:
            left.append(value)
    return left, free


def _served(token: NumeralToken, words: list[Fraction]) -> bool:
    """Return whether a number in words stands for these digits; it is used up by that. An article is no 1.00."""
    if token.values == {_ONE} and not token.text.isdigit():
        return False
    for value in words:
        if value in token.values:
            words.remove(value)
            return True
    return False


def _months(text: str, lang: str) -> list[Fraction]:
    """Return the months named in a text, by their number."""
    low = text.lower()
    return [
        Fraction(number)
        for number, name in enumerate(months_of(lang), 1)
        for _ in re.finditer(rf"(?<![^\W\d_]){name}(?![^\W\d_])", low)
    ]


def units(original: str, translated: str) -> list[Violation]:
    """Return units of the original's numbers that the translation no longer names, and units that came in."""
    before, after = prose_of_units(original), prose_of_units(translated)
    asked, now = units_with_numbers(before), units_with_numbers(after)
    lost = sorted(unit for unit in asked if not is_named(unit, after))
    came = sorted(unit for unit in now if not is_named(unit, before))
    if not lost:
        return []
    swapped = [(unit, other) for unit in lost for other in came if DIMENSIONS[unit] == DIMENSIONS[other]]
    if swapped:
        return [Violation("units", ", ".join(f"{unit} became {other}" for unit, other in swapped))]
    return [Violation("units", f"no longer named: {', '.join(lost)}")]


def prose_of_units(text: str) -> str:
    """Return the text with formulas' dollars taken away, so that they are not taken for money, and ``\\\\$`` made
    plain.
    """
    pieces = [f" {piece} " if is_formula else piece for piece, is_formula in parts(text)]
    return re.sub(r"\\(?:text|mathrm|operatorname|rm)\s*\{?\s*([^{}]*)\}?", r" \1 ", "".join(pieces)).replace("\\", "")
