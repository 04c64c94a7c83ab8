"""The quick tier: integers, fractions and decimals in exact rational arithmetic.

Safe in any process: regular expressions of bounded length, no recursion, no sympy.
"""

from __future__ import annotations

import re
from fractions import Fraction

from curation.languages.vocabulary import languages
from curation.records import Outcome
from curation.verify.answers.policy import AnswerComparison, Rounding, WrittenNumber, compare_rounded
from curation.verify.answers.question import read_question

MAX_QUICK_CHARS = 200
"""Max characters of a string for the quick tier."""

DECIMAL_COMMA_LANGUAGES = frozenset(
    (*(vocab.code for vocab in languages() if vocab.decimal_comma), *"pt nl pl tr cs sv da fi uk".split())
)
"""Languages that write 1,5 for 3/2, in which 1,500 and 1.500 are ambiguous."""

_INTEGER = re.compile(r"-?\d{1,30}")
_PLAIN = re.compile(
    r"\s*\$?\s*(?:(?P<sign>[-+])\s*)?\$?"
    r"(?:(?P<whole>[1-9]\d{0,2}(?:,\d{3})+|\d+)(?:\.(?P<decimals>\d+))?(?:\s?/\s?(?P<denominator>\d+))?"
    r"|\\[dt]?frac\{(?P<top>\d+)\}\{(?P<bottom>\d+)\})"
    r"\s*\.?\s*\$?\s*\.?\s*"
)


def parse_plain_number(text: str, lang: str) -> WrittenNumber | None:
    """Return a text's number if it is a plain one."""
    if len(text) > MAX_QUICK_CHARS or not text.isascii():
        return None
    match = _PLAIN.fullmatch(text)
    if match is None:
        return None
    sign, whole, decimals, denominator, numerator, bottom = match.groups()
    places = None
    if whole is None:
        if int(bottom) == 0:
            return None
        value = Fraction(int(numerator), int(bottom))
    else:
        if lang in DECIMAL_COMMA_LANGUAGES and ("," in whole or (decimals and len(decimals) == 3)):
            return None
        value = Fraction(int(whole.replace(",", "")))
        if decimals is not None:
            if denominator is not None:
                return None
            places = len(decimals)
            value += Fraction(int(decimals), 10**places)
        elif denominator is not None:
            if int(denominator) == 0 or "," in whole:
                return None
            value /= int(denominator)
    return WrittenNumber(-value if sign == "-" else value, places)


def quick_compare(
    reference: str,
    answer: str,
    *,
    lang: str = "en",
    statement: str | None = None,
    rounding: Rounding | None = None,
) -> AnswerComparison | None:
    """Return the quick tier's verdict, or None if it cannot decide.

    Args:
        statement: the problem, which may ask for a rounding.
        rounding: the same, if already read.
    """
    if len(reference) <= 31 and len(answer) <= 31 and _INTEGER.fullmatch(reference) and _INTEGER.fullmatch(answer):
        same = int(reference) == int(answer)
        return AnswerComparison(Outcome.CORRECT if same else Outcome.WRONG, "number", reference, answer, False)
    left = parse_plain_number(reference, lang)
    if left is None:
        return None
    right = parse_plain_number(answer, lang)
    if right is None:
        return None
    if statement and left.value != right.value and not (left.is_exact and right.is_exact):
        rounding = read_question(statement, lang).rounding
    forms = (str(left.value), str(right.value))
    if left.value == right.value:
        return AnswerComparison(Outcome.CORRECT, "number", *forms, False)
    equal, doubtful = compare_rounded(left, right, rounding)
    method = "approximation" if equal else "number"
    return AnswerComparison(Outcome.CORRECT if equal else Outcome.WRONG, method, *forms, doubtful and not equal)
