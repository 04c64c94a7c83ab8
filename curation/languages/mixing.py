"""Check whether three texts share a language (Magistral, section 2.2)."""

from __future__ import annotations

from dataclasses import dataclass

from curation.config.languages import LANGUAGES
from curation.languages.identification import SURE, LanguageGuess, identify

_WINDOW_LETTERS = 20
"""Letters from which a language outside the candidates is believed."""


@dataclass(frozen=True, slots=True)
class MixingResult:
    """Whether three texts share a language; ``why`` is for logs."""

    consistent: bool
    lang: str | None
    why: str


def consistent(problem: str, thoughts: str, answer: str, *, strict: bool) -> MixingResult:
    """Return whether problem, thoughts and answer share a language.

    Args:
        strict: refuse texts without one; else two with one are enough.
    """
    parts = {"problem": problem, "thoughts": thoughts, "answer": answer}
    langs = {name: _language(text) for name, text in parts.items()}
    found = [lang for lang in langs.values() if lang is not None]
    lang = next(iter(found), None)
    missing = [name for name, own in langs.items() if own is None]
    if len(found) < 2 or (strict and missing):
        return MixingResult(False, lang, f"no language: {', '.join(missing)}")
    if len(set(found)) > 1:
        listed = ", ".join(f"{name} {own}" for name, own in langs.items() if own is not None)
        return MixingResult(False, lang, f"differ: {listed}")
    return MixingResult(True, lang, "same")


def _language(text: str) -> str | None:
    """Return one of the seven languages unless another is sure."""
    guess = identify(text, LANGUAGES)
    return guess.anywhere if _is_sure(guess) else guess.lang


def _is_sure(guess: LanguageGuess) -> bool:
    outside = guess.anywhere is not None and guess.anywhere not in LANGUAGES
    return outside and guess.anywhere_confidence >= SURE and guess.letters >= _WINDOW_LETTERS
