"""The limits that the formulas of a statement name: ``1 ≤ n ≤ 10^5``, ``0 \\le a_i < 2^{31}``, as numbers.

What it does not do: read words, or know which number of the input a name is. Callers match by value
(`StatedBound.holds`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_DIGITS = r"\d+(?:(?:[,_\s]|\{,\}|\{?\\[,;!]\}?)\d{3}(?!\d))*"
_POWER = r"\s*(?:\^|\*\*)\s*\{?\s*[-−]?\s*\d+\}?"
_NUMBER = rf"[-−]?\s*{_DIGITS}(?:\s*(?:\\cdot|\*|×|\\times)\s*10{_POWER}|{_POWER})?"
_LESS = r"(?:\\leq?slant|\\leq?|≤|<=|<|\\lt)"
_CHAIN = re.compile(rf"({_NUMBER})\s*({_LESS})\s*([^\d<>≤=$\n][^<>≤=\n]{{0,60}}?)\s*({_LESS})\s*({_NUMBER})")
_ABSOLUTE = re.compile(
    rf"((?:\|\s*[A-Za-z](?:_\{{?\w+\}}?)?\s*\|\s*(?:,|\band\b)?\s*)+)\s*(?:\\leq?(?:slant)?|≤|<=)\s*({_NUMBER})"
)
_MOST = 10**200


@dataclass(frozen=True, slots=True, order=True)
class StatedBound:
    """Numbers that a statement allows, both ends included.

    Example: ``StatedBound(1, 100000)``
    """

    low: int
    high: int

    def holds(self, low: int, high: int) -> bool:
        """Return whether everything from ``low`` to ``high`` is allowed."""
        return self.low <= low and high <= self.high


def stated_bounds(statement: str) -> tuple[StatedBound, ...]:
    """Return all limits of a statement, narrow ones first.

    Example: ``stated_bounds("$1 \\\\le n \\\\le 10^5$")`` is ``(StatedBound(1, 100000),)``
    """
    bounds: set[StatedBound] = set()
    for match in _CHAIN.finditer(statement):
        low, high = _value(match[1]), _value(match[5])
        if low is not None and high is not None:
            strict = [sign in ("<", "\\lt") for sign in (match[2], match[4])]
            bounds.add(StatedBound(low + strict[0], high - strict[1]))
    for match in _ABSOLUTE.finditer(statement):
        high = _value(match[2])
        if high is not None:
            bounds.add(StatedBound(-high, high))
    return tuple(sorted((one for one in bounds if one.low < one.high), key=lambda one: (one.high - one.low, one.low)))


def _value(text: str) -> int | None:
    """Return the whole number that a text denotes: digits with separators, powers, a factor times a power."""
    plain = re.sub(r"[\s,_{}]|\\[,;! ]?", "", text.replace("−", "-").replace("\\cdot", "*").replace("\\times", "*"))
    plain = plain.replace("×", "*").replace("**", "^")
    match = re.fullmatch(r"(-?)(?:(\d+)\*)?(\d+)(?:\^(\d+))?", plain)
    if match is None:
        return None
    base, power = int(match[3]), int(match[4] or 1)
    if power > 200 or base > _MOST:
        return None
    value = int(match[2] or 1) * base**power
    return (-value if match[1] else value) if value <= _MOST else None
