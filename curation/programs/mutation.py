"""Changes given inputs into new ones, with counts updated and numbers in the seen or stated range.

Invariant: pure, determined by inputs and seed. New inputs may be invalid.
"""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_DIGITS = r"\d+(?:(?:[,_\s]|\{,\}|\{?\\[,;!]\}?)\d{3}(?!\d))*"
_POWER = r"\s*(?:\^|\*\*)\s*\{?\s*[-−]?\s*\d+\}?"
_NUMBER = rf"[-−]?\s*{_DIGITS}(?:\s*(?:\\cdot|\*|×|\\times)\s*10{_POWER}|{_POWER})?"
_LESS = r"(?:\\leq?slant|\\leq?|≤|<=|<|\\lt)"
_CHAIN = re.compile(rf"({_NUMBER})\s*({_LESS})\s*([^\d<>≤=$\n][^<>≤=\n]{{0,60}}?)\s*({_LESS})\s*({_NUMBER})")
_ABSOLUTE = re.compile(rf"\|\s*[A-Za-z](?:_\{{?\w+\}}?)?\s*\|\s*(?:\\leq?(?:slant)?|≤|<=)\s*({_NUMBER})")
_MAX_BOUND = 10**200

Line = list[str]
Place = tuple[int, int]
"""A line's number in the head, or -1 minus its number of tokens, and the token's index."""

HEAD = 3
_WHOLE = re.compile(r"-?(?:0|[1-9]\d{0,18})")
_TRIES = 8
_MOST_LINES = 20_000


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
    """Parse a whole number, with separators, powers or a factor."""
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

    place: Place
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
    """What the inputs share; ``columns`` holds numbers and ``words`` letters by place."""

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


def keeps_counts(text: str, inputs: Sequence[str]) -> bool:
    r"""Return whether all numbers that count in ``inputs`` are right in this input.

    Example: ``keeps_counts("3\n5 1\n", ["1\n6\n", "2\n4 4\n"])`` is ``False``
    """
    lines = read_lines(text)
    read = [seen for one in inputs if (seen := read_lines(one)) is not None and any(seen)]
    if lines is None or not read:
        return False  # nothing is known
    for count in shape_of(read).counts:
        row, token = count.place
        have = row < len(lines) and token < len(lines[row])
        if not have or str(count.measure(lines)) != lines[row][token]:
            return False
    return True


