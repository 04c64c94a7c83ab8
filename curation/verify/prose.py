"""Reads a sentence's only value, like "144 to paint the room", unless words change it."""

from __future__ import annotations

import re
from itertools import takewhile

from curation.languages.vocabulary import every, languages, one_of
from curation.verify.answers.tokens import FUNCTIONS
from curation.verify.answers.units import is_unit

MAX_PROSE_CHARS = 4_000
"""Max characters of a text to search for words."""

MAX_SENTENCE_CHARS = 400
"""Max characters of a text with a value."""

MATH = re.compile(
    r"\$\$.{1,2000}?\$\$|\$(?:\\.|[^$\\\n]){1,2000}\$|\\\([^\n]{1,2000}?\\\)|\\\[.{1,2000}?\\\]", re.DOTALL
)
"""A formula with its delimiters."""

CHAFF_END = re.compile(
    rf"(?:(?:\.|(?<!\s))\s*(?:{one_of(lambda vocab: vocab.answers.farewells)}|<\|[a-z_]+\|>(?:user|assistant)?"
    r"|</s>|<eo[a-z]>|<end_of_turn>)\.?)+\s*$",
    re.IGNORECASE,
)
"""A response's meaningless end; it starts at a run of spaces, to stay linear."""

SENTENCE_END = re.compile(
    r"(?<=[^\W\d_][^\W\d_])(?<!\bM[rs])(?<!\bMrs)(?<!\bDr)[.!?](?=\s|$)|(?<=[\d)}\]$*%])\.(?=\s+[A-ZÀ-ÞА-Я\u4e00-\u9fff(]|\s*$)|。|\n|<\||\.\$\$?(?=\s+[A-Z])"
)
"""End of a sentence or line."""

WORD = re.compile(r"[A-Za-zÀ-ÿ]{2,}(?![A-Za-zÀ-ÿ])(?!\s*[:=])")
FOREIGN = re.compile(r"[\u0400-\u04ff\u0600-\u06ff\u0900-\u0dff\u0e00-\u0e7f\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]")
_TEXT_COMMAND = re.compile(
    r"\\(?:text|mathrm|mbox|operatorname|textbf|textit|textnormal)[a-z]*\s*\{[^{}]*\}"
    r"|\\(?:begin|end)\s*\{[^{}]*\}(?:\{[lcr| ]*\})?|\\[A-Za-z]+"
)
COPULA = re.compile(rf"\b(?:{one_of(lambda vocab: vocab.answers.copulas)})\s+(?!not\b)", re.IGNORECASE)
_STATES = re.compile(
    rf"\b(?:{one_of(lambda vocab: vocab.answers.states, spaced=True)})\b"
    rf"|{one_of(lambda vocab: vocab.answers.states, spaced=False)}",
    re.IGNORECASE,
)
_NUMBER = (
    r"[-−]?(?:\\?[$€£¥]\s?)?[-−]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:\s?/\s?\d+)?(?!\d)"
    r"(?:\s?\\?%|\s?[€£¥])?|[-−]?\\[dt]?frac\{\d{1,20}\}\{\d{1,20}\}"
)
_VALUE = re.compile(rf"{MATH.pattern}|\*\*[^*\n]{{1,80}}\*\*|(?<![\w.\\^/*]){_NUMBER}", re.DOTALL)
_SUM = re.compile(
    r"(?:\\?[$€£])?[\d(][\d\sx.,()+*/×÷\\$€£−-]*[x+*/×÷−-][\d\sx.,()+*/×÷\\$€£−-]*=\s*"  # arithmetic, then its value
    rf"(?P<value>{_NUMBER})"
)
_NAME = re.compile(r"\$[A-Za-z]{1,12}(?:\([a-z]\))?\$")
_UNIT_AFTER = re.compile(r"[ ~]+[^\W\d_]")
_WORDS = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_SIGNS = re.compile(r"[\d=<>^+/\\|_~≈±∞√×÷?&#@{}\[\]*$%]")
_NEGATED = re.compile(rf"(?:{one_of(lambda vocab: vocab.answers.negations)})(?![a-z])", re.IGNORECASE)
_OPERATORS = frozenset("+-−*/^=<>")
_SINGLE_LETTERS = frozenset("aAI")


def _qualifying_words() -> frozenset[str]:
    words: list[str] = [
        *every(lambda vocab: vocab.answers.value_words),
        *every(lambda vocab: (*vocab.answers.or_words, *vocab.answers.and_words)),
        *every(lambda vocab: (*vocab.answers.yes, *vocab.answers.no) if vocab.spaced else ()),
        *every(lambda vocab: vocab.answers.second_thoughts),
    ]
    for vocab in languages():
        numerals = vocab.numerals
        words += [word for table in (numerals.scales, numerals.parts) for names in table.values() for word in names]
        words += [word for value, names in numerals.more.items() if value != "1" for word in names]
        words += [*numerals.units[2:], *numerals.tens]
        words += [word for names in numerals.behind_digits.values() for word in names if word.isalpha()]
        words += [word for names in vocab.answers.scales.values() for word in names]
    return frozenset(word.lower() for word in words)


QUALIFIERS = _qualifying_words()
"""Words that change a value next to them."""

_HAN_QUALIFIERS = re.compile(
    "|".join(re.escape(word) for word in sorted(QUALIFIERS) if "\u4e00" <= word[0] <= "\u9fff")
)


