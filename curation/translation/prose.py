"""Check that a translation's prose is in its language, without additions."""

from __future__ import annotations

import re

from curation.config.languages import LANGUAGES
from curation.languages.identification import identify, identify_prose
from curation.languages.stripping import letters, strip, without_formulas

_ELSEWHERE = 0.5
"""Confidence from which a third language is believed."""
_LEFT = 0.8
"""Confidence from which a sentence is in the original's language."""
_FEW = 10
"""Letters from which prose must have a language."""
_A_SENTENCE = 16
_COPIED = 3
"""Lower-case words from which a sentence can be copied."""
_SENTENCE = re.compile(r"(?<=[.!?:;…])\s+|(?<=[。！？；：])\s*|\n+")
_AFTER_QUESTION = re.compile(r"[?？؟][^?？؟]*\Z")


def other_language(original: str, translated: str, target: str) -> str | None:
    """Return a translation's language unless it is ``target``."""
    guess = identify(translated, tuple(dict.fromkeys((*LANGUAGES, target))))
    if guess.lang == target:
        is_third = guess.anywhere not in (None, target, *LANGUAGES) and guess.anywhere_confidence >= _ELSEWHERE
        return guess.anywhere if is_third else None
    if guess.lang is None and identify(original).letters < _FEW:
        return None
    return guess.lang or "no language for sure"


def left_sentence(original: str, translated: str, source: str, target: str) -> str | None:
    """Return a sentence in the original's language, or None."""
    copied = {_letters(sentence) for sentence in _sentences(original)}
    for sentence in _sentences(translated):
        prose = strip(sentence)
        lower = sum(word[:1].islower() for word in prose.split())
        if lower < _COPIED:
            continue
        if _letters(sentence) in copied:
            return sentence
        guess = identify_prose(prose, (source, target)) if letters(prose) >= _A_SENTENCE else None
        if guess is not None and guess.lang == source and guess.confidence >= _LEFT:
            return sentence
    return None


def _sentences(text: str) -> list[str]:
    return [part.strip() for part in _SENTENCE.split(without_formulas(text)) if part.strip()]


def _letters(text: str) -> str:
    return "".join(sign for sign in strip(text).lower() if sign.isalpha())


def appended(original: str, translated: str, answer: str | None) -> str | None:
    """Return what a translation adds at its end: words, box or answer."""
    if translated.count("\\boxed") > original.count("\\boxed"):
        return "\\boxed"
    tail = _tail(translated)
    if tail and _ends_in_question(original):
        return tail
    ending = (answer or "").strip().strip("$.").strip()
    return ending if ending and _ends_with(translated, ending) and not _ends_with(original, ending) else None


def _ends_in_question(text: str) -> bool:
    return re.search(r"\?\s*\Z", text.strip()) is not None


def _tail(text: str) -> str:
    match = _AFTER_QUESTION.search(text)
    tail = match[0][1:].strip() if match else ""
    return tail if re.search(r"[^\W_]", tail) else ""


def _ends_with(text: str, ending: str) -> bool:
    bare = re.sub(r"[\s.。$)\]}]+\Z", "", text)
    return re.search(rf"(?<![\w.,]){re.escape(ending)}\Z", bare) is not None
