"""Expressions that point at options, put together from the words of the languages: why a question does not stand alone.

Python expressions, searched in the sentences that ask. The words are `curation.languages.vocabulary`'s.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby

from curation.languages.vocabulary import every, languages, one_of

_BOUNDARY = r"\b"


def _parts(pattern: str) -> list[str]:
    """Return the alternatives of an expression at its own level."""
    parts, depth, begin, at = [], 0, 0, 0
    while at < len(pattern):
        if pattern[at] == "\\":
            at += 1
        elif pattern[at] == "[":
            at = pattern.index("]", at + 2)
        elif pattern[at] == "|" and not depth:
            parts.append(pattern[begin:at])
            begin = at + 1
        depth += {"(": 1, ")": -1}.get(pattern[at], 0)
        at += 1
    return [*parts, pattern[begin:]]


def _first_letters(pattern: str) -> frozenset[str] | None:
    """Return the letters that an expression can begin with; None where it is not simple enough to tell."""
    if re.match(r"[A-Za-z](?![?*{])", pattern):
        return frozenset(pattern[0])
    group = re.match(r"\(\?:((?:[^()\[\]\\]|\\.)*)\)([?*{]?)", pattern)
    if group is None or group[2] in ("*", "{"):
        return None
    firsts = [_first_letters(part) for part in _parts(group[1])]
    if group[2]:
        firsts.append(_first_letters(pattern[group.end() :]))
    return None if None in firsts else frozenset().union(*(first for first in firsts if first))


def _of_words(parts: Sequence[str]) -> str:
    """Return alternatives that begin where a word does as one, which looks at its first letter where all are known."""
    tried = [part.removeprefix(_BOUNDARY) for part in parts]
    firsts = [_first_letters(part) for part in tried]
    known = frozenset().union(*(first for first in firsts if first))
    ahead = "" if None in firsts else f"(?=[{''.join(sorted(known))}])"
    return f"{_BOUNDARY}{ahead}(?:{'|'.join(tried)})"


def quick(patterns: Sequence[str]) -> re.Pattern[str]:
    """Join expressions to one, whatever the case; those of words are tried where a word begins with such a letter.

    The matches are those of the expressions side by side, which are tried one after the other at every character.
    """
    parts = [part for pattern in patterns for part in _parts(pattern)]
    runs = groupby(parts, lambda part: part.startswith(_BOUNDARY))
    joined = [_of_words(list(run)) if of_words else "|".join(run) for of_words, run in runs]
    return re.compile("(?i)" + "|".join(joined))


WHICH_NEEDLES = every(lambda lang: lang.choices.which_needles)


OPEN_WHICH = tuple(
    (re.compile("(?i)" + lang.choices.open_which.replace("<which>", lang.choices.which)), lang.choices.asks_for)
    for lang in languages()
    if lang.choices.open_which
)
"""A question that only repeats its options, and what it becomes: "which of the following is the value" → "What is"."""

EQUAL_WHICH = tuple(
    (
        re.compile("(?i)" + lang.choices.equal_which.replace("<which>", lang.choices.which)),
        lang.choices.asks_for_value,
    )
    for lang in languages()
    if lang.choices.equal_which
)
"""The same where the answer is a number: "which of the following is equal to" → "What is the value of"."""

POINTS = {lang.code: quick(lang.choices.points) for lang in languages()}
"""By language, words that point at options; whatever matches in the question is the evidence for refusing."""

POINTS_WHEN_ASKED = {
    lang.code: re.compile("|".join(lang.choices.points_when_asked))
    for lang in languages()
    if lang.choices.points_when_asked
}
"""By language whose whole text is searched, words that point at options only in the sentence that asks."""

POINTS_DOUBTFUL = {
    lang.code: quick(lang.choices.points_doubtful) for lang in languages() if lang.choices.points_doubtful
}
"""By language, words that only make it doubtful, in the sentence that asks, that a question stands alone."""

POINTS_HARMLESS = {
    lang.code: quick(lang.choices.points_harmless) for lang in languages() if lang.choices.points_harmless
}
"""By language, the same words in company in which they point at nothing."""

TRIGGERS = {lang.code: lang.choices.triggers for lang in languages() if lang.choices.triggers}
"""By language, literals of which one must be there for `POINTS` or `POINTS_DOUBTFUL` to match: most questions hold
none."""

# 下列三个命题…其中真命题的个数是: a count of things that the question itself lists
COUNTS = re.compile(
    rf"(?:{one_of(lambda lang: lang.choices.counts)})[^，。．]{{0,10}}"
    r"(?=[\s．。.?？_（）()~]*(?:$|\n|[（(]\s*\$*[1１]|①))"
)
LISTS = re.compile(rf"[①②]|[（(]\s*\$*[1２2]\$*\s*[)）]|(?:{one_of(lambda lang: lang.choices.numbering)})[）)、]")

_JOINERS = one_of(lambda lang: lang.choices.option_joiners)
_LABELS = rf"^\W*(?:[A-E]|[IVX]{{1,4}})(?:\s*(?:,|&|、|{_JOINERS})\s*(?:[A-E]|[IVX]{{1,4}}))+"

# Options that speak of other options.
META_OPTION = re.compile(
    rf"(?i){one_of(lambda lang: lang.choices.meta_options)}"
    rf"|{_LABELS}(?:\s+(?:{one_of(lambda lang: lang.choices.only_words)}))?\W*$"
)