def mutate_input(inputs: Sequence[str], bounds: Sequence[StatedBound], count: int, seed: str) -> list[str]:
    """Return up to ``count`` distinct new inputs; none for unreadable formats."""
    read = [lines for text in inputs if (lines := read_lines(text)) is not None and any(lines)]
    if not read:
        return []
    draw = random.Random(int.from_bytes(hashlib.blake2b(seed.encode(), digest_size=8).digest(), "big"))
    shape = shape_of(read)
    ranges = {place: _range(values, bounds) for place, values in shape.columns.items()}
    texts = set(inputs)
    new_texts: list[str] = []
    small = sorted(read, key=lambda lines: sum(map(len, lines)))[: max(4, len(read) // 2)]
    for number in range(count * _TRIES):
        if len(new_texts) >= count:
            break
        source = draw.choice(small if number % 3 else read)
        lines = [list(line) for line in source]
        for change in draw.sample(_CHANGES, k=draw.choice((1, 1, 2))):
            change(lines, shape, ranges, draw)
        _recount(lines, shape)
        text = written(lines)
        if text not in texts and len(lines) <= _MOST_LINES:
            texts.add(text)
            new_texts.append(text)
    return new_texts


Ranges = dict[Place, tuple[int, int]]
Change = Callable[[list[Line], InputShape, Ranges, random.Random], None]


def _range(values: Sequence[int], bounds: Sequence[StatedBound]) -> tuple[int, int]:
    """Return the seen range, or the narrowest limit that shares an end."""
    low, high = values[0], values[-1]
    fitting = [bound for bound in bounds if bound.holds(low, high)]
    if fitting and low != high and (fitting[0].low == low or fitting[0].high == high):
        return fitting[0].low, fitting[0].high
    return low, high


def _free(lines: list[Line], shape: InputShape) -> list[tuple[int, int, Place]]:
    """Return whole numbers that may change, at known positions."""
    counting = {count.place for count in shape.counts}
    free = []
    for row, line in enumerate(lines):
        if row >= HEAD and shape.loose:
            break
        for token, text in enumerate(line):
            place = (row, 0) if row < HEAD < len(line) else place_of(lines, row, token)
            if place in shape.columns and (row, token) not in counting and is_whole(text):
                free.append((row, token, place))
    return free


def _redraw(lines: list[Line], shape: InputShape, ranges: Ranges, draw: random.Random) -> None:
    free = _free(lines, shape)
    share = draw.choice((0.1, 0.5, 1.0))
    for row, token, place in free:
        if draw.random() < share or len(free) == 1:
            low, high = ranges[place]
            if draw.random() < 0.3:
                high = min(high, low + draw.choice((1, 2, 5, 10)))
            lines[row][token] = str(draw.randint(low, high))


def _extreme(lines: list[Line], shape: InputShape, ranges: Ranges, draw: random.Random) -> None:
    free = _free(lines, shape)
    if not free:
        return
    mode = draw.choice(("low", "high", "mixed"))
    only = draw.choice(free)[2] if draw.random() < 0.4 else None
    for row, token, place in free:
        if only is None or place == only:
            low, high = ranges[place]
            lines[row][token] = str(low if mode == "low" or (mode == "mixed" and draw.random() < 0.5) else high)


def _repeat(lines: list[Line], shape: InputShape, ranges: Ranges, draw: random.Random) -> None:
    free = _free(lines, shape)
    if not free:
        return
    place = draw.choice(free)[2]
    value = str(draw.randint(*ranges[place]))
    for row, token, token_place in free:
        if token_place == place:
            lines[row][token] = value


def _resize(lines: list[Line], shape: InputShape, ranges: Ranges, draw: random.Random) -> None:
    if not shape.counts:
        return
    count = draw.choice(shape.counts)
    row, token = count.place
    if row >= len(lines) or token >= len(lines[row]):
        return
    low, high = ranges.get(count.place, (1, 1))
    have = count.measure(lines)
    if have is None:
        return
    size = draw.choice((low, max(low, 1), max(low, have // 2), have + 1, draw.randint(low, min(high, 2 * have + 2))))
    size = max(low, min(size, high, 4 * have + 4, _MOST_LINES))
    if count.kind == "lines":
        body = lines[count.of :]
        lines[count.of :] = [list(draw.choice(body)) for _ in range(size)] if body and size > have else body[:size]
    else:
        line = lines[count.of]
        letters = list(line[0]) if count.kind == "letters" else line
        tokens = [draw.choice(letters) for _ in range(size)] if letters and size > have else letters[:size]
        lines[count.of] = ["".join(tokens)] if count.kind == "letters" else list(tokens)


def _shuffle(lines: list[Line], shape: InputShape, ranges: Ranges, draw: random.Random) -> None:
    del ranges
    long = [row for row, line in enumerate(lines) if len(line) > HEAD]
    if long and draw.random() < 0.6:
        row = draw.choice(long)
        mode = draw.random()
        if mode < 0.4 and all(map(is_whole, lines[row])):
            lines[row].sort(key=int, reverse=mode < 0.2)
        else:
            draw.shuffle(lines[row])
    elif not shape.loose and len(lines) > HEAD + 1:
        body = lines[HEAD:]
        draw.shuffle(body)
        lines[HEAD:] = body


def _respell(lines: list[Line], shape: InputShape, ranges: Ranges, draw: random.Random) -> None:
    del ranges
    words = [
        (row, token, letters)
        for row, line in enumerate(lines)
        for token, text in enumerate(line)
        if (letters := shape.words.get(place_of(lines, row, token))) and not is_whole(text)
    ]
    same_letter = draw.random() < 0.3
    for row, token, letters in words:
        if draw.random() < 0.7 or len(words) == 1:
            size = len(lines[row][token])
            word = draw.choice(letters) * size if same_letter else "".join(draw.choice(letters) for _ in range(size))
            lines[row][token] = word


def _recombine(lines: list[Line], shape: InputShape, ranges: Ranges, draw: random.Random) -> None:
    del ranges
    counting = {count.place for count in shape.counts}
    for whole in (True, False):
        places = [
            (row, token)
            for row, line in enumerate(lines)
            for token, text in enumerate(line)
            if is_whole(text) == whole and (row, token) not in counting
        ]
        for _ in range(draw.choice((0, 1, 1, 2)) if len(places) > 1 else 0):
            (row, token), (other, place) = draw.sample(places, 2)
            lines[row][token] = lines[other][place]


def _edit_lines(lines: list[Line], shape: InputShape, ranges: Ranges, draw: random.Random) -> None:
    del shape, ranges
    if len(lines) < 3:
        return
    line = lines.pop(draw.randrange(1, len(lines)))
    way = draw.randrange(3)
    if way:
        lines.insert(draw.randint(1, len(lines)), line)
    if way == 2:
        lines.insert(draw.randint(1, len(lines)), list(line))


def _recount(lines: list[Line], shape: InputShape) -> None:
    for count in shape.counts:
        row, token = count.place
        measured = count.measure(lines)
        if measured is not None and row < len(lines) and token < len(lines[row]):
            lines[row][token] = str(measured)


_CHANGES: list[Change] = [_redraw, _extreme, _repeat, _resize, _shuffle, _respell, _recombine, _edit_lines]
