"""Measure the languages in a text, and check whether three texts share one (Magistral, section 2.2).

Invariants: shares of letters add up to 1, if any; a doubtful window has the whole text's language.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from curation.config.languages import LANGUAGES
from curation.languages.identification import LanguageGuess, LanguageSettings, identify, identify_prose
from curation.languages.stripping import letters, strip, without_formulas
from curation.languages.switching import foreign_letters, speaks_for


@dataclass(frozen=True, slots=True)
class ConsistencySettings:
    """When problem, thoughts and answer are of one language (+0.1 in the paper).

    Attributes:
        among: candidate languages, unless another is sure.
        undetermined: whether a text without a language is ignored or refuses the bonus.
        max_other_share: of letters in other languages; 1 does not look, as in the paper.
    """

    among: tuple[str, ...] = LANGUAGES
    undetermined: Literal["ignore", "fail"] = "ignore"
    max_other_share: float = 1.0


_DEFAULT = LanguageSettings()
_CONSISTENT = ConsistencySettings()
_SENTENCE = re.compile(r"(?<=[.!?:;…])\s+|(?<=[。！？；：])\s*|\n+")
_SCRIPTS = re.compile(
    r"(?P<han>[\u3400-\u9fff][\u3400-\u9fff\W\d]*)|(?P<cyrillic>[\u0400-\u04ff][\u0400-\u04ff\W\d]*)"
    r"|(?P<latin>[A-Za-z\u00c0-\u024f][A-Za-z\u00c0-\u024f\W\d]*)|(?P<other>[^\W\d_][\W\d]*)"
)
_LATIN = re.compile(r"(?<!['’])\b[A-Za-z\u00c0-\u024f]+")
_OTHER_SCRIPT = re.compile(r"[\u3400-\u9fff\u0400-\u04ff]")
_ONE_NAME = 12
"""Letters of foreign script inside a sentence that may be a name or a term, and are counted with their sentence."""


@dataclass(frozen=True, slots=True)
class MixingResult:
    """Whether problem, thoughts and answer are in one language; ``why`` is for logs."""

    consistent: bool
    lang: str | None
    why: str
    problem: LanguageGuess
    thoughts: LanguageGuess
    answer: LanguageGuess


def language_shares(
    text: str, among: Sequence[str] | None = None, settings: LanguageSettings = _DEFAULT
) -> list[tuple[str, float]]:
    """Return a text's languages with their shares of its letters, largest first; empty if undetermined."""
    whole = identify(text, among, settings)
    if whole.lang is None:
        return []
    counts: dict[str, int] = {}
    prose = strip_lines(text)
    for window in windows(prose, settings.window_letters):
        guess = identify_prose(window, among, settings)
        sure = guess.lang is not None and guess.confidence >= settings.window_confidence
        enough = guess.letters >= settings.window_letters or _scripted(window)
        lang = guess.lang if guess.lang is not None and sure and enough else whole.lang
        if lang != whole.lang and (speaks_for(window, whole.lang, lang) or _names(window, prose)):
            lang = whole.lang
        counts[lang] = counts.get(lang, 0) + guess.letters
    _add_switches(counts, prose, whole.lang)
    total = sum(counts.values())
    shares = [(lang, count / total) for lang, count in counts.items() if count]
    return sorted(shares, key=lambda share: (-share[1], share[0]))


def _add_switches(counts: dict[str, int], prose: str, lang: str) -> None:
    """Move letters to passages inside sentences that windows missed."""
    for code, count in foreign_letters(prose, lang).items():
        more = min(count - counts.get(code, 0), counts.get(lang, 0))
        if more > 0:
            counts[code] = counts.get(code, 0) + more
            counts[lang] -= more


def strip_lines(text: str) -> str:
    """Return a text's prose, with line breaks after paragraphs and after lines that end a sentence."""
    marked = re.sub(r"\n\s*\n+|(?<=[.!?。！？])\s*\n", " ⏎ ", without_formulas(text))
    return "\n".join(line for part in marked.split("⏎") if (line := strip(part)))


