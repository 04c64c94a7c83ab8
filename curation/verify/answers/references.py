r"""Checks that a reference can be verified against: it is whole, has content, and equals itself.

Refused: empty or hedged references, sentences, references to a figure or a proof, unclosed LaTeX (``\frac{3}{4``),
missing operands (``3 +``), and an empty ``\frac{}{2}``.
"""

from __future__ import annotations

import re

from curation.languages.vocabulary import one_of
from curation.records import Outcome
from curation.verify.answers.forms import Reading, Words
from curation.verify.answers.reading import parse_readings
from curation.verify.answers.tiers import MAX_READ_CHARS, clean_answer, compare_readings
from curation.verify.answers.words import (
    parse_boolean,
    parse_choice,
    parse_choice_letters,
    parse_date,
    parse_time,
    parse_word_list,
)

MAX_REFERENCE_WORDS = 6
_HEDGES = re.compile(rf"\b(?:{one_of(lambda vocab: vocab.answers.hedges)})\b", re.I)
_SPACED_ELSEWHERE = one_of(lambda vocab: vocab.answers.elsewhere, spaced=True)
_HAN_ELSEWHERE = one_of(lambda vocab: vocab.answers.elsewhere, spaced=False)
_ELSEWHERE = re.compile(
    rf"\b(?:{_SPACED_ELSEWHERE}|includegraphics)\b|!\[|https?:|\[(?:image|figure)\]|{_HAN_ELSEWHERE}", re.I
)
_BREAKS_OFF = re.compile(rf"(?<![A-Za-z\\])(?:{one_of(lambda vocab: vocab.answers.breaks_off)})\s*")
_EMPTY_GROUP = re.compile(r"\\(?:[dtc]?frac|sqrt|d?binom)\s*(?:\[[^\]]*\]|\{[^{}]*\})?\s*\{\s*\}")
_DANGLING_START = re.compile(r"[\^_*/]")
_DANGLING_END = re.compile(
    r"(?:[=^_+*/<>(\[{&]|(?<![\w)}\]])[-]|(?<=[\w)}\]])\s*-|\\(?:times|cdot|div|le|leq|ge|geq|ne|neq|in|cup|cap|"
    r"frac|dfrac|sqrt|pm|mp|to|left|log|ln|sin|cos|tan))\s*"
)
_WORDS = re.compile(r"[^=<>^+*/|_{}\\$?#@~]+")
_BRACKET = re.compile(r"\\[{}]|[{}()\[\]]")


def reference_defect(reference: str, lang: str) -> str | None:
    """Return why a reference cannot be verified against."""
    text = clean_answer(reference) if len(reference) <= MAX_READ_CHARS else reference
    if not text:
        return "it is empty"
    if len(text) > MAX_READ_CHARS:
        return f"it has {len(text)} characters"
    hedge = _HEDGES.search(text)
    if hedge:
        return f"it is hedged ({hedge.group()!r})"
    broken = _syntax_defect(text)
    if broken is not None:
        return broken
    readings = parse_readings(text, lang)
    if len(readings) == 1 and not _usable_words(readings[0], text):
        return "no formula, number, choice or short text could be read from it"
    if compare_readings(readings, readings).outcome is not Outcome.CORRECT:
        return "it does not verify against itself"
    return None


def _syntax_defect(text: str) -> str | None:
    elsewhere = _ELSEWHERE.search(text)
    if elsewhere:
        return f"it refers to something else ({elsewhere.group()!r})"
    if not _has_balanced_brackets(text):
        return "its brackets do not close"
    if _EMPTY_GROUP.search(text):
        return "an argument in it is empty"
    if " " in text and re.search(rf"{_BREAKS_OFF.pattern}$", text) and any(sign in text for sign in "^=+*/\\"):
        return "it breaks off"
    if _DANGLING_START.match(text) or re.search(rf"{_DANGLING_END.pattern}$", text):
        return "an operator in it lacks a side"
    return None


def _has_balanced_brackets(text: str) -> bool:
    level = sets = 0
    counts = dict.fromkeys("()[]", 0)
    for match in _BRACKET.finditer(text):
        sign = match.group()
        if sign in ("\\{", "\\}"):
            sets += 1 if sign == "\\{" else -1
        elif sign in "{}":
            level += 1 if sign == "{" else -1
            if level < 0:
                return False
        else:
            counts[sign] += 1
    if level or (sets and "\\right." not in text and "{cases}" not in text):
        return False
    if parse_choice(text) is not None or "\\left." in text or "\\right." in text:
        return True
    square = counts["["] + counts["]"]
    round_ = counts["("] - counts[")"]
    return (square + counts["("] + counts[")"]) % 2 == 0 and (round_ == 0 if not square else abs(round_) <= square)


def _usable_words(reading: Reading, text: str) -> bool:
    form = reading.form
    if (
        parse_choice(text)
        or parse_time(text)
        or parse_date(text)
        or parse_choice_letters(text)
        or parse_word_list(text)
        or parse_boolean(text)
    ):
        return True
    if not isinstance(form, Words) or not form.text or "\\" in form.text or len(form.raw.split()) > MAX_REFERENCE_WORDS:
        return False
    return _WORDS.fullmatch(form.raw) is not None and any(char.isalnum() for char in form.raw)
