"""New inputs from existing ones: other values, extreme values, repeated values, other sizes, other lines.

Every new input keeps the form of one that was seen: numbers that count (`shapes.CountField`) are set to what they
count, other numbers stay within what was seen at their place, or within the one limit of the statement that starts or
ends where the values seen do. The same inputs and seed give the same new ones.

What it does not do: know the problem. An input that its constraints forbid in a way that no range shows (a tree that
is none, numbers that must be sorted) may come out; the solutions must agree on it, and a caller that has a validator
should ask it.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Sequence

from curation.programs.test_generation.limits import StatedBound
from curation.programs.test_generation.shapes import (
    HEAD,
    InputShape,
    Line,
    Place,
    is_whole,
    place_of,
    read_lines,
    shape_of,
    written,
)

_TRIES = 8
_MOST_LINES = 20_000


def mutate_input(inputs: Sequence[str], bounds: Sequence[StatedBound], count: int, seed: str) -> list[str]:
    """Return up to ``count`` inputs that are not among ``inputs``, no two alike; none where their form cannot be read.

    Args:
        inputs: those seen, trusted to be valid.
        bounds: the statement's limits.
    """
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
    """Return the range of the values seen, widened to the narrowest limit that holds it where the two begin or end
    alike."""
    low, high = values[0], values[-1]
    fitting = [bound for bound in bounds if bound.holds(low, high)]
    if fitting and low != high and (fitting[0].low == low or fitting[0].high == high):
        return fitting[0].low, fitting[0].high
    return low, high


def _free(lines: list[Line], shape: InputShape) -> list[tuple[int, int, Place]]:
    """Return the tokens whose value may change: whole numbers that count nothing, at a known place."""
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
    """Draw other values for a few numbers or all; small and large magnitudes alike."""
    free = _free(lines, shape)
    share = draw.choice((0.1, 0.5, 1.0))
    for row, token, place in free:
        if draw.random() < share or len(free) == 1:
            low, high = ranges[place]
            if draw.random() < 0.3:
                high = min(high, low + draw.choice((1, 2, 5, 10)))
            lines[row][token] = str(draw.randint(low, high))


def _extreme(lines: list[Line], shape: InputShape, ranges: Ranges, draw: random.Random) -> None:
    """Set numbers to the least or the greatest value: everywhere, at one place, or by chance."""
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
    """Set all numbers of one place to one value."""
    free = _free(lines, shape)
    if not free:
        return
    place = draw.choice(free)[2]
    value = str(draw.randint(*ranges[place]))
    for row, token, token_place in free:
        if token_place == place:
            lines[row][token] = value


def _resize(lines: list[Line], shape: InputShape, ranges: Ranges, draw: random.Random) -> None:
    """Write fewer or more of what a number counts."""
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
    """Put a long line's tokens, or the lines behind the head, in another order."""
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
    """Replace letters in words by others seen at their place: by chance, or one letter for all."""
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
    """Put tokens of one place of the input at others of the same kind, words for words and numbers for numbers."""
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
    """Leave out a line behind the first, repeat one, or move one; what counts them is counted anew."""
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
    """Set the numbers that count to what they count."""
    for count in shape.counts:
        row, token = count.place
        measured = count.measure(lines)
        if measured is not None and row < len(lines) and token < len(lines[row]):
            lines[row][token] = str(measured)


_CHANGES: list[Change] = [_redraw, _extreme, _repeat, _resize, _shuffle, _respell, _recombine, _edit_lines]
