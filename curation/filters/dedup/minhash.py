r"""Texts as comparable sets: tokens, shingles, MinHash candidates and exact Jaccard similarity.

A statement is read as a reader would who ignores typography: case, white space, punctuation, LaTeX spacing and math
delimiters go; each Han or kana character is a token of its own; ``1,000``, ``1{,}000`` and ``1000.0`` are one number,
and English number words from two to twenty, and the tens, are digits. Nothing else is folded: no compatibility
forms, no stemming.

Invariants:
  - numbers stay, and so do the signs and words that turn a problem into another one (`TELLING`): together they are
    a row's *figures*, compared as a multiset, a sign together with what follows it;
  - hashes depend on the text alone: not on row order, shards, the process, or the version of any library but the
    MinHash library's own algorithm; and that only proposes pairs, every similarity here is exact.

Not here: what is done with similar rows (`near`, `curation.filters.decontamination`), and any meaning beyond the
tokens.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from curation.languages.vocabulary import every, language

SLOTS = 128
"""Slots of a MinHash signature."""

SEED = 20_250_610
"""Seed of the signatures."""

CHUNK_ROWS = 20_000
"""Rows whose signatures are unpacked at once."""

CHUNK_PAIRS = 100_000
"""Pairs whose shingles are compared at once."""

CROWD = 100
"""A bucket with more rows than this compares each row with the first one and the next one only."""

_ENGLISH = language("en").numerals
_WORDS = {
    **{word: str(value) for value, word in enumerate(_ENGLISH.units[2:], 2)},
    **{word: str(10 * value) for value, word in enumerate(_ENGLISH.tens, 2)},
    **dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789", strict=True)),
}

TELLING = frozenset(
    ("=", "<", ">", "≤", "≥", "≠", "sin", "cos", "tan", "max", "min", *every(lambda lang: lang.duplicates.telling))
)
"""Tokens that, like numbers, make another problem of a text when they change."""

_STEPS = (
    (r"\\(?:left|right|[bB]igg?[lr]?|displaystyle|limits|q?quad|,|;|:|!|>|\s|\(|\)|\[|\])", " "),
    (r"\\(?:text|textbf|textit|mathrm|mathbf|mathit|operatorname)\b", " "),
    (r"\\(?:d|t)frac\b", r"\frac "),
    (r"\\(?:leq?|leqslant)\b|<=", " ≤ "),
    (r"\\(?:geq?|geqslant)\b|>=", " ≥ "),
    (r"\\neq?\b|!=", " ≠ "),
    (r"(\d)(?:,|\{,\})(\d{3})\b", "$1$2"),
    (r"(\d)(?:,|\{,\})(\d{3})\b", "$1$2"),
    (r"(\d\.\d*[1-9])0+\b", "$1"),
    (r"(\d)\.0+\b", "$1"),
    (r"[-−–]\s*([\d$\\(]|\p{L}\b)", " minus $1"),
    (r"\+", " plus "),
)
_TOKEN = r"\d+(?:\.\d+)?|[\p{Han}\p{Hiragana}\p{Katakana}]|[\p{L}\p{M}]+|[=<>≤≥≠⁰¹²³⁴-⁹]"
_COMMAND = r"\\\p{L}+|"
_FIGURE = r"^\d"


@dataclass(frozen=True, slots=True)
class TokenizedRows:
    """Texts as token and shingle hashes, row after row in flat arrays.

    ``tokens[token_starts[i]:token_starts[i + 1]]`` are row i's token hashes in order; ``shingles`` likewise its
    distinct bigrams (the text's edges count as tokens), sorted. ``figures`` is a hash of row i's multiset of figures.
    """

    tokens: NDArray[np.uint64]
    token_starts: NDArray[np.int64]  # length rows + 1
    shingles: NDArray[np.uint64]
    shingle_starts: NDArray[np.int64]  # length rows + 1
    figures: NDArray[np.uint64]

    @property
    def height(self) -> int:
        """Return the number of rows."""
        return len(self.token_starts) - 1


def tokenize(statements: pl.Series, *, commands: bool = False) -> pl.DataFrame:
    """Return the tokens of each text, one a line: ``row`` (position in the series) and ``token``, in order.

    A null, or a text without tokens, has no line.

    Args:
        commands: keep the backslash of LaTeX commands, and split names like ``isPrime`` into their words.
    """
    text = pl.col("text")
    if commands:
        text = text.str.replace_all(r"([\p{Ll}\d])(\p{Lu})", "$1 $2")
    text = text.str.to_lowercase()
    for pattern, replacement in _STEPS:
        text = text.str.replace_all(pattern, replacement)
    lists = pl.DataFrame({"text": statements.cast(pl.String)}).with_row_index("row")
    lines = (
        lists.select("row", text.str.extract_all(_COMMAND + _TOKEN if commands else _TOKEN).alias("token"))
        .explode("token")
        .drop_nulls("token")
    )
    return lines.with_columns(pl.col("token").replace(_WORDS))


def tokenize_rows(statements: pl.Series) -> TokenizedRows:
    """Hash the tokens, shingles and figures of each text. Nulls become rows without tokens."""
    lines = tokenize(statements)
    vocabulary = lines["token"].unique()
    is_figure = vocabulary.str.contains(_FIGURE) | vocabulary.is_in(list(TELLING))
    names = pl.DataFrame(
        {
            "token": vocabulary,
            "hash": pl.Series([text_hash(token) for token in vocabulary], dtype=pl.UInt64),
            "is_figure": is_figure,
        }
    )
    lines = lines.join(names, on="token", how="left", maintain_order="left")
    row, token = lines["row"].to_numpy().astype(np.int64), lines["hash"].to_numpy()
    height = len(statements)
    starts = _starts(row, height)
    figures = np.zeros(height, dtype=np.uint64)
    figure_lines = lines["is_figure"].to_numpy()
    signs = np.isin(token, np.array([text_hash("plus"), text_hash("minus")], dtype=np.uint64))
    follows = np.zeros_like(token)
    follows[:-1] = np.where(row[1:] == row[:-1], token[1:], 0)
    bound = np.where(signs, mix(token) + follows, token)  # a sign counts together with what follows it
    np.add.at(figures, row[figure_lines], mix(bound[figure_lines]))  # a sum: order does not count, repetition does
    shingle_row, shingle = _bigrams(row, token)
    return TokenizedRows(token, starts, shingle, _starts(shingle_row, height), figures)


def gram_hashes(rows: TokenizedRows, length: int) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Return every run of ``length`` consecutive tokens inside one row: the row, and the run's hash."""
    count = len(rows.tokens) - length + 1
    if count <= 0:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.uint64)
    run = np.zeros(count, dtype=np.uint64)
    for offset in range(length):
        run = run * np.uint64(0x9E3779B97F4A7C15) + rows.tokens[offset : offset + count]
    row = np.repeat(np.arange(rows.height), np.diff(rows.token_starts))
    inside = row[:count] == row[length - 1 :]
    return row[:count][inside], mix(run[inside])


