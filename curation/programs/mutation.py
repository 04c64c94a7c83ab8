"""Changes given inputs into new ones, with counts updated and numbers in the seen or stated range.

Invariant: pure, determined by inputs and seed. New inputs may be invalid.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product

_DIGITS = r"\d+(?:(?:[,_\s]|\{,\}|\{?\\[,;!]\}?)\d{3}(?!\d))*"
_POWER = r"\s*(?:\^|\*\*)\s*\{?\s*[-−]?\s*\d+\}?"
_NUMBER = rf"[-−]?\s*{_DIGITS}(?:\s*(?:\\cdot|\*|×|\\times)\s*10{_POWER}|{_POWER})?"
_LESS = r"(?:\\leq?slant|\\leq?|≤|<=|<|\\lt)"
_CHAIN = re.compile(rf"({_NUMBER})\s*({_LESS})\s*([^\d<>≤=$\n][^<>≤=\n]{{0,60}}?)\s*({_LESS})\s*({_NUMBER})")
_ABSOLUTE = re.compile(rf"\|\s*[A-Za-z](?:_\{{?\w+\}}?)?\s*\|\s*(?:\\leq?(?:slant)?|≤|<=)\s*({_NUMBER})")
_MAX_BOUND = 10**200

Line = list[str]
Position = tuple[int, int]
"""A line's number in the head, or -1 minus its number of tokens, and the token's index."""
Ranges = dict[Position, tuple[int, int]]

HEAD = 3
_WHOLE = re.compile(r"-?(?:0|[1-9]\d{0,18})")
_TRIES = 8
_MAX_LINES = 20_000


@dataclass(frozen=True, slots=True, order=True)
class StatedBound:
    """A range that a statement allows, both ends included."""

    low: int
    high: int

    def holds(self, low: int, high: int) -> bool:
        """Return whether the whole range is allowed."""
        return self.low <= low and high <= self.high


def stated_bounds(statement: str) -> tuple[StatedBound, ...]:
    r"""Return the limits in a statement's formulas, narrow ones first.

    Example: ``stated_bounds("$1 \le n \le 10^5$")`` is ``(StatedBound(1, 100000),)``
    """
    bounds = set()
    for match in _CHAIN.finditer(statement):
        low, high = _value(match[1]), _value(match[5])
        if low is not None and high is not None:
            strict = [sign in ("<", "\\lt") for sign in (match[2], match[4])]
            bounds.add(StatedBound(low + strict[0], high - strict[1]))
    for match in _ABSOLUTE.finditer(statement):
        if (high := _value(match[1])) is not None:
            bounds.add(StatedBound(-high, high))
    wide = (bound for bound in bounds if bound.low < bound.high)
    return tuple(sorted(wide, key=lambda bound: (bound.high - bound.low, bound.low)))


def _value(text: str) -> int | None:
    plain = re.sub(r"[\s,_{}]|\\[,;! ]?", "", text.replace("−", "-").replace("\\cdot", "*").replace("\\times", "*"))
    plain = plain.replace("×", "*").replace("**", "^")
    match = re.fullmatch(r"(-?)(?:(\d+)\*)?(\d+)(?:\^(\d+))?", plain)
    if match is None:
        return None
    base, power = int(match[3]), int(match[4] or 1)
    if power > 200 or base > _MAX_BOUND:
        return None
    value = int(match[2] or 1) * base**power
    return (-value if match[1] else value) if value <= _MAX_BOUND else None


def read_lines(text: str) -> list[Line] | None:
    """Return each line's tokens; None for unusual white space."""
    lines = [line.split(" ") if line else [] for line in text.rstrip("\n").split("\n")]
    if any("" in line or "\t" in "".join(line) or "\r" in "".join(line) for line in lines):
        return None
    return lines


def written(lines: Sequence[Line]) -> str:
    """Return lines of tokens as an input."""
    return "\n".join(" ".join(line) for line in lines) + "\n"


def is_whole(token: str) -> bool:
    """Return whether a token is a whole number."""
    return _WHOLE.fullmatch(token) is not None


@dataclass(frozen=True, slots=True)
class CountField:
    """A number in the head that counts line ``of``'s tokens or letters, or the lines from it on."""

    position: Position
    kind: str
    of: int

    def measure(self, lines: Sequence[Line]) -> int | None:
        """Return the right count, or None if the line does not fit."""
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
    """What the inputs share; ``columns`` holds numbers and ``words`` letters by position."""

    counts: tuple[CountField, ...]
    columns: dict[Position, tuple[int, ...]]
    words: dict[Position, str]
    loose: bool  # lines after the head differ in their number of tokens, so their numbers may be counts


def position_of(lines: Sequence[Line], row: int, token: int) -> Position:
    """Return the position of a token."""
    return (row, token) if row < HEAD else (-1 - len(lines[row]), token if len(lines[row]) <= HEAD else 0)


