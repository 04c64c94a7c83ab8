"""Decides when a rounded number counts as the number itself.

The statement's ``rounding`` comes first. The other rules count significant digits:

  - two exact numbers must be equal (5042 is not 15840/π), and no decimal approximates an integer reference;
  - exact reference, decimal answer: the answer must be the reference rounded (or cut, from `TRUNCATION_DIGITS` on),
    with `ANSWER_DIGITS`;
  - decimal reference, exact answer: the reference must be the answer rounded, with `REFERENCE_DIGITS`, or
    `FLOAT_DIGITS` for an integer answer;
  - two decimals: the answer must round to the reference, which has `DECIMAL_DIGITS` and no more places;
  - a reference of `FLOAT_DIGITS` is a float's print-out: an answer rounded to `FLOAT_ANSWER_DIGITS` counts;
  - the last digit of a decimal of `PRINT_OUT_DIGITS` may be off by two.

A near number that a rule refuses is WRONG and doubtful.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from curation.records import Outcome

ANSWER_DIGITS = 3
REFERENCE_DIGITS = 3
DECIMAL_DIGITS = 4
TRUNCATION_DIGITS = 4
FLOAT_DIGITS = 10
FLOAT_ANSWER_DIGITS = 5
PRINT_OUT_DIGITS = 15


@dataclass(frozen=True, slots=True)
class Rounding:
    """The rounding that a statement asks for: decimal places, significant digits, or none.

    Example: "to the nearest hundred" is ``Rounding(places=-2)``.
    """

    places: int | None = None
    digits: int | None = None
    exact: bool = False

    def places_of(self, value: Fraction) -> int | None:
        """Return the decimal places to which a number is rounded."""
        if self.digits is None or value == 0:
            return self.places
        size = abs(value)
        power = len(str(size.numerator)) - len(str(size.denominator))
        power -= size < Fraction(10) ** power
        return self.digits - 1 - power


@dataclass(frozen=True, slots=True)
class AnswerComparison:
    """The verdict on a pair, CORRECT or WRONG, by the tier ``method``; review it if ``doubtful``."""

    outcome: Outcome
    method: str
    reference_form: str
    answer_form: str
    doubtful: bool


@dataclass(frozen=True, slots=True)
class WrittenNumber:
    """A number as written: its value, and the decimal places of a decimal.

    Examples: 1/3 is ``WrittenNumber(Fraction(1, 3), None)``, 2.50 is ``WrittenNumber(Fraction(5, 2), 2)``.
    """

    value: Fraction
    places: int | None

    @property
    def significant_digits(self) -> int:
        """Return a decimal's number of significant digits."""
        scaled = abs(self.value) * Fraction(10) ** (self.places or 0)
        return len(str(scaled.numerator // scaled.denominator)) if scaled >= 1 else 0

    @property
    def is_exact(self) -> bool:
        """Return whether it has no decimal point."""
        return self.places is None


def rounds_to(value: Fraction, rounded: WrittenNumber) -> bool:
    """Return whether ``value`` rounded to the digits of ``rounded`` (or cut, if these suffice) equals it."""
    unit = Fraction(1, 10) ** (rounded.places or 0)
    error = abs(value) - abs(rounded.value)
    if (value < 0) != (rounded.value < 0):
        return False
    if rounded.significant_digits >= PRINT_OUT_DIGITS and (value / unit).denominator > 1:
        return abs(error) <= 2 * unit
    return abs(error) <= unit / 2 or (0 <= error < unit and rounded.significant_digits >= TRUNCATION_DIGITS)


def compare_rounded(
    reference: WrittenNumber, answer: WrittenNumber, rounding: Rounding | None = None
) -> tuple[bool, bool]:
    """Return (counts as equal, doubtful) for two different numbers."""
    if rounding is not None:
        decided = _compare_as_asked(reference, answer, rounding)
        if decided is not None:
            return decided
    if reference.is_exact and answer.is_exact:
        return False, False
    if reference.is_exact or (reference.significant_digits >= FLOAT_DIGITS and not answer.is_exact):
        near = rounds_to(reference.value, answer)
        min_digits = ANSWER_DIGITS if reference.is_exact else FLOAT_ANSWER_DIGITS
        if reference.is_exact and reference.value.denominator == 1:
            return False, near
        return near and answer.significant_digits >= min_digits, near
    near = rounds_to(answer.value, reference)
    if answer.is_exact:
        min_digits = FLOAT_DIGITS if answer.value.denominator == 1 else REFERENCE_DIGITS
        return near and reference.significant_digits >= min_digits, near
    if (answer.places or 0) < (reference.places or 0):
        return False, rounds_to(reference.value, answer)
    return near and reference.significant_digits >= DECIMAL_DIGITS, near


def _compare_as_asked(reference: WrittenNumber, answer: WrittenNumber, rounding: Rounding) -> tuple[bool, bool] | None:
    """Return (counts as equal, doubtful) by the statement's rounding, if that decides."""
    doubtful = any(compare_rounded(reference, answer))
    if rounding.exact:
        return (False, doubtful) if not answer.is_exact else None
    places = rounding.places_of(reference.value)
    if places is None:
        return None
    unit = Fraction(10) ** -places
    is_near = abs(reference.value - answer.value) <= unit / 2
    if (answer.value / unit).denominator == 1:
        reference_is_rounded = (reference.value / unit).denominator == 1
        return is_near and not reference_is_rounded, doubtful or is_near
    if (reference.value / unit).denominator == 1 and (reference.places or 0) >= places:
        return is_near and reference.value.denominator > 1, doubtful or is_near
    return None
