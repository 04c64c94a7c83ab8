"""How alike a name and a word in Cyrillic sound, whatever case the word stands in.

Both become rows of sounds: English spelling by its commonest rules (Jane is Jein), Cyrillic by its letters. Rows are
compared by an edit distance in which vowels weigh little, and sounds that transcriptions do not keep apart (g and h, v
and u, j and zh) less than others. An ending of a case costs little; the same name in two cases has one `stem`.

Invariants: pure functions of two words. Not here: which word is which name's (`name_matching`).
"""

from __future__ import annotations

import re
from functools import cache

_CYRILLIC = dict(
    zip(
        "абвгдеёжзийклмнопрстуфхцчшщъыьэюя",
        ("a", "b", "v", "g", "d", "e", "o", "Z", "z", "i", "i", "k", "l", "m", "n", "o", "p", "r", "s", "t", "u", "f",
         "h", "ts", "C", "S", "S", "", "i", "", "e", "iu", "ia"),
        strict=True,
    )
)  # fmt: skip
_SPELLING = (
    (r"\bkn", "n"), (r"\bwr", "r"), (r"sch|sh", "S"), (r"ch(?=[lr])", "k"), (r"tch|ch", "C"), (r"ph", "f"),
    (r"th", "t"), (r"ck", "k"), (r"gh", "g"), (r"qu", "kv"), (r"x", "ks"), (r"ge\b", "J"), (r"eo(?=r)", "o"),
    (r"c(?=[eiy])", "s"), (r"i(?=[^aeiouy]e\b)", "ai"), (r"a(?=[^aeiouy]e\b)", "ei"), (r"(?<=[^aeiouy])e\b", ""),
    (r"ee|ea", "i"), (r"oo", "u"), (r"au|aw", "o"), (r"ay|ai(?!.\b)", "ei"), (r"ie\b|ey\b|y\b", "i"),
    (r"c", "k"), (r"j", "J"), (r"g(?=[eiy])", "G"), (r"w|v", "v"), (r"q", "k"), (r"y", "i"),
)  # fmt: skip
_VOWELS = "aeiou"
_ALIKE = ("bp", "dt", "gkhGC", "szSCJZG", "vf", "JZih", "vu", "vb", "ts")
"""Sounds that a transcription writes for one another."""
_ENDING = re.compile(r"(?:ami|iami|iu|oi|om|em|ei|ah|am|iah|ia|[aeiou])$")
_VOWEL, _NEAR, _SILENT, _CASE = 0.3, 0.3, 0.2, 0.04
"""What a vowel that differs or stands alone costs, two sounds of `_ALIKE`, an h, an ending."""


@cache
def sounds(word: str) -> str:
    """Return the sounds of a name in Latin or Cyrillic letters, a sign each; doubled ones once.

    >>> sounds("Jane"), sounds("Джейн")
    ('Jein', 'Jein')
    """
    low = word.lower()
    if low.isascii():
        for pattern, sound in _SPELLING:
            low = re.sub(pattern, sound, low)
        low = re.sub(r"[^A-Za-z]", "", low)
    else:
        low = "".join(_CYRILLIC.get(letter, "") for letter in low).replace("dZ", "J")
    return re.sub(r"(.)\1+", r"\1", low)


def stem(word: str) -> str:
    """Return the sounds of a word in Cyrillic without an ending: the same in every case."""
    full = sounds(word)
    short = _ENDING.sub("", full)
    return short if len(short) > 1 else full


@cache
def unlike(name: str, word: str) -> float:
    """Return how little a name and a word in Cyrillic sound alike, a share of their length; 0 where they are one."""
    mine, other = sounds(name), sounds(word)
    short = mine.rstrip(_VOWELS)
    costs = [_distance(mine, other) / max(len(mine), len(other), 1)]
    if len(short) > 1 and len(stem(word)) > 1:
        costs.append(_CASE + _distance(short, stem(word)) / max(len(short), len(stem(word))))
    if len(stem(word)) > 1:
        costs.append(_CASE + _distance(mine, stem(word)) / max(len(mine), len(stem(word))))
    return min(costs)


def _distance(first: str, second: str) -> float:
    """Return the weighted edit distance of two rows of sounds."""
    row = [0.0]
    for sound in second:
        row.append(row[-1] + _alone(sound))
    for mine in first:
        after = [row[0] + _alone(mine)]
        for at, other in enumerate(second, 1):
            after.append(min(row[at] + _alone(mine), after[-1] + _alone(other), row[at - 1] + _instead(mine, other)))
        row = after
    return row[-1]


def _alone(sound: str) -> float:
    return _VOWEL if sound in _VOWELS else _SILENT if sound == "h" else 1.0


def _instead(mine: str, other: str) -> float:
    if mine == other:
        return 0.0
    if mine in _VOWELS and other in _VOWELS:
        return _VOWEL
    return _NEAR if any(mine in group and other in group for group in _ALIKE) else 1.2
