"""Reads one value: an expression, its unit, sign or base, and its commas and points."""

from __future__ import annotations

import re
from fractions import Fraction

from curation.languages.vocabulary import languages
from curation.verify.answers.expr import Expr, const, fn, mul, neg, num, sym
from curation.verify.answers.forms import Form, Value
from curation.verify.answers.grammar import parse_expression
from curation.verify.answers.plain import DECIMAL_COMMA_LANGUAGES
from curation.verify.answers.tokens import CLOSERS, OPENERS, AnswerParseError, Token
from curation.verify.answers.units import conversion_factor, is_counted_thing, is_known, is_unit, normalise_unit
from curation.verify.answers.words import BASE_NAMES, parse_number_words

_SCALES = {
    word: Fraction(value)
    for vocab in languages()
    for table in (vocab.answers.scales, vocab.numerals.parts)
    for value, words in table.items()
    for word in words
}
_UNIT_KINDS = frozenset(("text", "word", "sym", "num"))
_UNIT_SIGNS = frozenset(("^", "/", "*", ".", "{", "}", "-", "%", "°", "(", ")", "money", "space"))
_THOUSANDS = re.compile(r"(?<![\d.,])([1-9]\d{0,2}(?:,\d{3})+)(?![\d,]|\.\d*,)")
_POINT_THOUSANDS = re.compile(r"(?<![\d.,])([1-9]\d{0,2}(?:\.\d{3})+)(?![\d.])")
_DECIMAL_COMMA = re.compile(r"(?<![\d,.])(\d+),(\d+)(?![\d,.])")
_LONE_DECIMAL = re.compile(r"[-+]?\d+,(?:\d\d?|\d{4,})")
_LONE_COMMA = re.compile(r"\D*(?:0,\d+|\d+,(?:\d\d|\d{4,}))\D*")
_IN_BASE = re.compile(
    r"\(?(?:\\(?:text|mathrm|mathtt))?\{?([0-9A-F]{1,400})\}?\)?_\s*\{?\(?(?:\\(?:text|mathrm)\{)?\s*(\d{1,2}|[a-z]{3,11})"
    r"\s*\}?\)?\}?"
)


def parse_value(tokens: list[Token]) -> Value:
    """Return an expression with its known unit or counted thing. Raises `AnswerParseError`."""
    at = _unit_start(tokens)
    if at is None:
        at = len(tokens)
    number, unit_tokens = tokens[:at], tokens[at:]
    number_positions = frozenset(token.at for token in number)
    unit_positions = frozenset(token.at for token in unit_tokens)
    while number and number[-1].text in ("space", "-", "*") and number[-1].kind == "op" and unit_tokens:
        number = number[:-1]
    unit = "".join(f" {token.text}" if token.kind in ("text", "word") else token.text for token in unit_tokens)
    sign = ""
    if number and number[-1].text == "%" and len(number) > 1:
        number, sign = number[:-1], "%"
    degrees = _strip_degrees(number) if not any(token.kind == "fun" for token in number) else None
    if degrees is not None:
        number, sign = degrees, "deg"
    if not number:
        raise AnswerParseError("a unit without a number")
    value = _expression(number)
    spelled = parse_number_words(unit.strip(" ()")) if unit.strip() else None
    if spelled is not None and num(spelled) == value:
        return Value(value, sign, number_positions | unit_positions)
    share_of = unit.strip().lower().removeprefix("per ")
    if sign == "%" and (is_counted_thing(share_of) or (share_of != unit.strip() and is_unit(share_of))):
        return Value(value, f"% {unit.strip().lower()}", number_positions | unit_positions)
    scale, unit = _split_scale(unit)
    unit = sign + unit.strip().lower() if sign == "deg" else sign + unit
    unit = normalise_unit(unit) if unit.strip() else ""
    if not is_known(unit) and not (is_counted_thing(unit) and not sign):
        return Value(value, sign, number_positions)
    return Value(mul(value, num(scale)) if scale != 1 else value, unit, number_positions | unit_positions)


def _split_scale(unit: str) -> tuple[Fraction, str]:
    """Split a scale word from a unit: "million dollars" is 10⁶ and "dollars"."""
    first, _, rest = unit.strip().partition(" ")
    factor = _SCALES.get(first.lower(), 1)
    return (Fraction(factor), rest) if factor != 1 else (Fraction(1), unit)