def signatures(rows: TokenizedRows) -> NDArray[np.uint32]:
    """Return the MinHash signatures of the rows' shingles, rows × `SLOTS`."""
    from rensa import RMinHash

    slots = np.empty((rows.height, SLOTS), dtype=np.uint32)
    for first in range(0, rows.height, CHUNK_ROWS):
        last = min(first + CHUNK_ROWS, rows.height)
        starts = rows.shingle_starts[first : last + 1]
        hashes = np.ascontiguousarray(rows.shingles[starts[0] : starts[-1]])
        matrix = RMinHash.digest_matrix_from_flat_token_hashes(
            hashes, (starts - starts[0]).astype(np.uint64), SLOTS, SEED
        )
        slots[first:last] = matrix.to_rows()
    return slots


def band_rows(threshold: float, recall: float = 0.995) -> int:
    """Return how many slots a band has: as many as still propose ``recall`` of the pairs with just this similarity."""
    for size in range(16, 1, -1):
        if 1 - (1 - threshold**size) ** (SLOTS // size) >= recall:
            return size
    return 1


def band_keys(matrix: NDArray[np.uint32], size: int) -> Iterator[NDArray[np.uint64]]:
    """Yield one key per row for each band of ``size`` slots; rows with equal keys are candidates."""
    for band in range(SLOTS // size):
        key = np.full(len(matrix), band + 1, dtype=np.uint64)
        for slot in range(band * size, (band + 1) * size):
            key = mix(key + matrix[:, slot])
        yield key


def jaccard(
    left: TokenizedRows, right: TokenizedRows, pairs: tuple[NDArray[np.int64], NDArray[np.int64]]
) -> NDArray[np.float64]:
    """Return the exact Jaccard similarity of the shingle sets of ``left`` row and ``right`` row, pair by pair."""
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


def _gathered(rows: TokenizedRows, indices: NDArray[np.int64]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    starts = rows.shingle_starts[indices]
    sizes = rows.shingle_starts[indices + 1] - starts
    pair = np.repeat(np.arange(len(indices)), sizes)
    inside = np.arange(len(pair)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    shingles = rows.shingles[np.repeat(starts, sizes) + inside]
    return mix(shingles + mix(pair.astype(np.uint64))), sizes


def _bigrams(row: NDArray[np.int64], token: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    """Return the distinct bigrams of each row, the edges included, sorted by row and hash."""
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


def _starts(row: NDArray[np.int64], height: int) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(np.bincount(row, minlength=height))]).astype(np.int64)


def text_hash(text: str) -> int:
    """Return 64 bits of the text's BLAKE2 hash."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix the bits by Sebastiano Vigna's finaliser of SplitMix64: every bit in moves every bit out."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
