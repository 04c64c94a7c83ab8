"""One well-formed demo problem, and how the random draws of the demo are made.

Invariants:
  - everything is drawn with `Dice`, which uses only ``Random.random`` and ``Random.randrange``: the same seed gives
    the same problems on every machine and every Python version;
  - an item's ``answer`` is computed by the template that wrote the question; ``setup`` is the same computation
    written out in plain arithmetic, so that a test can do it again without the template.

Nothing here knows what a defect or an attempt is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import TypeVar

T = TypeVar("T")

LANGS = ("en", "fr", "es", "it", "de", "zh", "ru")
"""English and the six languages that the Magistral paper translates to."""


class Dice:
    """Draws that stay the same across Python versions."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def between(self, low: int, high: int) -> int:
        """Draw a whole number from low to high, both included."""
        return low + self._random.randrange(high - low + 1)

    def pick(self, options: Sequence[T]) -> T:
        """Draw one of the options."""
        return options[self._random.randrange(len(options))]

    def chance(self, probability: float) -> bool:
        """Return True with this probability."""
        return self._random.random() < probability

    def spread(self, width: float) -> float:
        """Draw a number from -width to width."""
        return (2.0 * self._random.random() - 1.0) * width

    def hits(self, trials: int, probability: float) -> int:
        """Draw from the binomial distribution."""
        return sum(self.chance(probability) for _ in range(trials))

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """Return the items in a random order (Fisher-Yates)."""
        deck = list(items)
        for last in range(len(deck) - 1, 0, -1):
            other = self._random.randrange(last + 1)
            deck[last], deck[other] = deck[other], deck[last]
        return deck


@dataclass(frozen=True, slots=True)
class Item:
    """A problem with one right answer.

    Example: ``Item("What is 3 + 4 * 2?", Fraction(11), "3 + 4 * 2", "two_steps", 2)``
    """

    question: str
    answer: Fraction
    setup: str  # arithmetic over + - * / ^ and gcd, lcm, mod, sqrt; its value is the answer
    topic: str
    level: int  # 1 (one easy step) … 5
    lang: str = "en"
    unit: str = ""  # a word that may stand behind the answer: cm, apples
    prefix: str = ""  # what may stand before it: $
    variable: str = ""  # the unknown of an equation
    percent: bool = False  # the question asks for a percentage
    exact: str = ""  # LaTeX of an answer that is no rational number; `answer` is then its square

    @property
    def reference(self) -> str:
        """Return the reference answer in the plainest form."""
        return self.exact or plain_number(self.answer)

    @property
    def worked(self) -> str:
        """Return the computation in one line."""
        return f"{self.setup} = {self.reference}"


def is_decimal(value: Fraction) -> bool:
    """Return whether the number has a short exact decimal form."""
    return 1000 % value.denominator == 0


def decimal(value: Fraction) -> str:
    """Return the exact decimal form: 3/4 → 0.75.

    Raises:
        ValueError: it has more than three places.
    """
    if not is_decimal(value):
        raise ValueError(f"{value} has no decimal form of three places")
    whole, rest = divmod(abs(value.numerator) * (1000 // value.denominator), 1000)
    digits = f"{whole}.{rest:03d}".rstrip("0").rstrip(".")
    return f"-{digits}" if value < 0 else digits


def plain_number(value: Fraction) -> str:
    """Write a whole number, else a short decimal, else a fraction with a slash."""
    return decimal(value) if is_decimal(value) else f"{value.numerator}/{value.denominator}"


def latex_fraction(value: Fraction, factor: int = 1) -> str:
    """Write ``\\frac{3}{4}``; ``factor`` leaves it unreduced: ``\\frac{6}{8}``."""
    sign = "-" if value < 0 else ""
    return f"{sign}\\frac{{{abs(value.numerator) * factor}}}{{{value.denominator * factor}}}"
