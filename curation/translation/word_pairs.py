"""Which words of a translation say a word of its original, and whether two numbers stand with such words.

The pairs are learnt from word problems and their translations by how often two words stand in aligned sentences
(`tests.word_pairs` makes the files): English words without their endings, beginnings of words of the other language,
runs of characters where words run together. They are evidence alone: a number whose neighbours are said by the
neighbours of a number of the translation is sooner that number than another.

Those that come along were counted in GSM8K's training problems and their translations by NJUNLP/QAlign, a corpus that
names no licence. What is kept of it are counts: single words, and how often they go together. No sentence is in it.

Invariants: pure functions. A language without a file, and a word that is not in it, says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files

from curation.languages.vocabulary import language
from curation.translation.sentences import Segment

SOURCE = "en"
"""The language whose words are known."""
_WORD = re.compile(r"[A-Za-z]{2,}")
_ANY = re.compile(r"[^\W\d_]{2,}|[.,;:!?，。；：！？、()（）]")
_END = re.compile(r"[.!?](?=\s|\Z)|[。！？]")
_SIGN = re.compile(r"[.,;:!?，。；：！？、()（）]|(?:and|while|but|whereas)\Z")
_ENDINGS = ("'s", "ies", "es", "s", "ing", "ed")
_LONGEST = 7
"""Letters of a word that are looked at."""
_LONG = 5
"""Letters of a beginning from which longer words have it, too: морко, морковками."""
_STEP, _BORDER, _BACKWARDS = 0.5, 1.5, 0.5
"""What a word between a number and another one adds to their distance, a comma, and standing before it."""
_CHARACTERS = 4
"""Characters that are as far as two words where words run together."""
_SURE = 0.4
"""Share from which a form stands for a word wherever it is."""
_NEAREST = 7
"""Words and signs next to a number, on either side, that are looked at."""


@dataclass(frozen=True, slots=True)
class Around:
    """What stands before and behind a number, up to the next ones.

    Example: ``Around("He has ", " red balls and ")``
    """

    before: str
    behind: str


NOTHING = Around("", "")


def stem(word: str) -> str:
    """Return an English word as the files have it: without its ending, a few letters of it."""
    word = word.lower()
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            break
    return word[:_LONGEST].rstrip("ey") or word


def beginning(word: str) -> str:
    """Return a word of another spaced language as the files have it: without the last letters."""
    word = word.lower()
    return word[: max(4, min(_LONGEST, len(word) - 2))]


@cache
def word_pairs(target: str) -> Mapping[str, Mapping[str, float]]:
    """Return how English words are said in a language, each with its share: 1 where both always come together."""
    path = files("curation.translation") / "learnt" / f"{target}.tsv"
    if not path.is_file():
        return {}
    pairs: dict[str, dict[str, float]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        word, *said = line.split("\t")
        pairs[word] = {form: float(share) for form, share in zip(said[::2], said[1::2], strict=True)}
    return pairs


def says_anything(text: str, target: str) -> bool:
    """Return whether an English text has a word that is known to be said somehow in a language."""
    pairs = word_pairs(target)
    return any(stem(word) in pairs for word in _WORD.findall(text))


def told_by_words(mine: tuple[Around, Around], others: tuple[Around, Around], target: str) -> tuple[float, float]:
    """Return how much better each of two numbers of an original agrees with its own than with the other's translation.

    Args:
        mine: what stands around a number, and around its equal in the translation.
        others: the same of another number.
    """
    return (
        _agreement(*mine, target) - _agreement(mine[0], others[1], target),
        _agreement(*others, target) - _agreement(others[0], mine[1], target),
    )


def said_there(sentence: str, near: Segment, source: str, target: str) -> float:
    """Return which share of an original's sentence its neighbour's translation says, of the words that are known.

    A word that the neighbour has as well, or whose form another word of it may be, shows nothing. 0 where none does.
    """
    if source != SOURCE:
        return 0.0
    pairs = word_pairs(target)
    own = {stem(word) for word in _WORD.findall(near.before)}
    taken = {form for word in own for form in pairs.get(word, {})}
    there = _text(near.after, target)
    said = [
        any(share >= _SURE and form not in taken and form in there for form, share in pairs[word].items())
        for word in {stem(word) for word in _WORD.findall(sentence)} - own
        if word in pairs
    ]
    return sum(said) / len(said) if said else 0.0


def says_of(sentence: str, near: Segment, source: str, target: str) -> bool:
    """Return whether a translation's sentence says a word of its neighbour's original that is not said there."""
    if source != SOURCE:
        return False
    here, there = _text(sentence, target), _text(near.after, target)
    said = (word_pairs(target).get(stem(word), {}) for word in _WORD.findall(near.before))
    return any(
        any(share >= _SURE and form in here for form, share in forms.items())
        and not any(form in there for form in forms)
        for forms in said
    )


def _text(text: str, target: str) -> str | frozenset[str]:
    """Return what forms are looked for in: the beginnings of words, or the text where words run together."""
    if not language(target).spaced:
        return text
    return frozenset(beginning(word) for word in _ANY.findall(text))


@lru_cache(maxsize=256)
def _agreement(before: Around, after: Around, target: str) -> float:
    """Return how much of what stands around a number is said around another one, the nearest words counting most."""
    pairs = word_pairs(target)
    nearness: dict[str, float] = {}
    for text, backwards in ((before.behind, False), (before.before, True)):
        for word, distance in _words(text, backwards=backwards):
            key = stem(word)
            if key in pairs:
                nearness[key] = max(nearness.get(key, 0.0), 1 / distance)
    find = _found_word if language(target).spaced else _found_run
    return sum(near * find(pairs[word], after) for word, near in nearness.items())


def _words(text: str, *, backwards: bool) -> list[tuple[str, float]]:
    """Return the words next to a number, each with its distance."""
    distance, near = 1 + _BACKWARDS * backwards, list[tuple[str, float]]()
    text = _END.split(text)[-1 if backwards else 0]
    found = [match[0] for match in _ANY.finditer(text)]
    for piece in (found[::-1] if backwards else found)[:_NEAREST]:
        if _SIGN.match(piece):
            distance += _BORDER
        else:
            near.append((piece, distance))
            distance += _STEP
    return near


def _found_word(forms: Mapping[str, float], around: Around) -> float:
    """Return the share of the surest of a word's forms around a number, by its distance."""
    return max(
        (
            share / distance
            for word, first, distance in _near(around)
            for form, share in forms.items()
            if form == first or (len(form) >= _LONG and word.startswith(form))
        ),
        default=0.0,
    )


@lru_cache(maxsize=256)
def _near(around: Around) -> tuple[tuple[str, str, float], ...]:
    """Return the words around a number in small letters, the beginning and the distance of each."""
    return tuple(
        (word.lower(), beginning(word), distance)
        for text, backwards in ((around.behind, False), (around.before, True))
        for word, distance in _words(text, backwards=backwards)
    )


def _found_run(forms: Mapping[str, float], around: Around) -> float:
    """Return the same where words run together."""
    best = 0.0
    for form, share in forms.items():
        for text, backwards in ((_END.split(around.behind)[0], False), (_END.split(around.before)[-1], True)):
            at = text.rfind(form) if backwards else text.find(form)
            if at >= 0:
                between = text[at + len(form) :] if backwards else text[:at]
                signs = len(_SIGN.findall(between))
                best = max(best, share / (1 + _BACKWARDS * backwards + len(between) / _CHARACTERS + _BORDER * signs))
    return best
