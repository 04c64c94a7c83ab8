"""Find words of another language inside sentences.

Invariants: pure functions of stripped prose; a word that the text's own language has is never foreign.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache

from curation.languages.stripping import letters
from curation.languages.vocabulary import language, languages

_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*(?:['’](?=[^\W\d_]))?")
_STOP = re.compile(r"[.!?。？！…]")
_SCRIPTS = re.compile(
    r"(?P<zh>[\u3400-\u9fff]+)|(?P<ru>[\u0400-\u04ff]+)|(?P<other>[\u3040-\u30ff\uac00-\ud7af\u0590-\u0dff\u0e00-\u0eff]+)"
)
_OWN_SCRIPT = {"han": "zh", "cyrillic": "ru"}
"""The group of `_SCRIPTS` that is a text's own, by its language's script."""
_SIGNS = 2
"""Different words of one language, a small one among them, in the whole text, from which they are believed."""
_NOBODY: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())


@cache
def _words() -> dict[str, tuple[frozenset[str], frozenset[str]]]:
    """Return each known word's languages: those where it is a small word, and all."""
    small: dict[str, set[str]] = {}
    every: dict[str, set[str]] = {}
    for lang in languages():
        for word in lang.identification.small_words:
            small.setdefault(word, set()).add(lang.code)
        for word in (*lang.identification.small_words, *lang.identification.tasks, *lang.identification.common):
            every.setdefault(word, set()).add(lang.code)
    return {word: (frozenset(small.get(word, ())), frozenset(codes)) for word, codes in every.items()}


@cache
def _own(code: str) -> frozenset[str]:
    """Return a language's own words."""
    own = language(code)
    return frozenset((*own.identification.small_words, *own.identification.common, *own.identification.tasks))


def speaks_for(window: str, own: str, other: str) -> bool:
    """Return whether a window taken for another language has as many words of the text's own.

    >>> speaks_for("Un par de pantalones cuesta y un par de zapatos cuesta", "es", "fr")
    True
    """
    try:
        mine, others = _own(own), _own(other)
    except KeyError:
        return False
    words = [_word(token) for token in _WORD.findall(window)]
    kept = sum(word in mine and word not in others for word in words)
    return kept > 0 and kept >= sum(word in others and word not in mine for word in words)


def _word(token: str) -> str:
    return token.lower().replace("’", "'")


def foreign_letters(prose: str, lang: str) -> dict[str, int]:
    """Return the letters in other languages: by script as zh, ru or ``other``, else by words."""
    try:
        script = language(lang).script
    except KeyError:
        return {}
    counts: dict[str, int] = {}
    if not prose.isascii():
        for match in _SCRIPTS.finditer(prose):
            group = str(match.lastgroup)
            if group != _OWN_SCRIPT.get(script):
                counts[group] = counts.get(group, 0) + letters(match[0])
    code, count = _foreign_words(prose, lang, 1 if script == "latin" else 2)
    return {**counts, code: count} if count else counts


@dataclass(slots=True)
class _Passages:
    """A foreign language's small words in a text, all its words, and letters."""

    signs: set[str] = field(default_factory=set)
    words: set[str] = field(default_factory=set)
    letters: int = 0

    @property
    def is_believed(self) -> bool:
        """Return whether there are a small word and another word."""
        return len(self.signs) > 0 and len(self.words) >= _SIGNS


def _foreign_words(prose: str, lang: str, shortest: int) -> tuple[str, int]:
    """Return the language with the most foreign letters, and their number."""
    known, own = _words(), _own(lang)
    found: dict[str, _Passages] = {}
    for sentence in _STOP.split(prose):
        last: frozenset[str] = frozenset()
        between = 0
        for place, token in enumerate(_WORD.findall(sentence)):
            if place and not token.islower():
                continue  # a name, or a noun of a language that writes them large
            word = _word(token)
            if len(word) < shortest or not own.isdisjoint((word, *word.split("-"))):
                last, between = frozenset(), 0
                continue
            small, having = known.get(word, _NOBODY)
            if not having:
                between += len(word)
                continue
            for code in having:
                passages = found.setdefault(code, _Passages())
                passages.signs |= {word} if code in small else set()
                passages.words.add(word)
                passages.letters += len(word) + (between if code in last else 0)
            last, between = having, 0
    believed = {code: passages.letters for code, passages in found.items() if passages.is_believed}
    return max(believed.items(), key=lambda item: (item[1], item[0]), default=("", 0))
