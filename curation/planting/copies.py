"""Copies of a statement: the same problem in another typography or with a word exchanged, or another problem."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

RECIPES = ("typography", "word", "number", "half")
"""The first two are the same problem, the others are not."""

_NUMBER = re.compile(r"\d+")
_LEAST_LETTERS = 6


def changed(text: str, recipe: str, draw: random.Random, words: Sequence[str]) -> str:
    """Return a copy of the text, changed by the recipe.

    Args:
        recipe: ``typography`` (case, spaces, LaTeX spacing), ``word`` (one word in thirty replaced, no number),
            ``number`` (one number changed), ``half`` (every other word replaced).
        words: that are put in the place of others.
    """
    if recipe == "typography":
        return text.upper().replace(" ", "  ").replace(".", " .") if "\\" not in text else text.replace(" ", " \\, ")
    if recipe == "number":
        numbers = list(_NUMBER.finditer(text))
        if not numbers:
            return text + " 17"
        number = draw.choice(numbers)
        return text[: number.start()] + str(int(number[0]) + 1) + text[number.end() :]
    parts = text.split(" ")
    plain = exchangeable(parts)
    count = min(max(1, len(parts) // 30), len(plain)) if recipe == "word" else len(parts) // 2
    for place in draw.sample(plain if recipe == "word" else range(len(parts)), count):
        parts[place] = draw.choice(words)
    return " ".join(parts)


def exchangeable(parts: Sequence[str]) -> list[int]:
    """Return the places of long words of letters alone, which may be exchanged without changing what is asked."""
    return [place for place, part in enumerate(parts) if part.isalpha() and len(part) >= _LEAST_LETTERS]