def parse_compound(tokens: list[Token]) -> Value | None:
    """Read "1 hour 30 minutes" or "5 ft 6 in" in the last unit."""
    tokens = [token for token in tokens if token.text != "and" or token.kind != "op"]
    if len(tokens) not in (4, 6) or any(token.kind != "num" for token in tokens[::2]):
        return None
    if any(
        token.kind not in ("word", "text", "sym", "fun") or not is_unit(token.text.strip()) for token in tokens[1::2]
    ):
        return None
    units = [normalise_unit(token.text) for token in tokens[1::2]]
    factors = [conversion_factor(unit, units[-1]) for unit in units]
    numbers = [parse_expression([token]) for token in tokens[::2]]
    sizes = [factor for factor in factors if factor is not None]
    if len(sizes) < len(units) or sizes != sorted(set(sizes), reverse=True):
        return None
    total = sum(number.value * size for number, size in zip(numbers, sizes, strict=True))
    return Value(num(total), units[-1], frozenset(token.at for token in tokens))


def _expression(tokens: list[Token]) -> Expr:
    if len(tokens) == 2 and tokens[0].text in ("+", "-") and tokens[1].kind == "const" and tokens[1].text == "inf":
        return const("inf") if tokens[0].text == "+" else neg(const("inf"))
    return parse_expression(tokens)


def _unit_start(tokens: list[Token]) -> int | None:
    level = 0
    for position, token in enumerate(tokens):
        if token.kind == "op":
            level += token.text in OPENERS
            level -= token.text in CLOSERS
        if level == 1 and _is_unit_in_braces(tokens, position):
            return position
        if not position or level > 0:
            if not (
                level == 1 and token.text == "{" and tokens[position - 1].text == "^" and _is_ordinal(tokens, position)
            ):
                continue
            return position - 1
        if token.kind == "fun" and token.text in ("min", "sec") and tokens[position - 1].kind == "num":
            if position == len(tokens) - 1:
                tokens[position] = Token("word", token.text, token.at)
                return position
        elif token.kind == "text" or (token.kind == "word" and _is_unit_word(token.text, tokens[position - 1])):
            rest = tokens[position:]
            if all(following.kind in _UNIT_KINDS or following.text in _UNIT_SIGNS for following in rest):
                return position
    return None


def _is_unit_in_braces(tokens: list[Token], position: int) -> bool:
    inside = tokens[position + 1 : position + 3]
    opens = tokens[position].text == "{" and position > 0 and tokens[position - 1].text not in ("^", "_")
    return opens and len(inside) == 2 and inside[1].text == "}" and inside[0].kind == "word" and is_unit(inside[0].text)


def _is_ordinal(tokens: list[Token], position: int) -> bool:
    ending = [token.text for token in tokens[position + 1 :]]
    return (
        position > 1
        and tokens[position - 2].kind == "num"
        and len(ending) == 2
        and ending[0] in ("th", "st", "nd", "rd")
        and ending[1] == "}"
    )


def _is_unit_word(word: str, before: Token) -> bool:
    if is_unit(word):
        return before.kind in ("num", "op", "const")
    return (len(word) > 3 and not (word.isupper() and len(word) < 6) and before.text in ("}", ")")) or (
        len(word) > 2 and before.kind == "num"
    )


def _strip_degrees(tokens: list[Token]) -> list[Token] | None:
    texts = [token.text for token in tokens[-4:]]
    if texts[-1:] == ["°"]:
        return tokens[:-1]
    if texts[-2:] == ["^", "circ"]:
        return tokens[:-2]
    if texts[-4:] == ["^", "{", "circ", "}"]:
        return tokens[:-4]
    if texts[-1:] == ["^"]:
        return tokens[:-1]
    return None


def parse_number_in_base(text: str) -> Form | None:
    """Read ``1011_2``, ``(213)_5``, ``2A_{16}`` or ``213_{five}``."""
    match = _IN_BASE.fullmatch(text)
    if match is None or not any(char.isdigit() for char in match.group(1)):
        return None
    digits, name = match.groups()
    base = int(name) if name.isdigit() else BASE_NAMES.get(name, 0)
    if not 2 <= base <= 36 or any(int(char, 36) >= base for char in digits):
        return None
    return Value(fn("base", sym(digits.lstrip("0") or "0"), num(base)))


def number_variants(text: str, lang: str) -> list[str]:
    """Return the text in each possible meaning of its commas and points."""
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
