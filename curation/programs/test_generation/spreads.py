"""How the values of one input are spread over a column's range, by the values of its shape (`profiles`).

What is chosen for a column stays for the whole input: a narrow range is the same narrow range in every row, and a few
values are the same few. That is what makes equal values, full buckets and long runs, on which programs go wrong.

Invariants: pure but for the random numbers drawn; every value lies in the range asked for.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from curation.programs.test_generation.hints import Hints

_NARROW = (1, 1, 2, 3, 6, 12)
"""Widths of narrow ranges, less one."""
_STILL_REPEATED = 0.8
"""Rows that repeat are no longer drawn anew where a greater share of them stays so."""
_RARE = 0.05
"""Share of the values of a skewed column that are not the frequent one."""


_AT_LIMITS, _BELOW = 0.6, 0.25
"""Share of inputs of great values that hold the greatest alone, and of values one below it in the others."""
_BULK, _MOST_ALIKE = 64, 1 << 50
"""So many values or letters are drawn at once, values of ranges in which a float of 53 bits reaches every number."""


@dataclass(slots=True)
class ValueSpread:
    """The values of one input. ``mode`` is the second word of a shape's name."""

    mode: str
    draw: random.Random
    hints: Hints
    _spans: dict[int, int] = field(default_factory=dict)
    _few: dict[int, list[int]] = field(default_factory=dict)
    _lists: dict[int, list[list[int]]] = field(default_factory=dict)
    _texts: list[str] = field(default_factory=list)
    _shared: list[int] = field(default_factory=list)
    _way: int = -1
    _exact: bool | None = None

    def _at_limits(self) -> bool:
        """Return whether all great values of this input are the greatest: programs start minima just below it."""
        if self._exact is None:
            self._exact = self.draw.random() < _AT_LIMITS
        return self._exact

    def one(self, name: int, low: int, high: int) -> int:
        """Return a value of the column ``name`` between two ends, both included."""
        draw, mode = self.draw, self.mode
        if mode == "low":
            return low
        if mode == "zero":
            return max(low, min(high, 0))
        if mode == "high":
            return high - (not self._at_limits() and high > low and draw.random() < _BELOW)
        if mode == "ends":
            return draw.choice((low, high))
        if mode == "narrow":
            start = low if low >= 0 else max(low, -2)
            return draw.randint(start, min(high, start + self._spans.setdefault(name, draw.choice(_NARROW))))
        if mode in ("few", "skewed"):
            return self._of_few(name, low, high)
        if mode == "shared":
            return max(low, min(high, self._of_shared(low, high)))
        near = [number for number in self.hints.numbers if low <= number <= high] if mode == "hinted" else []
        if near and draw.random() < 0.7:
            return max(low, min(high, draw.choice(near) + draw.choice((-1, 0, 0, 1))))
        if mode == "hinted":
            return draw.randint(low, min(high, low + 12)) if low >= 0 else draw.randint(low, high)
        if mode == "echoed" and draw.random() < 0.7:
            return draw.randint(max(low, min(-3, high)), min(high, max(low, -3) + 9))
        if mode == "special" and high > 2:
            return special_number(low, high, draw)
        return draw.randint(low, high)

    def _of_shared(self, low: int, high: int) -> int:
        """Return one of a few numbers that all columns draw from, so that values of several are equal or adjoin."""
        draw = self.draw
        if not self._shared:
            first = draw.choice((0, 1, draw.randint(low, high), draw.randint(low, min(high, max(low, 0) + 50))))
            step = draw.choice((1, 1, 2, max(1, abs(first))))
            self._shared = [first + step * at for at in range(draw.choice((2, 3, 4)))]
        return draw.choice(self._shared)

    def _of_few(self, name: int, low: int, high: int) -> int:
        """Return one of two or three values of a column, all the same often or the first nearly always."""
        draw = self.draw
        if name not in self._few:
            ends = [low, high, draw.randint(low, high), draw.randint(low, min(high, low + 3))]
            self._few[name] = draw.sample(ends, draw.choice((2, 2, 3)))
        values = self._few[name]
        value = values[0] if self.mode == "skewed" and draw.random() >= _RARE else draw.choice(values)
        return max(low, min(high, value))

    def many(self, name: int, low: int, high: int, count: int) -> list[int]:
        """Return ``count`` values of a column that stand together."""
        if self.mode == "same":
            return [self.draw.choice((low, high, self.draw.randint(low, high)))] * count
        if self.mode == "patterned":
            return self._patterned(low, high, count)
        if self.mode == "echoed" and count > 1:
            return self._echoed(name, low, high, count)
        if count >= _BULK and (values := self._alike(name, low, high)) is not None:
            return self.draw.choices(values, k=count)
        return [self.one(name, low, high) for _ in range(count)]

    def _alike(self, name: int, low: int, high: int) -> Sequence[int] | None:
        """Return the values of which each is as likely as another in `one`; None where it draws otherwise."""
        if self.mode in ("low", "zero"):
            return [self.one(name, low, high)]
        if self.mode == "high":
            return [high] if self._at_limits() else [high, high, high, max(low, high - 1)]
        if self.mode == "ends":
            return [low, high]
        if self.mode == "narrow":
            start = low if low >= 0 else max(low, -2)
            low, high = start, min(high, start + self._spans.setdefault(name, self.draw.choice(_NARROW)))
        elif self.mode == "few":
            self._of_few(name, low, high)
            return [max(low, min(high, value)) for value in self._few[name]]
        elif self.mode != "whole":
            return None
        return range(low, high + 1) if high - low < _MOST_ALIKE else None

    def _echoed(self, name: int, low: int, high: int, count: int) -> list[int]:
        """Return values that repeat an earlier list of as many, as it was, turned round, negated, in another order,
        shifted, or with one changed; or a list that others may repeat: with gaps, the same from both ends, in periods,
        all lists of an input in one of these ways.
        """
        draw, earlier = self.draw, self._lists.setdefault(count, [])
        values = [self.one(name, low, high) for _ in range(count)]
        self._way = way = draw.randrange(4) if self._way < 0 else self._way
        if earlier and draw.random() < 0.7:
            values = _changed(draw.choice(earlier), draw)
        elif way == 0:
            gap, least, first = draw.choice((2, 2, 3)), max(low, min(0, high)), draw.randrange(2)
            values = [value if (count - 1 - at) % gap == first else least for at, value in enumerate(values)]
        elif way == 1:
            values = values[: (count + 1) // 2] + values[: count // 2][::-1]
        elif way == 2:
            period = draw.randint(1, max(1, count // 2))
            values = [values[at % period] for at in range(count)]
        values = [max(low, min(high, value)) for value in values]
        earlier.append(values)
        return values

    def word(self, letters: str, size: int) -> str:
        """Return a word of these letters (`draw_word`); where words are echoed, often one that an earlier one makes."""
        draw = self.draw
        if self.mode != "echoed":
            return draw_word(letters, size, draw)
        if self._texts and size and draw.random() < 0.7:
            text = "".join(letter for letter in draw.choice(self._texts) if letter in letters)[:size]
            turned = draw.choice((text, text[::-1], text[1:] + text[:1], "".join(draw.sample(text, len(text)))))
            word = (turned + draw_word(letters, size, draw))[:size]
            if draw.random() < 0.3:
                place = draw.randrange(size)
                word = word[:place] + draw.choice(letters) + word[place + 1 :]
        else:
            word = draw_word(letters, size, draw)
        self._texts = [*self._texts, word][-8:]
        return word

    def _patterned(self, low: int, high: int, count: int) -> list[int]:
        """Return values that alternate, go up and down, stand in runs, or are in order but for one or two of them."""
        draw = self.draw
        if draw.random() < 0.5:
            high = min(high, low + max(1, count))
        a, b = draw.choice(((low, high), sorted((draw.randint(low, high), draw.randint(low, high)))))
        kind = draw.randrange(4)
        if kind == 0:
            return list(itertools.islice(itertools.cycle((a, b)), count))
        if kind == 1:
            period = draw.choice((2, 3, max(2, count // 2), max(2, count)))
            return [a + (b - a) * min(i % period, period - i % period) * 2 // period for i in range(count)]
        if kind == 2:
            run = max(1, count // draw.choice((2, 3, 5)))
            values = [draw.randint(low, high) for _ in range(count // run + 1)]
            return [values[i // run] for i in range(count)]
        values = sorted((draw.randint(low, high) for _ in range(count)), reverse=draw.random() < 0.3)
        for _ in range(draw.choice((1, 2)) if count else 0):
            values[draw.randrange(count)] = draw.choice((low, high, draw.randint(low, high)))
        return values

    def words(self, words: Sequence[str], count: int) -> list[str]:
        """Return ``count`` of these words: each as likely as another, one nearly always, or two in runs."""
        draw = self.draw
        way = draw.random() if self.mode not in ("few", "skewed") else 0.7
        if way < 0.6 or len(words) < 2 or count < 2:
            return [draw.choice(words) for _ in range(count)]
        often = draw.choice(words)
        if way < 0.85:
            return [often if draw.random() >= 4 * _RARE else draw.choice(words) for _ in range(count)]
        order, cut = draw.sample(list(words), 2), draw.randint(1, count - 1)
        return [order[0]] * cut + [order[1]] * (count - cut)


def _changed(values: Sequence[int], draw: random.Random) -> list[int]:
    """Return a list made of another, as long."""
    way, by = draw.randrange(6), draw.choice((-2, -1, 1, 2))
    if way == 0:
        return list(values[::-1])
    if way == 1:
        return [-value for value in values]
    if way == 2:
        return draw.sample(values, len(values))
    if way == 3:
        return [value + by for value in values]
    changed = list(values)
    if way == 4:
        changed[draw.randrange(len(changed))] += by
    return changed


def draw_word(letters: str, size: int, draw: random.Random) -> str:
    """Return a word of these letters: drawn one by one, repeating a short part, or the same read backwards."""
    way = draw.random()
    if way < 0.7 or size < 3:
        return _draw_letters(letters, size, draw)
    part = _draw_letters(letters, draw.choice((1, 2, 3, max(1, size // 2))), draw)
    if way < 0.85:
        word = (part * (size // len(part) + 1))[:size]
        if draw.random() < 0.5:
            place = draw.randrange(size)
            word = word[:place] + draw.choice(letters) + word[place + 1 :]
        return word
    half = _draw_letters(letters, (size + 1) // 2, draw)
    return half + half[: size // 2][::-1]


def _draw_letters(letters: str, size: int, draw: random.Random) -> str:
    """Return so many letters drawn one by one; of long words at once, some then up to a quarter likelier."""
    if size < _BULK or len(letters) > _BULK or max(letters) > "\xff":
        return "".join(draw.choices(letters, k=size))
    table = "".join(letters[byte * len(letters) >> 8] for byte in range(256)).encode("latin-1")
    return draw.randbytes(size).translate(table).decode("latin-1")


def redraw_repeated(columns: Sequence[list[str]], fresh: Callable[[int, int], list[str]]) -> None:
    """Draw rows anew that stood before, as long as a fifth of them become others.

    Args:
        columns: their tokens, changed in place.
        fresh: returns so many tokens of a column, by its place.
    """
    rows: Sequence[int] = range(len(columns[0]))
    seen: set[tuple[str, ...]] = set()
    before = 0
    while True:
        repeated = []
        for at in rows:
            row = tuple(column[at] for column in columns)
            if row in seen:
                repeated.append(at)
            seen.add(row)
        if not repeated or (before and len(repeated) > _STILL_REPEATED * before):
            return
        rows, before = repeated, len(repeated)
        for place, column in enumerate(columns):
            for at, token in zip(rows, fresh(place, before), strict=True):
                column[at] = token


def special_number(low: int, high: int, draw: random.Random) -> int:
    """Return a number up to ``high`` of a kind that programs turn on, or next to one; ``low`` where it is too small.

    Powers and sums of two of them, squares, triangular numbers, products of small factors, primes and products of two.
    """
    kind = draw.randrange(7)
    root = draw.randint(1, math.isqrt(high) if draw.random() < 0.5 else min(high, 40))
    if kind == 0:
        number = 1 << draw.randint(0, high.bit_length())
    elif kind == 1:
        number = (1 << draw.randint(0, high.bit_length())) + (1 << draw.randint(0, high.bit_length()))
    elif kind == 2:
        number = draw.choice((3, 5, 10)) ** draw.randint(0, len(str(high)))
    elif kind == 3:
        number = root * root if draw.random() < 0.6 else root * (root + 1) // 2
    elif kind == 4:
        number = 1
        while number * (factor := draw.choice((2, 2, 2, 3, 3, 5, 7, 11, 13))) <= high and draw.random() < 0.97:
            number *= factor
    elif kind == 5:
        number = prime_below(draw.randint(2, high))
    else:
        number = prime_below(max(2, root)) * prime_below(max(2, min(high // root, high)))
    if kind < 4:
        number += draw.choice((-1, 0, 0, 1))
    return max(low, min(high, number))


def prime_below(number: int) -> int:
    """Return the greatest prime that is at most ``number``, which is at least 2; of very large numbers a likely prime
    (Fermat's test to several bases).
    """
    for candidate in range(number, 2, -1):
        small = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
        if candidate in small or (
            all(candidate % p for p in small) and all(pow(p, candidate - 1, candidate) == 1 for p in small[:6])
        ):
            return candidate
    return 2


def is_prime(number: int) -> bool:
    """Return whether a number is a prime, as `prime_below` knows them."""
    return number > 1 and prime_below(number) == number


def prime_from(low: int, high: int) -> int:
    """Return the least prime from ``low`` on, as `prime_below` knows them; ``low`` where there is none to ``high``."""
    return next((number for number in range(max(2, low), high + 1) if is_prime(number)), low)
