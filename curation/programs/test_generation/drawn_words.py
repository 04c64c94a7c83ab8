"""Words of new inputs: their letters by the words that were seen."""

from __future__ import annotations

import random
import string

from curation.programs.test_generation.columns import Column

BRACKETS = "()[]{}"
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_ALPHABETS = (string.ascii_lowercase, string.ascii_uppercase, string.digits)


def whole_alphabets(letters: str) -> str:
    """Return the letters, and all others of their cases."""
    others = "".join(alphabet for alphabet in _ALPHABETS if set(alphabet) & set(letters))
    return "".join(sorted(set(letters) | set(others)))


def spelt_word(column: Column, size: int, letters: str, draw: random.Random) -> str:
    """Return a word whose letters are of the classes that a word seen has; its last class goes on."""
    model = draw.choice(column.words)
    classes = [next((c for c in _ALPHABETS if letter in c), letter) for letter in model]
    kinds = [*classes, *[classes[-1]] * size][:size]
    choices = {kind: "".join(letter for letter in letters if letter in kind) or kind for kind in set(kinds)}
    return "".join(draw.choice(choices[kind]) for kind in kinds)


def without_equals(first: list[str], second: list[str], draw: random.Random) -> list[str]:
    """Return the second words, those changed to others of them that equal the first of their row."""
    known = sorted(set(second))
    return [
        draw.choice(others) if a == b and (others := [word for word in known if word != a]) else b
        for a, b in zip(first, second, strict=True)
    ]


def balanced_word(letters: str, size: int, draw: random.Random) -> str:
    """Return brackets that match, of an even length that is at most ``size`` and at least 2: pairs in a row, pairs in
    one another, or both by chance.
    """
    kinds = [letter for letter in letters if letter in _CLOSING] or ["("]
    opens = draw.choice((0.1, 0.5, 0.5, 0.5, 0.9))
    word: list[str] = []
    waiting: list[str] = []
    half = max(1, size // 2)
    for place in range(2 * half):
        may_open = len(waiting) < 2 * half - place
        if may_open and (not waiting or draw.random() < opens):
            word.append(draw.choice(kinds))
            waiting.append(_CLOSING[word[-1]])
        else:
            word.append(waiting.pop())
    return "".join(word)
