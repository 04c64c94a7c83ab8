"""Numbers and words that inputs may turn on: those that the statement quotes, and the literals of the solutions.

A program that goes wrong at 10^9 + 7, at the 26th letter or at the word "meow" often holds that literal, and so does
the statement. Inputs near them tell more programs apart than chance does.

Invariants: pure; what is found is only ever drawn within a column's range and letters.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable
from dataclasses import dataclass

from curation.programs.test_generation.limits import bounds_in_order

_QUOTED = re.compile(r"[\"“`']{1,2}(\w{2,20})[\"”']{1,2}|\\(?:texttt|emph|textit|mathtt)\{(\w{2,20})\}")
_STRINGS = re.compile(r"\"(\w{2,20})\"|'(\w{2,20})'")
_NUMBERS = re.compile(r"(?<![\w.])\d{1,18}(?![\w.])")
_MOST = 60
_SMALL = 7
"""Counts up to so far above the least are drawn often enough without hints."""


@dataclass(frozen=True, slots=True)
class Hints:
    """Numbers, in their order, and words."""

    numbers: tuple[int, ...] = ()
    words: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.numbers or self.words)


def find_hints(statement: str, codes: Iterable[str] = ()) -> Hints:
    """Return the hints of a statement and of solutions in any language, those that come first where there are many.

    Example: ``find_hints('the word "meow"', ["if n > 4096: n = 7"])`` is ``Hints((7, 4096), ("meow",))``
    """
    words = [match[1] or match[2] for match in _QUOTED.finditer(statement)]
    numbers = {int(text) for text in _NUMBERS.findall(statement)}
    numbers |= {end for bound in bounds_in_order(statement) for end in (bound.low, bound.high)}
    for code in codes:
        words += [match[1] or match[2] for match in _STRINGS.finditer(code)]
        numbers |= {int(text) for text in _NUMBERS.findall(code)}
    plain = sorted(number for number in numbers if number > 1)
    return Hints(tuple(plain[:_MOST]), tuple(dict.fromkeys(words))[:_MOST])


def hinted_count(hints: Hints, low: int, high: int, draw: random.Random) -> int:
    """Return a count that is a hinted number, or half of the greatest one, or next to it; none of the smallest."""
    near = [number for number in hints.numbers if low + _SMALL < number <= high]
    number = draw.choice([*near, (low + high) // 2]) + draw.choice((-1, 0, 0, 0, 0, 1))
    return max(low, min(high, number))


def hinted_word(word: str, hint: str, sizes: tuple[int, int], letters: str, draw: random.Random) -> str:
    """Return a word with a hinted one in it, which one edit may have changed; of a length that the sizes allow.

    The edits are those of typing: a letter left out, put in, replaced, or two turned round.
    """
    place = draw.randrange(len(hint))
    edits = (
        hint,
        hint[:place] + hint[place + 1 :],
        hint[:place] + draw.choice(letters) + hint[place:],
        hint[:place] + draw.choice(letters) + hint[place + 1 :],
        hint[:place] + hint[place : place + 2][::-1] + hint[place + 2 :],
    )
    edited = draw.choice(edits)
    start = draw.choice((0, len(word), draw.randint(0, len(word))))
    whole = f"{word[:start]}{edited}{word[start:]}" if draw.random() < 0.7 else edited
    if sizes[0] == sizes[1]:
        return (whole + word)[: len(word)]
    return whole[: sizes[1]] if len(whole) >= max(1, sizes[0]) else word
