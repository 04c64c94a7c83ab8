"""What inputs of one problem have in common: which numbers count something, and what the others range over.

Numbers that count are found by value, over all inputs seen: the number of tokens on a line, the number of lines that
follow, the length of a word. A relation must hold in every input that has the place, with at least two different
values among them. Columns are the values at one place of a line: the first lines (as many as all inputs agree on, at
most `HEAD`) each have places of their own, the lines behind them share theirs by the number of their tokens.

Invariants: pure; nothing is said of inputs of several cases, whose later lines count what follows: such numbers stay
as they are, for they lie in lines whose number of tokens differs (`InputShape.loose`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

Line = list[str]
Place = tuple[int, int]
"""A line's kind, the line's number in the head or -1 minus its number of tokens, and the token's place in it."""

HEAD = 3
_WHOLE = re.compile(r"-?(?:0|[1-9]\d{0,18})")


def read_lines(text: str) -> list[Line] | None:
    """Return the tokens of each line; None where lines are separated by more than single spaces and line breaks.

    Blank lines stay as empty lists, but for those at the end.
    """
    lines = [line.split(" ") if line else [] for line in text.rstrip("\n").split("\n")]
    if any("" in line or "\t" in "".join(line) or "\r" in "".join(line) for line in lines):
        return None
    return lines


def written(lines: Sequence[Line]) -> str:
    """Return lines of tokens as the text of an input."""
    return "\n".join(" ".join(line) for line in lines) + "\n"


def is_whole(token: str) -> bool:
    """Return whether a token is a whole number as inputs write it."""
    return _WHOLE.fullmatch(token) is not None


@dataclass(frozen=True, slots=True)
class CountField:
    """A number in the head that counts. ``kind``: tokens of line ``of``, lines from ``of`` on, or letters of the word
    that is line ``of``."""

    place: Place
    kind: str
    of: int

    def measure(self, lines: Sequence[Line]) -> int | None:
        """Return the number that it should be in an input; None where the input has no such line."""
        if self.kind == "lines":
            return len(lines) - self.of if len(lines) >= self.of else None
        if self.of >= len(lines):
            return None
        line = lines[self.of]
        if self.kind == "tokens":
            return len(line)
        return len(line[0]) if len(line) == 1 else None


@dataclass(frozen=True, slots=True)
class InputShape:
    """What the inputs share. ``columns`` holds the whole numbers seen at each place, ``words`` the letters."""

    counts: tuple[CountField, ...]
    columns: dict[Place, tuple[int, ...]]
    words: dict[Place, str]
    loose: bool  # lines behind the head differ in their number of tokens: their numbers may count something


def place_of(lines: Sequence[Line], row: int, token: int) -> Place:
    """Return the place of a token."""
    return (row, token) if row < HEAD else (-1 - len(lines[row]), token if len(lines[row]) <= HEAD else 0)


def shape_of(inputs: Sequence[Sequence[Line]]) -> InputShape:
    """Return the shape of some inputs, at least one."""
    columns: dict[Place, list[int]] = {}
    words: dict[Place, set[str]] = {}
    for lines in inputs:
        for row, line in enumerate(lines):
            for token, text in enumerate(line):
                place = place_of(lines, row, token)
                if row < HEAD and len(line) > HEAD:
                    place = (row, 0)  # a long line is one column
                if is_whole(text):
                    columns.setdefault(place, []).append(int(text))
                else:
                    words.setdefault(place, set()).update(text)
    mixed = set(columns) & set(words)
    body = {len(line) for lines in inputs for line in lines[HEAD:]}
    return InputShape(
        tuple(_counts(inputs)),
        {place: tuple(sorted(set(values))) for place, values in columns.items() if place not in mixed},
        {place: "".join(sorted(letters)) for place, letters in words.items() if place not in mixed},
        len(body) > 1,
    )


def keeps_counts(text: str, others: Sequence[str]) -> bool:
    """Return whether the numbers of an input count what they count in all others; false if nothing can be read.

    Example: ``keeps_counts("2\\n7\\n", ["1\\n5\\n", "3\\n5 1 4\\n"])`` is false
    """
    lines, read = read_lines(text), [found for other in others if (found := read_lines(other)) is not None]
    if lines is None or not read:
        return False
    for count in shape_of(read).counts:
        row, token = count.place
        if row >= len(lines) or token >= len(lines[row]) or str(count.measure(lines)) != lines[row][token]:
            return False
    return True


def _counts(inputs: Sequence[Sequence[Line]]) -> list[CountField]:
    counts = []
    for row in range(HEAD):
        for token in range(HEAD):
            rows = [lines for lines in inputs if row < len(lines) and token < len(lines[row])]
            if not rows or not all(is_whole(lines[row][token]) for lines in rows):
                continue
            values = {int(lines[row][token]) for lines in rows}
            if len(values) < 2:
                continue
            candidates = [CountField((row, token), "lines", of) for of in range(row + 1, row + HEAD + 1)]
            candidates += [
                CountField((row, token), kind, of) for of in range(row + 1, row + 3) for kind in ("tokens", "letters")
            ]
            for count in candidates:
                if all(count.measure(lines) == int(lines[row][token]) for lines in rows):
                    counts.append(count)
                    break
    return counts
