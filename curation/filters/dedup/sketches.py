"""Finds similar texts by MinHash and exact Jaccard similarity, with sketches on disk.

A sketch has 700 bytes per problem, with 8 bytes per row in memory, 21 during the search.

Invariants: a sketch depends only on its rows and the shared passages; a shard with a ``starts`` file is complete;
hashes only propose pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from curation.filters.dedup.tokens import TELLING, mix, text_hash, tokenize, without_passages
from curation.storage.stages import atomic_replace

SLOTS = 128
"""Slots of a MinHash signature."""

SEED = 20_250_610
"""Seed of the signatures."""

RECALL = 0.995
"""Share of similar pairs that the bands propose."""

CHUNK_ROWS = 2_000
"""Rows that are sketched at once."""

CROWD = 100
"""In a larger bucket, rows are compared only with the first and the next."""

RANGE_ROWS = 250_000
"""Ranks whose pairs are compared at once."""

PART_ROWS = 1_000_000
"""Rows whose keys are sorted at once."""

CHUNK_PAIRS = 20_000
"""Pairs whose shingles are read at once."""

Ranks = NDArray[np.uint32]


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
    bound = np.where(signs, mix(token) + follows, token)  # a sign counts together with the next token
    figures = np.zeros(height, dtype=np.uint64)
    np.add.at(figures, row[figure_lines], mix(bound[figure_lines]))  # a sum: order does not count, repetition does
    bigrams = _bigrams(lines)
    starts = np.concatenate([[0], np.cumsum(np.bincount(bigrams["row"].to_numpy(), minlength=height))]).astype(np.int64)
    return ShingledRows(bigrams["hash"].to_numpy(), starts, figures)


def signatures(rows: ShingledRows) -> NDArray[np.uint32]:
    """Return MinHash signatures, rows × `SLOTS`."""
    from rensa import RMinHash

    hashes = np.ascontiguousarray(rows.shingles)
    matrix = RMinHash.digest_matrix_from_flat_token_hashes(hashes, rows.starts.astype(np.uint64), SLOTS, SEED)
    return np.array(matrix.to_rows(), dtype=np.uint32).reshape(rows.height, SLOTS)


def band_rows(threshold: float) -> int:
    """Return the largest band that proposes `RECALL` of such pairs."""
    sizes = range(16, 0, -1)
    return next((size for size in sizes if 1 - (1 - threshold**size) ** (SLOTS // size) >= RECALL), 1)


def band_keys(matrix: NDArray[np.uint32], size: int) -> Iterator[NDArray[np.uint64]]:
    """Yield each band's keys; rows with equal keys are candidates."""
    for band in range(SLOTS // size):
        key = np.full(len(matrix), band + 1, dtype=np.uint64)
        for slot in range(band * size, (band + 1) * size):
            key = mix(key + matrix[:, slot])
        yield key


def jaccard(rows: ShingledRows, left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return each pair's exact Jaccard similarity."""
    sizes = np.diff(rows.starts)
    hashes, numbers = np.unique(rows.shingles, return_inverse=True)
    keys = np.repeat(np.arange(rows.height), sizes) * len(hashes) + numbers  # sorted, as each row's shingles are
    own_sizes = sizes[left]
    wanted = np.repeat(right, own_sizes) * len(hashes) + numbers[_spans(rows.starts[left], own_sizes)]
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    pair = np.repeat(np.arange(len(left)), own_sizes)
    shared = np.bincount(pair, keys[at] == wanted, minlength=len(left))
    similarity: NDArray[np.float64] = shared / np.maximum(own_sizes + sizes[right] - shared, 1)
    return similarity


def _spans(begins: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the indices of consecutive elements, ``sizes`` from each of ``begins``."""
    spans: NDArray[np.int64] = np.arange(sizes.sum()) + np.repeat(begins - (np.cumsum(sizes) - sizes), sizes)
    return spans


def _bigrams(lines: pl.DataFrame) -> pl.DataFrame:
    """Return each row's distinct bigrams, also with its edges, sorted by row and hash."""
    row, token, edge = pl.col("row").cast(pl.Int64), pl.col("hash"), pl.lit(text_hash(""), pl.UInt64)
    goes_on = (row == row.shift(-1)).fill_null(False)
    inner = lines.select(row, first=token, second=pl.when(goes_on).then(token.shift(-1)).otherwise(edge))
    opening = lines.filter((row != row.shift(1)).fill_null(True)).select(row, first=edge, second=token)
    pairs = pl.concat([inner, opening])
    hashes = mix(mix(pairs["first"].to_numpy()) + pairs["second"].to_numpy())
    return pairs.select("row", pl.Series("hash", hashes, pl.UInt64)).unique().sort("row", "hash")


class Sketches:
    """A run's sketches, in a folder.

    Args:
        floor: min Jaccard similarity, above 0 and at most 1.
    """

    def __init__(self, folder: Path, floor: float, passages: NDArray[np.uint64]) -> None:
        self.folder = folder
        self.floor = floor
        self.passages = passages
        self._starts: list[NDArray[np.uint32]] = []

    def add(self, index: int, problems: Callable[[], pl.DataFrame]) -> None:
        """Sketch the next shard, unless there is a sketch."""
        assert index == len(self._starts)
        file = self._file(index, "starts")
        if not file.exists():
            frame = problems()
            firsts = range(0, max(1, frame.height), CHUNK_ROWS)
            chunks = [self._sketched(frame[first : first + CHUNK_ROWS]) for first in firsts]
            sizes = np.concatenate([np.diff(rows.starts) for rows, _ in chunks])
            starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
            shingles = np.concatenate([rows.shingles for rows, _ in chunks])
            keys = np.concatenate([keys for _, keys in chunks], axis=1)
            for name, array in (("keys", keys), ("shingles", shingles), ("starts", starts)):
                with atomic_replace(self._file(index, name)) as handle:
                    np.save(handle, array)
        starts = np.load(file)
        assert starts[-1] < 1 << 32
        self._starts.append(starts.astype(np.uint32))

    @property
    def rows(self) -> int:
        """Return the shards' number of rows."""
        return sum(len(starts) - 1 for starts in self._starts)

    def similar_pairs(self, ranks: Ranks) -> Iterator[tuple[Ranks, Ranks, NDArray[np.float64]]]:
        """Yield blocks of (lower rank, higher rank, similarity), by higher rank and falling similarity.

        Args:
            ranks: in the shards' order.
        """
        candidates = _CandidateFiles(self.folder, self.rows)
        has_tokens = np.concatenate([np.zeros(0, dtype=bool), *(np.diff(starts) > 0 for starts in self._starts)])
        for band in range(SLOTS // band_rows(self.floor)):
            keys = self._band(band)
            for number in range(-(-len(keys) // PART_ROWS)):
                candidates.add(_bucket_pairs(*_key_range(keys, ranks, has_tokens, number)))
            del keys
        at = np.empty(self.rows, dtype=np.uint32)
        at[ranks] = np.arange(self.rows, dtype=np.uint32)
        for left, right in candidates.ranges():
            similarity = self._similarity(at[left], at[right])
            close = similarity >= self.floor
            left, right, similarity = left[close], right[close], similarity[close]
            order = np.lexsort((left, -similarity, right))
            yield left[order], right[order], similarity[order]

    def _sketched(self, frame: pl.DataFrame) -> tuple[ShingledRows, NDArray[np.uint64]]:
        """Return shingles, and keys as bands × rows."""
        rows = shingle(without_passages(tokenize(frame["statement"]), self.passages), frame.height)
        langs = frame["lang"]
        codes = {lang: text_hash(lang or "") for lang in langs.unique()}
        salt = mix(np.array([codes[lang] for lang in langs], dtype=np.uint64) + rows.figures)
        keys = [mix(key + salt) for key in band_keys(signatures(rows), band_rows(self.floor))]
        return rows, np.stack(keys)

    def _band(self, band: int) -> NDArray[np.uint64]:
        keys, first = np.empty(self.rows, dtype=np.uint64), 0
        for index, starts in enumerate(self._starts):
            end = first + len(starts) - 1
            keys[first:end] = np.load(self._file(index, "keys"), mmap_mode="r")[band]
            first = end
        return keys

    def _similarity(self, left: Ranks, right: Ranks) -> NDArray[np.float64]:
        similarity = np.zeros(len(left))
        for first in range(0, len(left), CHUNK_PAIRS):
            chunk = slice(first, first + CHUNK_PAIRS)
            rows, inverse = np.unique(np.concatenate([left[chunk], right[chunk]]), return_inverse=True)
            shingled = self._read(rows)
            half = len(inverse) // 2
            similarity[chunk] = jaccard(shingled, inverse[:half], inverse[half:])
        return similarity

    def _read(self, rows: Ranks) -> ShingledRows:
        firsts = np.cumsum([0, *(len(starts) - 1 for starts in self._starts)])
        shard = np.searchsorted(firsts, rows, side="right") - 1
        chunks, sizes = [np.zeros(0, dtype=np.uint64)], [np.zeros(0, dtype=np.int64)]
        for index in np.unique(shard):
            starts, own_rows = self._starts[index], rows[shard == index] - firsts[index]
            begin = starts[own_rows].astype(np.int64)
            size = starts[own_rows + 1] - begin
            shingles = np.load(self._file(int(index), "shingles"), mmap_mode="r")
            chunks.append(shingles[_spans(begin, size)])
            sizes.append(size)
        begins = np.concatenate([[0], np.cumsum(np.concatenate(sizes))]).astype(np.int64)
        return ShingledRows(np.concatenate(chunks), begins, np.zeros(0, dtype=np.uint64))

    def _file(self, index: int, name: str) -> Path:
        return self.folder / f"{index:05}.{name}.npy"


class _CandidateFiles:
    """Pairs on disk (higher rank << 32 | lower rank), by higher rank."""

    def __init__(self, folder: Path, rows: int) -> None:
        self._files = [folder / f"candidates-{number:05}.u64" for number in range(-(-rows // RANGE_ROWS))]
        for file in self._files:
            file.unlink(missing_ok=True)

    def add(self, packed: NDArray[np.uint64]) -> None:
        packed = np.sort(packed)
        bounds = np.arange(1, len(self._files) + 1, dtype=np.uint64) * np.uint64(RANGE_ROWS) << np.uint64(32)
        cuts = [0, *np.searchsorted(packed, bounds).tolist()]
        for file, first, last in zip(self._files, cuts[:-1], cuts[1:], strict=True):
            if first < last:
                with file.open("ab") as handle:
                    packed[first:last].tofile(handle)

    def ranges(self) -> Iterator[tuple[Ranks, Ranks]]:
        """Yield distinct (lower rank, higher rank); remove the files."""
        for file in self._files:
            if file.exists():
                packed = np.unique(np.fromfile(file, dtype=np.uint64))
                yield (packed & np.uint64(0xFFFFFFFF)).astype(np.uint32), (packed >> np.uint64(32)).astype(np.uint32)
                file.unlink()


def _key_range(
    keys: NDArray[np.uint64], ranks: Ranks, has_tokens: NDArray[np.bool_], number: int
) -> tuple[NDArray[np.uint64], Ranks]:
    width = (1 << 64) // -(-len(keys) // PART_ROWS) + 1
    first, last = np.uint64(number * width), np.uint64(min((number + 1) * width, 1 << 64) - 1)
    inside = has_tokens & (keys >= first) & (keys <= last)
    return keys[inside], ranks[inside]


def _bucket_pairs(keys: NDArray[np.uint64], ranks: Ranks) -> NDArray[np.uint64]:
    """Return packed pairs of equal keys, fewer in buckets above `CROWD`."""
    order = np.lexsort((ranks, keys))
    keys, ranks = keys[order], ranks[order]
    del order
    repeats = np.flatnonzero(keys[1:] == keys[:-1])  # few: most rows are alone in their bucket
    begins = np.flatnonzero(np.diff(repeats, prepend=-2) != 1)
    opens, sizes = repeats[begins], np.diff(begins, append=len(repeats)) + 1
    pairs = [np.zeros(0, dtype=np.uint64)]
    for size in np.unique(sizes[sizes <= CROWD]).tolist():
        block = ranks[opens[sizes == size][:, None] + np.arange(size)]
        low, high = np.triu_indices(size, 1)
        pairs.append(_packed(block[:, low].ravel(), block[:, high].ravel()))
    for start, size in zip(opens[sizes > CROWD].tolist(), sizes[sizes > CROWD].tolist(), strict=True):
        crowd = ranks[start : start + size]
        pairs += [_packed(np.full(size - 1, crowd[0]), crowd[1:]), _packed(crowd[:-1], crowd[1:])]
    return np.unique(np.concatenate(pairs))


def _packed(lower: Ranks, higher: Ranks) -> NDArray[np.uint64]:
    packed: NDArray[np.uint64] = (higher.astype(np.uint64) << np.uint64(32)) | lower
    return packed