def windows(prose: str, least: int) -> list[str]:
    """Join sentences of fewer than ``least`` letters, and cut where the script changes."""
    joined: list[str] = []
    waiting, script = "", ""
    for sentence in _SENTENCE.split(prose):
        for piece, kind in _by_script(sentence):
            if waiting and (kind != script or max(letters(waiting), letters(piece)) >= least):
                joined.append(waiting)
                waiting = ""
            waiting, script = f"{waiting} {piece}".strip(), kind
    return [*joined, waiting] if waiting else joined


def _by_script(sentence: str) -> list[tuple[str, str]]:
    """Cut a sentence where its script changes for longer than a name, into (text, script)."""
    runs = [(match[0], str(match.lastgroup)) for match in _SCRIPTS.finditer(sentence)]
    if len({kind for _, kind in runs}) < 2:
        return [(sentence, runs[0][1])] if runs else []
    weight: dict[str, int] = {}
    for run, kind in runs:
        weight[kind] = weight.get(kind, 0) + letters(run)
    main = max(weight, key=lambda kind: weight[kind])
    pieces: list[tuple[str, str]] = []
    for run, kind in runs:
        # a hanzi run is never a name in another script; Latin letters inside Chinese or Russian may be
        own = main if kind == "latin" and letters(run) <= _ONE_NAME else kind
        if pieces and pieces[-1][1] == own:
            pieces[-1] = (pieces[-1][0] + run, own)
        else:
            pieces.append((run, own))
    return pieces


def _names(window: str, prose: str) -> bool:
    """Return whether a Latin window in a text of another script is a name."""
    if letters(window) * 2 > letters(prose) or not _OTHER_SCRIPT.search(prose):
        return False
    words = _LATIN.findall(window)
    small = sum(word.islower() for word in words)
    return small <= 1 < len(words) - small and not _OTHER_SCRIPT.search(window)


def _scripted(window: str) -> bool:
    """Return whether a short window's script alone shows its language."""
    return bool(re.search(r"[\u3400-\u9fff]{2}|[\u0400-\u04ff]{4}", window))


def consistent(
    problem: str,
    thoughts: str,
    answer: str,
    settings: ConsistencySettings = _CONSISTENT,
    languages: LanguageSettings = _DEFAULT,
) -> MixingResult:
    """Return whether problem, thoughts and answer are in one language, which at least two must have."""
    guesses = [_identified(text, settings, languages) for text in (problem, thoughts, answer)]
    langs = [guess.lang for guess in guesses if guess.lang is not None]
    lang = guesses[0].lang or (langs[0] if langs else None)
    names = ("problem", "thoughts", "answer")
    missing = [name for name, guess in zip(names, guesses, strict=True) if guess.lang is None]
    if missing and settings.undetermined == "fail":
        return MixingResult(False, lang, f"no language: {', '.join(missing)}", *guesses)
    if len(langs) < 2:
        return MixingResult(False, lang, f"no language: {', '.join(missing)}", *guesses)
    if len(set(langs)) > 1:
        listed = ", ".join(
            f"{name} {guess.lang}" for name, guess in zip(names, guesses, strict=True) if guess.lang is not None
        )
        return MixingResult(False, lang, f"differ: {listed}", *guesses)
    if settings.max_other_share < 1:
        for name, text in (("thoughts", thoughts), ("answer", answer)):
            other = sum(share for code, share in language_shares(text, settings.among, languages) if code != lang)
            if other > settings.max_other_share:
                return MixingResult(False, lang, f"{name}: {other:.0%} in other languages", *guesses)
    return MixingResult(True, lang, "same", *guesses)


def _identified(text: str, settings: ConsistencySettings, languages: LanguageSettings) -> LanguageGuess:
    """Return a text's language, a candidate unless another is sure."""
    guess = identify(text, settings.among, languages)
    outside = guess.anywhere is not None and guess.anywhere not in settings.among
    if outside and guess.anywhere_confidence >= languages.sure and guess.letters >= languages.window_letters:
        return LanguageGuess(guess.anywhere, guess.anywhere_confidence, guess.letters, *_unrestricted(guess))
    return guess


def _unrestricted(guess: LanguageGuess) -> tuple[str | None, float]:
    return guess.anywhere, guess.anywhere_confidence
