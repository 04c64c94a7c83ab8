"""Computes shingles, MinHash candidates and exact Jaccard similarities.

Invariant: hashes only propose pairs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from curation.filters.dedup.tokens import TELLING, mix, text_hash

SLOTS = 128
"""Slots of a MinHash signature."""

SEED = 20_250_610
"""Seed of the signatures."""

CHUNK_ROWS = 20_000
"""Rows whose signatures are unpacked at once."""

CHUNK_PAIRS = 100_000
"""Pairs whose shingles are compared at once."""

CROWD = 100
"""In a larger bucket, rows are compared only with the first and the next."""


@dataclass(frozen=True, slots=True)
class ShingledRows:
    """Texts as flat arrays: row i's sorted bigrams are ``shingles[starts[i]:starts[i + 1]]``."""

    shingles: NDArray[np.uint64]
    starts: NDArray[np.int64]  # length rows + 1
    figures: NDArray[np.uint64]

    @property
    def height(self) -> int:
        """Return the number of rows."""
        return len(self.starts) - 1


def shingle(lines: pl.DataFrame, height: int) -> ShingledRows:
    """Return shingles and figures of `tokens.tokenize`'s texts."""
    row, token = lines["row"].to_numpy().astype(np.int64), lines["hash"].to_numpy()
    vocabulary = lines.select("token", "hash").unique()
    is_figure = vocabulary["token"].str.contains(r"^\d") | vocabulary["token"].is_in(list(TELLING))
    figure_lines = np.isin(token, vocabulary.filter(is_figure)["hash"].to_numpy())
    signs = np.isin(token, np.array([text_hash("plus"), text_hash("minus")], dtype=np.uint64))
    follows = np.zeros_like(token)
    follows[:-1] = np.where(row[1:] == row[:-1], token[1:], 0)
    bound = np.where(signs, mix(token) + follows, token)  # a sign counts together with what follows it
    figures = np.zeros(height, dtype=np.uint64)
    np.add.at(figures, row[figure_lines], mix(bound[figure_lines]))  # a sum: order does not count, repetition does
    shingle_row, shingles = _bigrams(row, token)
    starts = np.concatenate([[0], np.cumsum(np.bincount(shingle_row, minlength=height))]).astype(np.int64)
    return ShingledRows(shingles, starts, figures)


def signatures(rows: ShingledRows) -> NDArray[np.uint32]:
    """Return MinHash signatures, rows × `SLOTS`."""
    from rensa import RMinHash

    slots = np.empty((rows.height, SLOTS), dtype=np.uint32)
    for first in range(0, rows.height, CHUNK_ROWS):
        last = min(first + CHUNK_ROWS, rows.height)
        starts = rows.starts[first : last + 1]
        hashes = np.ascontiguousarray(rows.shingles[starts[0] : starts[-1]])
        matrix = RMinHash.digest_matrix_from_flat_token_hashes(
            hashes, (starts - starts[0]).astype(np.uint64), SLOTS, SEED
        )
        slots[first:last] = matrix.to_rows()
    return slots


def band_rows(threshold: float, recall: float = 0.995) -> int:
    """Return the largest band that proposes ``recall`` of such pairs."""
    for size in range(16, 1, -1):
        if 1 - (1 - threshold**size) ** (SLOTS // size) >= recall:
            return size
    return 1


def band_keys(matrix: NDArray[np.uint32], size: int) -> Iterator[NDArray[np.uint64]]:
    """Yield each band's keys; rows with equal keys are candidates."""
    for band in range(SLOTS // size):
        key = np.full(len(matrix), band + 1, dtype=np.uint64)
        for slot in range(band * size, (band + 1) * size):
            key = mix(key + matrix[:, slot])
        yield key


def jaccard(
    left: ShingledRows, right: ShingledRows, pairs: tuple[NDArray[np.int64], NDArray[np.int64]]
) -> NDArray[np.float64]:
    """Return each pair's exact Jaccard similarity."""
    similarity = np.zeros(len(pairs[0]))
    for first in range(0, len(similarity), CHUNK_PAIRS):
        left_rows, right_rows = pairs[0][first : first + CHUNK_PAIRS], pairs[1][first : first + CHUNK_PAIRS]
        mine, sizes = _gathered(left, left_rows)
        theirs, other_sizes = _gathered(right, right_rows)
        # equal (pair, shingle) keys are what both sides share; within a side they are distinct
        keys = np.concatenate([mine, theirs])
        order = np.argsort(keys, kind="stable")
        owner = np.concatenate(
            [np.repeat(np.arange(len(left_rows)), sizes), np.repeat(np.arange(len(left_rows)), other_sizes)]
        )
        is_repeated = keys[order][1:] == keys[order][:-1]
        shared = np.bincount(owner[order][1:][is_repeated], minlength=len(left_rows))
        similarity[first : first + len(left_rows)] = shared / np.maximum(1, sizes + other_sizes - shared)
    return similarity


def _gathered(rows: ShingledRows, indices: NDArray[np.int64]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    starts = rows.starts[indices]
    sizes = rows.starts[indices + 1] - starts
    pair = np.repeat(np.arange(len(indices)), sizes)
    inside = np.arange(len(pair)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    shingles = rows.shingles[np.repeat(starts, sizes) + inside]
    return mix(shingles + mix(pair.astype(np.uint64))), sizes


def _bigrams(row: NDArray[np.int64], token: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Return distinct bigrams, sorted by row and hash."""
    if not len(row):
        return row, token
    inner = row[1:] == row[:-1]
    opens = np.concatenate([[True], ~inner])
    closes = np.concatenate([~inner, [True]])
    edge = np.uint64(text_hash(""))
    pairs = [(row[1:][inner], token[:-1][inner], token[1:][inner])]
    pairs += [(row[opens], np.full(int(opens.sum()), edge), token[opens])]
    pairs += [(row[closes], token[closes], np.full(int(closes.sum()), edge))]
    rows = np.concatenate([rows for rows, _, _ in pairs])
    hashes = np.concatenate([mix(mix(first) + second) for _, first, second in pairs])
    lines = pl.DataFrame({"row": rows, "hash": hashes}).unique().sort("row", "hash")
    return lines["row"].to_numpy(), lines["hash"].to_numpy()