def _tokens(lines: Sequence[Line]) -> Iterator[tuple[int, int, str]]:
    return ((row, token, text) for row, line in enumerate(lines) for token, text in enumerate(line))


def _token_at(lines: Sequence[Line], position: Position) -> str | None:
    row, token = position
    return lines[row][token] if row < len(lines) and token < len(lines[row]) else None


def shape_of(inputs: Sequence[Sequence[Line]]) -> InputShape:
    """Return the shape of some inputs, at least one."""
    columns: dict[Position, set[int]] = {}
    words: dict[Position, set[str]] = {}
    for lines in inputs:
        for row, token, text in _tokens(lines):
            is_long = row < HEAD < len(lines[row])  # a long line is one column
            position = (row, 0) if is_long else position_of(lines, row, token)
            if is_whole(text):
                columns.setdefault(position, set()).add(int(text))
            else:
                words.setdefault(position, set()).update(text)
    return InputShape(
        tuple(_counts(inputs)),
        {position: tuple(sorted(values)) for position, values in columns.items() if position not in words},
        {position: "".join(sorted(letters)) for position, letters in words.items() if position not in columns},
        len({len(line) for lines in inputs for line in lines[HEAD:]}) > 1,
    )


def _counts(inputs: Sequence[Sequence[Line]]) -> list[CountField]:
    counts = []
    for row, token in product(range(HEAD), repeat=2):
        rows = [(lines, text) for lines in inputs if (text := _token_at(lines, (row, token))) is not None]
        if not all(is_whole(text) for _, text in rows) or len({int(text) for _, text in rows}) < 2:
            continue
        candidates = [CountField((row, token), "lines", of) for of in range(row + 1, row + HEAD + 1)]
        candidates += [
            CountField((row, token), kind, of) for of in range(row + 1, row + 3) for kind in ("tokens", "letters")
        ]
        fitting = (count for count in candidates if all(count.measure(lines) == int(text) for lines, text in rows))
        if (first := next(fitting, None)) is not None:
            counts.append(first)
    return counts


def keeps_counts(text: str, inputs: Sequence[str]) -> bool:
    r"""Return whether all numbers that count in ``inputs`` are right in this input.

    Example: ``keeps_counts("3\n5 1\n", ["1\n6\n", "2\n4 4\n"])`` is ``False``
    """
    lines = read_lines(text)
    read = [seen for example in inputs if (seen := read_lines(example)) is not None and any(seen)]
    if lines is None or not read:
        return False  # nothing is known
    return all(str(count.measure(lines)) == _token_at(lines, count.position) for count in shape_of(read).counts)


