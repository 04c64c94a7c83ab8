"""N-grams of texts hashed into buckets, in numpy: what the classifier reads beside the named features.

A token is a word, a run of digits (any number is the same token), a Chinese, Japanese or Korean character, or any other
sign; blanks part tokens and are none. One- and two-token n-grams of a text, and apart from them the last tokens of it,
fall into `BUCKETS` buckets each.

Invariants: the same text falls into the same buckets on every machine and in every release of numpy, for the hash is
arithmetic of unsigned 64-bit integers here; a text's value depends on no other text.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

BUCKETS = 1 << 14
LAST = 6
"""Tokens at the end that count once more, by themselves."""
HEAD, TAIL = 80, 160
"""Characters at the beginning and at the end of a text that are read; of a shorter one, all."""
_CHUNK = 2000
"""Texts hashed at once, so that the arrays stay in the cache."""
_PRIME = 0x100000001B3
_MIX = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(64 - 14)
_SPACE, _LETTER, _DIGIT, _SIGN, _WIDE, _REST = range(6)

Buckets = NDArray[np.int64]


def _classes() -> NDArray[np.uint8]:
    """Return for each byte what it begins; a byte inside a character (`_REST`) is of its first byte's class."""
    table = np.full(256, _SIGN, np.uint8)
    table[:33] = _SPACE
    table[127] = _SPACE
    for letters in (range(ord("a"), ord("z") + 1), range(ord("A"), ord("Z") + 1), range(0xC3, 0xE0)):
        table[list(letters)] = _LETTER
    table[ord("0") : ord("9") + 1] = _DIGIT
    table[0x80:0xC0] = _REST
    table[0xE0:] = _WIDE
    return table


_CLASSES = _classes()
_LOWER = np.arange(1, 257, dtype=np.uint64)
_LOWER[ord("A") : ord("Z") + 1] += np.uint64(32)
_LOWER[:33] = 0  # blanks behind a token add nothing to it
_LOWER[127] = 0
_POWERS = np.array([pow(_PRIME, exponent, 1 << 64) for exponent in range(64)], np.uint64)


def hashed(texts: Sequence[str], seed: int) -> tuple[Buckets, Buckets]:
    """Return the texts' n-grams: the number of the text, in order, and the bucket, of each; ``seed`` parts uses.

    Buckets are 0 to ``2 * BUCKETS - 1``; those of the last tokens are in the upper half.
    """
    parts = [_hash_chunk(texts[start : start + _CHUNK], start, seed) for start in range(0, len(texts), _CHUNK)]
    if not parts:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    return np.concatenate([rows for rows, _ in parts]), np.concatenate([buckets for _, buckets in parts])


def _hash_chunk(texts: Sequence[str], first: int, seed: int) -> tuple[Buckets, Buckets]:
    raw = [_window(text).encode("utf-8", "replace") + b"\n" for text in texts]
    data = np.frombuffer(b"".join(raw), np.uint8)
    ends = np.cumsum([len(text) for text in raw])
    classes = _CLASSES[data]
    inside = np.flatnonzero(classes == _REST)
    for _ in range(3 if len(inside) else 0):  # the bytes inside a character, one after the other
        classes[inside] = classes[inside - 1]
    begins = classes != _SPACE
    begins[1:] &= (classes[1:] != classes[:-1]) | ((classes[1:] != _LETTER) & (classes[1:] != _DIGIT))
    begins[inside] = False
    starts = np.flatnonzero(begins)
    if not len(starts):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    lengths = np.diff(starts, append=len(data))
    offset = np.arange(starts[0], len(data)) - np.repeat(starts, lengths)
    values = _LOWER[data[starts[0] :]] * _POWERS[offset & 63]
    tokens = np.add.reduceat(values, starts - starts[0])
    tokens[classes[starts] == _DIGIT] = np.uint64(_DIGIT)
    rows = np.searchsorted(ends, starts, side="right")
    return _grams(tokens, rows, first, np.uint64(seed))


def _window(text: str) -> str:
    return text if len(text) <= HEAD + TAIL else f"{text[:HEAD]}\n{text[-TAIL:]}"


def _grams(tokens: NDArray[np.uint64], rows: Buckets, first: int, seed: np.uint64) -> tuple[Buckets, Buckets]:
    """Return text and bucket of every token, every two in a row, and the last tokens of each text."""
    ones = _bucket(tokens * _MIX + seed)
    together = rows[1:] == rows[:-1]
    twos = _bucket((tokens[:-1] * np.uint64(_PRIME) + tokens[1:]) * _MIX + seed + np.uint64(7))[together]
    last = np.zeros(len(rows), bool)
    for step in range(1, LAST + 1):
        last[:-step] |= rows[step:] != rows[:-step]
    last[-LAST:] |= rows[-LAST:] == rows[-1]
    numbers = np.concatenate([rows, rows[1:][together], rows[last]]) + first
    return numbers, np.concatenate([ones, twos, ones[last] + BUCKETS])


def _bucket(values: NDArray[np.uint64]) -> Buckets:
    values = (values ^ (values >> np.uint64(29))) * _MIX
    return (values >> _SHIFT).astype(np.int64)
