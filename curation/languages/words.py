"""Identify a language by words unique to it."""

from __future__ import annotations

from curation.languages.vocabulary import languages, neighbours

_OWN: dict[str, set[str]] = {}
for _code, _tasks in (*((lang.code, lang.identification.tasks) for lang in languages()),
                      *((lang.code, lang.tasks) for lang in neighbours())):  # fmt: skip
    for _word in _tasks:
        _OWN.setdefault(_word, set()).add(_code)

EVIDENCE = {word: next(iter(langs)) for word, langs in _OWN.items() if len(langs) == 1}
"""Word → its only language; Chinese needs none."""

_SPLIT = str.maketrans(dict.fromkeys('.!?,;:()[]"«»„“”…¿¡', " "))


def language_of_words(prose: str) -> tuple[str | None, float, int]:
    """Return the majority's language or None, its share, and its votes."""
    votes: dict[str, int] = {}
    for word in prose.lower().replace("’", "'").translate(_SPLIT).split():
        lang = EVIDENCE.get(word)
        if lang is not None:
            votes[lang] = votes.get(lang, 0) + 1
    if not votes:
        return None, 0.0, 0
    best = max(votes, key=lambda lang: votes[lang])
    share = votes[best] / sum(votes.values())
    return (best, share, votes[best]) if share > 0.5 else (None, share, votes[best])