def is_prose(text: str) -> bool:
    """Return whether a text has words other than units and names."""
    text = text[:MAX_PROSE_CHARS]
    if len(FOREIGN.findall(text)) >= 5:
        return any(char.isdigit() for char in text)
    outside = _TEXT_COMMAND.sub(" ", MATH.sub(" ", text))
    words = [
        match.group()
        for match in WORD.finditer(outside)
        if not _is_math_word(match.group()) and not _is_operand(outside, match)
    ]
    if MATH.search(text) and words and words[0].lower() not in ("and", "or", "only"):
        return True
    if len(text) <= 300 and any(char.isdigit() for char in text) and _STATES.search(outside):
        return len(words) >= 2 or bool(FOREIGN.search(text))
    return len(words) >= 3 and (any(char.isdigit() for char in text) or "$" in text or len(words) > 8)


def _is_math_word(word: str) -> bool:
    is_name = word in FUNCTIONS or (is_unit(word) and word != "in") or word == "pi"  # 5 in, but 5 in the end
    return is_name or (len(word) == 2 and word[0] == "d" and word != "du")


def _is_operand(text: str, word: re.Match[str]) -> bool:
    """Return whether letters are a product, as in "xy+yz+zx"."""
    before, after = text[: word.start()].rstrip()[-1:], text[word.end() :].lstrip()[:1]
    return len(word.group()) <= 3 and (before in _OPERATORS or after in _OPERATORS)


def inside(formula: str) -> str:
    """Return a formula without its `MATH` delimiters."""
    width = 1 if formula.startswith("$") and not formula.startswith("$$") else 2
    return formula[width:-width]


def has_words(text: str) -> bool:
    """Return whether a text has words outside formulas."""
    outside = _TEXT_COMMAND.sub(" ", MATH.sub(" ", text[:MAX_PROSE_CHARS]))
    return WORD.search(outside) is not None or FOREIGN.search(outside) is not None


def value_in(text: str) -> str | None:
    """Return a text's only value unless words change it.

    Examples: ``"144 to paint the room"`` → ``"144"``, ``"3 fifths of it"`` → None
    """
    if len(text) > MAX_SENTENCE_CHARS:
        return None
    leading = leading_value(text)
    if leading is not None:
        return leading
    values = [match for match in _VALUE.finditer(text) if any(char.isdigit() for char in match.group())]
    if len(values) == 1:
        (only,) = values
        return _with_unit(text, only) if _is_neutral(text[: only.start()]) else None
    sums = list(_SUM.finditer(text))
    if len(sums) == 1 and _is_neutral(text[: sums[0].start()]):
        after = text[sums[0].end() :]
        return sums[0]["value"].strip() if _is_neutral(after) else None
    return None


def concluded_value(sentence: str) -> str | None:
    """Return what follows the last "=", else the value or the sentence, if it has a number.

    Example: ``"20 - 16 = 4 more books"`` → ``"4 more books"``
    """
    if len(sentence) > MAX_SENTENCE_CHARS:
        return None
    _, equals, tail = sentence.rpartition("=")
    if equals:
        return tail.strip() if _VALUE.match(tail.strip()) else None
    may_state_it = has_words(sentence) and "<" not in sentence and any(map(str.isdigit, sentence))
    return value_in(sentence) or (sentence if may_state_it else None)


def leading_value(text: str) -> str | None:
    """Return a text's first value unless the rest changes it."""
    match = _VALUE.match(text)
    return _with_unit(text, match) if match is not None else None


_CONDITIONED = re.compile(r"\s*(?:[-−+]|\d|[A-Za-z]\s*$)")
"""The beginning of a sentence that states no value: "1 if n is even, otherwise 2", "m is prime or 1"."""


def is_conditioned(text: str) -> bool:
    """Return whether the text before the last "is" starts with a number or is a letter."""
    copula = _last_copula(text)
    return copula is not None and _CONDITIONED.match(text[: copula.start()]) is not None


def _last_copula(text: str) -> re.Match[str] | None:
    return next(iter([*COPULA.finditer(text)][::-1]), None)


def stated_value(text: str) -> str:
    """Return what a sentence's last "is" seems to state, or the text."""
    copula = _last_copula(text)
    if copula is not None and not is_conditioned(text):
        tail = text[copula.end() :].strip()
        if any(char.isdigit() for char in tail) and not is_prose(tail):
            return tail
    return text


def _with_unit(text: str, match: re.Match[str]) -> str | None:
    """Return a value with its unit, unless other words may change it."""
    after = text[match.end() :]
    if after[:1].isalpha() or not _is_neutral(after):
        return None
    value = match.group().strip()
    if value.startswith("**"):
        value = value.strip("* ")
    following = _WORDS.findall(after) if _UNIT_AFTER.match(after) else []
    words = " ".join(takewhile(lambda word: is_unit(word) and (word != "in" or len(following) == 1), following))
    if words and MATH.fullmatch(value):
        return f"{inside(value)}\\text{{ {words}}}"
    return f"{value} {words}".rstrip()


def _is_neutral(text: str) -> bool:
    """Return whether the words next to a value change nothing."""
    text = _NAME.sub(" ", text)
    if _SIGNS.search(text.replace("**", "")) or _NEGATED.search(text) or _HAN_QUALIFIERS.search(text):
        return False
    words = _WORDS.findall(text)
    if any(len(word) == 1 and word not in _SINGLE_LETTERS and word.isascii() for word in words):
        return False
    return not any(word.lower() in QUALIFIERS and not is_unit(word) for word in words)
