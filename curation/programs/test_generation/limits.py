"""The limits that a statement names: ``1 ≤ n ≤ 10^5``, ``0 \\le a_i < 2^{31}``, as numbers.

What it does not do: know which number of the input a name stands for. Callers match by value (`StatedBound.holds`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_DIGITS = r"\d+(?:(?:[,_\s]|\{,\}|\{?\\[,;!]\}?)\d{3}(?!\d))*"
_POWER = r"\s*(?:\^|\*\*)\s*\{?\s*[-−]?\s*\d+\}?"
_NUMBER = rf"[-−]?\s*{_DIGITS}(?:\s*(?:\\cdot|\*|×|\\times)\s*10{_POWER}|{_POWER})?"
_LESS = r"(?:\\leq?slant|\\leq?|≤|<=|<|\\lt)"
_CHAIN = re.compile(rf"({_NUMBER})\s*({_LESS})\s*([^\d<>≤=$\n][^<>≤=\n]{{0,60}}?)\s*({_LESS})\s*({_NUMBER})")
_BETWEEN = re.compile(
    r"\b(?:between\s+\$?(-?\d[\d,]*)\$?\s+and|from\s+\$?(-?\d[\d,]*)\$?\s+to)\s+\$?(-?\d[\d,]*(?:\^\{?\d+\}?)?)\$?",
    re.IGNORECASE,
)
_ABSOLUTE = re.compile(
    rf"((?:\|\s*[A-Za-z](?:_\{{?\w+\}}?)?\s*\|\s*(?:,|\band\b)?\s*)+)\s*(?:\\leq?(?:slant)?|≤|<=)\s*({_NUMBER})"
)
_LEAST_MOST = re.compile(rf"at least\s+\$?({_NUMBER})\$?\s+and\s+(?:at )?most\s+\$?({_NUMBER})", re.IGNORECASE)
_ABOVE = re.compile(rf"(?<![\w}}|)])([A-Za-z](?:_\w)?)\s*(?:\\leq?slant|\\leq?|≤|<=)\s*({_NUMBER})")
_MOST_WORDS = r"(?:bounded by|(?:is |are )?at most|(?:do(?:es)? )?not exceed(?:ing)?|no (?:more|greater) than|up to)"
_ABSOLUTE_WORDS = re.compile(
    rf"\babsolute values?(?: \w+)? {_MOST_WORDS}\s*\$?({_NUMBER})"
    rf"|{_MOST_WORDS}\s*\$?({_NUMBER})\$?\s*in (?:absolute value|magnitude)",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"(?<![A-Za-z\\])([A-Za-z])_\{?([1-9])\}?(?!\d)")
_OF_EACH = re.compile(r"(?<![A-Za-z\\])([A-Za-z])_\{?([ijk])\}?(?![A-Za-z0-9])")
_MANY = (
    r"(?<![A-Za-z\\]){}_\{{?(?:[a-zA-Z]\b|[1-9]\}}?\$?\s*,?\s*\$?\s*(?:\\[lc]?dots|\.\.\.|…))(?<!_[ijk])(?<!_\{{[ijk])"
)
_FORMULA = re.compile(r"\$[^$]+\$")
_LESS_BEFORE = re.compile(rf"{_LESS}[^\d$\n]{{0,60}}$")
_POSITIVE = re.compile(r"(?<!non-)\bpositive\b", re.IGNORECASE)
_AND = re.compile(r",|\band\b")
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


def with_numbered_names(statement: str) -> str:
    """Return a statement whose formulas on ``x_i`` are written out for ``x_1``, ``x_2`` … where there are no others.

    Example: ``with_numbered_names("$x_1$ $x_2$, $0 \\le x_i \\le 9$")`` is
    ``"$x_1$ $x_2$, $0 \\le x_1 \\le 9$, $0 \\le x_2 \\le 9$"``
    """
    numbers: dict[str, set[int]] = {}
    for name, number in _NUMBERED.findall(statement):
        numbers.setdefault(name, set()).add(int(number))
    known = {
        name: len(found)
        for name, found in numbers.items()
        if found == set(range(1, len(found) + 1)) and len(found) > 1
        and re.search(_MANY.format(name), statement) is None
    }  # fmt: skip

    def written_out(match: re.Match[str]) -> str:
        formula = match[0]
        used = _OF_EACH.findall(formula)
        counts = {known.get(name, 0) for name, _ in used}
        if not used or len(counts) > 1 or 0 in counts or len({index for _, index in used}) > 1:
            return formula
        return ", ".join(_OF_EACH.sub(rf"\g<1>_{at}", formula) for at in range(1, 1 + counts.pop()))

    return _FORMULA.sub(written_out, statement)


def stated_bounds(statement: str) -> tuple[StatedBound, ...]:
    """Return all limits of a statement, narrow ones first.

    Example: ``stated_bounds("$1 \\\\le n \\\\le 10^5$")`` is ``(StatedBound(1, 100000),)``
    """
    bounds = set(bounds_in_order(statement))
    return tuple(sorted(bounds, key=lambda bound: (bound.high - bound.low, bound.low)))


def bounds_in_order(statement: str) -> tuple[StatedBound, ...]:
    """Return the limits as they stand in the text, once for each name: ``1 ≤ n, m ≤ 5`` counts twice."""
    positioned: list[tuple[int, StatedBound]] = []
    for match in _CHAIN.finditer(statement):
        low, high = _value(match[1]), _value(match[5])
        if low is not None and high is not None:
            strict = [sign in ("<", "\\lt") for sign in (match[2], match[4])]
            names = len(_AND.findall(match[3])) + 1
            positioned += [(match.start(), StatedBound(low + strict[0], high - strict[1]))] * names
    ends = [(match.start(), match[1] or match[2], match[3]) for match in _BETWEEN.finditer(statement)]
    ends += [(match.start(), match[1], match[2]) for match in _LEAST_MOST.finditer(statement)]
    for start, least, greatest in ends:
        low, high = _value(least), _value(greatest)
        if low is not None and high is not None:
            positioned.append((start, StatedBound(low, high)))
    for match in _ABSOLUTE.finditer(statement):
        high = _value(match[2])
        if high is not None:
            positioned += [(match.start(), StatedBound(-high, high))] * (match[1].count("|") // 2)
    for match in _ABSOLUTE_WORDS.finditer(statement):
        high = _value(match[1] or match[2])
        if high is not None:
            positioned.append((match.start(), StatedBound(-high, high)))
    for match in _ABOVE.finditer(statement):  # the end of a chain is none of its own
        before = statement[max(0, match.start() - 70) : match.start()]
        high = _value(match[2])
        if high is not None and _LESS_BEFORE.search(before) is None and _POSITIVE.search(before) is not None:
            positioned.append((match.start(), StatedBound(1, high)))
    positioned.sort(key=lambda entry: entry[0])
    return tuple(bound for _, bound in positioned if bound.low < bound.high)


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
