r"""The places of a text that may say an answer: what a verifier must look at to know that a text does not hold one.

A `Span` is a text to compare and where a cut must come at the latest so that it is left out. Of a formula that is its
beginning, whatever part of it is the answer: "x = 12" is left out as a whole. Spans are:

  - formulas: whole, their sides, the parts of their lists, their bracketed groups, fractions and roots;
  - formulas without dollar signs, as runs of numbers, single letters and signs;
  - numbers, with a sign, per cent, thousands and a fraction behind; alone wherever they stand, also inside a formula;
  - numbers in words, in the languages that the house knows.

Invariant: spans are read generously. One too many makes a prefix shorter, one too few gives an answer away.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from curation.languages.vocabulary import languages
from curation.translation.numerals import word_tokens

MAX_CHARS = 240
"""Characters of a span that is compared as a whole; longer ones are compared in parts."""

_FORMULAS = re.compile(
    r"\$\$(?P<double>.+?)\$\$|\$(?P<single>[^$\n]+?)\$|\\\[(?P<display>.+?)\\\]|\\\((?P<inline>.+?)\\\)", re.DOTALL
)
_TOKEN = re.compile(r"[^\s;:!?。，；：]+")
_COMMAND = re.compile(r"\\[a-zA-Z]+")
_WORD = re.compile(r"[^\W\d_]{2,}")
_NUMBER = re.compile(
    r"(?:[-−–+]\s?)?\d+\s*\\[dt]?frac\s*\{[^{}]+\}\s*\{[^{}]+\}"
    r"|(?:[-−–+]\s?)?\\[dt]?frac\s*(?:\{[^{}]*\}|\d)\s*(?:\{[^{}]*\}|\d)"
    r"|(?:[-−–+]\s?)?\d+[ \u00a0]+\d+\s?[/⁄]\s?\d+"
    r"|(?:[-−–+]\s?)?\d+\s?[/⁄]\s?\d+"
    r"|(?:[-−–+]\s?)?\d{1,3}(?:(?:[ ,.'’\u00a0\u202f]|\{,\}|\\[,;: !])\d{3})+(?:[.,]\d+)?(?:\s?\\?%)?"
    r"|(?:[-−–+]\s?)?\d*[.,]?\d+(?:\s?\\?%)?"
    r"|\\sqrt\s*(?:\[\d+\])?\s*(?:\{[^{}]*\}|\d)"
)
_DIGITS = re.compile(r"\d+")
_SIDES = re.compile(
    r"=|≈|≃|≡|≠|<|>|≤|≥|⇒|→|⟹|&|\n|\\\\|;|:"
    r"|\\(?:approx|equiv|simeq|cong|le|ge|leq|geq|lt|gt|implies|Rightarrow|rightarrow|to|iff|in|text\s*\{[^{}]*\})"
    r"(?![a-zA-Z])"
)
_GROUPS = (re.compile(r"\([^()]*\)"), re.compile(r"\[[^\[\]]*\]"), re.compile(r"\{[^{}]*\}"))
_EDGE = " \t\n\u00a0.,;:!?*_`$"


@dataclass(frozen=True, slots=True)
class Span:
    """A text that may be the answer, and where what holds it begins.

    Example: of "so $x = 12$." the spans ``Span(3, "x = 12")``, ``Span(3, "x")`` and ``Span(3, "12")``
    """

    start: int
    text: str


def answer_spans(text: str, lang: str) -> list[Span]:
    """Return the spans of a text in the order of their beginnings, each text once, where it comes first."""
    spans: dict[str, int] = {}
    for start, found in _all(text, lang):
        kept = found.strip(_EDGE)
        if kept and (kept not in spans or start < spans[kept]):
            spans[kept] = start
    return sorted((Span(start, kept) for kept, start in spans.items()), key=lambda span: (span.start, span.text))


def _all(text: str, lang: str) -> Iterator[tuple[int, str]]:
    covered = [False] * len(text)
    for match in _FORMULAS.finditer(text):
        inner = next(part for part in match.groups() if part is not None)
        yield from ((match.start(), part) for part in _parts(inner))
        covered[match.start() : match.end()] = [True] * (match.end() - match.start())
    for start, run in _runs(text):
        if not all(covered[start : start + len(run)]):
            yield from ((start, part) for part in _parts(run))
    for number in _NUMBER.finditer(text):
        yield number.start(), number[0]
        yield number.start(), number[0].strip(" -−–+%\\")
    for digits in _DIGITS.finditer(text):
        yield digits.start(), digits[0]
    for place, sign in enumerate(text):
        if unicodedata.category(sign) == "No":  # ½, ², ①
            yield place, str(Fraction(unicodedata.numeric(sign)).limit_denominator(100))
    for code in {lang, "en"} & {one.code for one in languages()}:
        for token in word_tokens(text, code):
            yield from ((token.start, str(value)) for value in token.values)


def _runs(text: str) -> Iterator[tuple[int, str]]:
    """Yield neighbours among the text's tokens that hold no word, from the first to the last, with a letter or digit.

    Example: of "so y = 1 + x^2 here" the one run "y = 1 + x^2"
    """
    begin = end = -1
    for match in (*_TOKEN.finditer(text), None):
        is_word = match is None or _WORD.search(_COMMAND.sub("", match[0])) is not None
        if begin >= 0 and (is_word or match is None or text[end : match.start()].strip(" \t\u00a0")):
            if any(sign.isalnum() for sign in text[begin:end]):
                yield begin, text[begin:end]
            begin = -1
        if match is not None and not is_word:
            begin, end = match.start() if begin < 0 else begin, match.end()


def _parts(formula: str) -> Iterator[str]:
    """Yield a formula, its sides, the parts of these and the groups in it, as far as they are not too long."""
    for side in (formula, *_SIDES.split(formula)):
        for part in (side, *re.split(r"[,،、]|\\(?:quad|qquad|,|;|:|!| )|\band\b|\bor\b", side)):
            if part and len(part) <= MAX_CHARS:
                yield part
    for groups in _GROUPS:
        for match in groups.finditer(formula):
            if len(match[0]) <= MAX_CHARS:
                yield match[0]
                yield match[0][1:-1]
    for number in _NUMBER.finditer(formula):
        yield number[0]
