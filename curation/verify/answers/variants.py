"""What the digits of a text may mean: thousands, decimal commas, lists; and numbers written with their base."""

from __future__ import annotations

import re

from curation.verify.answers.expr import fn, num, sym
from curation.verify.answers.forms import Form, Value
from curation.verify.answers.plain import DECIMAL_COMMA_LANGUAGES
from curation.verify.answers.words import NUMBER_WORDS

_THOUSANDS = re.compile(r"(?<![\d.,])([1-9]\d{0,2}(?:,\d{3})+)(?![\d,]|\.\d*,)")
_POINT_THOUSANDS = re.compile(r"(?<![\d.,])([1-9]\d{0,2}(?:\.\d{3})+)(?![\d.])")
_DECIMAL_COMMA = re.compile(r"(?<![\d,.])(\d+),(\d+)(?![\d,.])")
_LONE_DECIMAL = re.compile(r"[-+]?\d+,(?:\d\d?|\d{4,})")
_LONE_COMMA = re.compile(r"\D*(?:0,\d+|\d+,(?:\d\d|\d{4,}))\D*")
_IN_BASE = re.compile(
    r"\(?(?:\\(?:text|mathrm|mathtt))?\{?([0-9A-F]{1,400})\}?\)?_\s*\{?\(?(?:\\(?:text|mathrm)\{)?\s*(\d{1,2}|[a-z]{3,11})"
    r"\s*\}?\)?\}?"
)
_BASE_NAMES = {**NUMBER_WORDS, "binary": 2, "octal": 8, "decimal": 10, "hexadecimal": 16, "bin": 2, "hex": 16}


def parse_number_in_base(text: str) -> Form | None:
    """Read ``1011_2``, ``(213)_5``, ``2A_{16}`` or ``213_{five}``: digits and their base.

    None for anything else, and where a digit is not one of the base.
    """
    match = _IN_BASE.fullmatch(text)
    if match is None or not any(char.isdigit() for char in match.group(1)):
        return None
    digits, name = match.groups()
    base = int(name) if name.isdigit() else _BASE_NAMES.get(name, 0)
    if not 2 <= base <= 36 or any(int(char, 36) >= base for char in digits):
        return None
    return Value(fn("base", sym(digits.lstrip("0") or "0"), num(base)))


def number_variants(text: str, lang: str) -> list[str]:
    """Return the ways in which the commas and points of numbers may be meant."""
    if "," not in text and lang not in DECIMAL_COMMA_LANGUAGES:
        return [text]
    if lang in DECIMAL_COMMA_LANGUAGES and _LONE_DECIMAL.fullmatch(text):
        return [text.replace(",", ".")]
    closed = _THOUSANDS.sub(lambda match: match.group().replace(",", ""), text)
    decimal = _DECIMAL_COMMA.sub(r"\1.\2", text)
    if lang in DECIMAL_COMMA_LANGUAGES:
        pointless = _POINT_THOUSANDS.sub(lambda match: match.group().replace(".", ""), text)
        options = [_DECIMAL_COMMA.sub(r"\1.\2", pointless), text, closed]
    elif _LONE_COMMA.fullmatch(text):
        options = [closed, decimal, text]
    else:
        options = [closed, text]
    return list(dict.fromkeys(options))