def mutate_input(inputs: Sequence[str], bounds: Sequence[StatedBound], count: int, seed: str) -> list[str]:
    """Return up to ``count`` distinct new inputs; none for unreadable formats."""
    read = [lines for text in inputs if (lines := read_lines(text)) is not None and any(lines)]
    if not read:
        return []
    draw = random.Random(int.from_bytes(hashlib.blake2b(seed.encode(), digest_size=8).digest(), "big"))
    shape = shape_of(read)
    ranges = {position: _range(values, bounds) for position, values in shape.columns.items()}
    texts = set(inputs)
    new_texts: list[str] = []
    small = sorted(read, key=lambda lines: sum(map(len, lines)))[: max(4, len(read) // 2)]
    for number in range(count * _TRIES):
        if len(new_texts) >= count:
            break
        draft = _Draft(draw.choice(small if number % 3 else read), shape, ranges, draw)
        for change in draw.sample(_CHANGES, k=draw.choice((1, 1, 2))):
            change(draft)
        draft.recount()
        text = written(draft.lines)
        if text not in texts and len(draft.lines) <= _MAX_LINES:
            texts.add(text)
            new_texts.append(text)
    return new_texts


def _range(values: Sequence[int], bounds: Sequence[StatedBound]) -> tuple[int, int]:
    """Return the seen range, or the narrowest limit that shares an end."""
    low, high = values[0], values[-1]
    fitting = [bound for bound in bounds if bound.holds(low, high)]
    if fitting and low != high and (fitting[0].low == low or fitting[0].high == high):
        return fitting[0].low, fitting[0].high
    return low, high


class _Draft:
    """A copy of an input's lines, which is changed in place."""

    def __init__(self, lines: Sequence[Line], shape: InputShape, ranges: Ranges, draw: random.Random) -> None:
        self.lines = [list(line) for line in lines]
        self._shape, self._ranges, self._draw = shape, ranges, draw
        self._counting = {count.position for count in shape.counts}

    def _free(self) -> list[tuple[int, int, Position]]:
        free = []
        for row, token, text in _tokens(self.lines):
            if row >= HEAD and self._shape.loose:
                break
            is_long = row < HEAD < len(self.lines[row])
            position = (row, 0) if is_long else position_of(self.lines, row, token)
            if position in self._shape.columns and (row, token) not in self._counting and is_whole(text):
                free.append((row, token, position))
        return free

    def redraw(self) -> None:
        free, draw = self._free(), self._draw
        share = draw.choice((0.1, 0.5, 1.0))
        for row, token, position in free:
            if draw.random() < share or len(free) == 1:
                low, high = self._ranges[position]
                if draw.random() < 0.3:
                    high = min(high, low + draw.choice((1, 2, 5, 10)))
                self.lines[row][token] = str(draw.randint(low, high))

    def extreme(self) -> None:
        free, draw = self._free(), self._draw
        if not free:
            return
        mode = draw.choice(("low", "high", "mixed"))
        only = draw.choice(free)[2] if draw.random() < 0.4 else None
        for row, token, position in free:
            if only is None or position == only:
                low, high = self._ranges[position]
                is_low = mode == "low" or (mode == "mixed" and draw.random() < 0.5)
                self.lines[row][token] = str(low if is_low else high)

    def repeat(self) -> None:
        free = self._free()
        if free:
            position = self._draw.choice(free)[2]
            value = str(self._draw.randint(*self._ranges[position]))
            for row, token, _ in (number for number in free if number[2] == position):
                self.lines[row][token] = value

    def resize(self) -> None:
        if not self._shape.counts:
            return
        lines, draw, count = self.lines, self._draw, self._draw.choice(self._shape.counts)
        low, high = self._ranges.get(count.position, (1, 1))
        have = count.measure(lines)
        if have is None or _token_at(lines, count.position) is None:
            return
        size = draw.choice(
            (low, max(low, 1), max(low, have // 2), have + 1, draw.randint(low, min(high, 2 * have + 2)))
        )
        size = max(low, min(size, high, 4 * have + 4, _MAX_LINES))
        if count.kind == "lines":
            body = lines[count.of :]
            lines[count.of :] = [list(draw.choice(body)) for _ in range(size)] if body and size > have else body[:size]
            return
        line = lines[count.of]
        letters = list(line[0]) if count.kind == "letters" else line
        tokens = [draw.choice(letters) for _ in range(size)] if letters and size > have else letters[:size]
        lines[count.of] = ["".join(tokens)] if count.kind == "letters" else list(tokens)

    def shuffle(self) -> None:
        lines, draw = self.lines, self._draw
        long = [line for line in lines if len(line) > HEAD]
        if long and draw.random() < 0.6:
            line = draw.choice(long)
            mode = draw.random()
            if mode < 0.4 and all(map(is_whole, line)):
                line.sort(key=int, reverse=mode < 0.2)
            else:
                draw.shuffle(line)
        elif not self._shape.loose and len(lines) > HEAD + 1:
            body = lines[HEAD:]
            draw.shuffle(body)
            lines[HEAD:] = body

    def respell(self) -> None:
        lines, draw = self.lines, self._draw
        words = [
            (row, token, letters)
            for row, token, text in _tokens(lines)
            if (letters := self._shape.words.get(position_of(lines, row, token))) and not is_whole(text)
        ]
        same_letter = draw.random() < 0.3
        for row, token, letters in words:
            if draw.random() < 0.7 or len(words) == 1:
                size = len(lines[row][token])
                same = draw.choice(letters) * size if same_letter else ""
                lines[row][token] = same or "".join(draw.choice(letters) for _ in range(size))

    def recombine(self) -> None:
        for whole in (True, False):
            positions = [
                (row, token)
                for row, token, text in _tokens(self.lines)
                if is_whole(text) == whole and (row, token) not in self._counting
            ]
            for _ in range(self._draw.choice((0, 1, 1, 2)) if len(positions) > 1 else 0):
                (row, token), (other_row, other_token) = self._draw.sample(positions, 2)
                self.lines[row][token] = self.lines[other_row][other_token]

    def edit_lines(self) -> None:
        lines, draw = self.lines, self._draw
        if len(lines) < 3:
            return
        line = lines.pop(draw.randrange(1, len(lines)))
        way = draw.randrange(3)
        if way:
            lines.insert(draw.randint(1, len(lines)), line)
        if way == 2:
            lines.insert(draw.randint(1, len(lines)), list(line))

    def recount(self) -> None:
        for count in self._shape.counts:
            row, token = count.position
            measured = count.measure(self.lines)
            if measured is not None and _token_at(self.lines, count.position) is not None:
                self.lines[row][token] = str(measured)


_CHANGES: list[Callable[[_Draft], None]] = [
    _Draft.redraw,
    _Draft.extreme,
    _Draft.repeat,
    _Draft.resize,
    _Draft.shuffle,
    _Draft.respell,
    _Draft.recombine,
    _Draft.edit_lines,
]
