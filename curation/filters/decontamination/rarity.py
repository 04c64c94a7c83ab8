"""Weighs words and runs by rarity: ``log((n + 2) / (df + 1))`` (Spärck Jones 1972).

Invariant: counts do not depend on the order of rows.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

SLOTS = 1 << 22


class Rarity:
    """Document frequencies of words and benchmarks' runs."""

    def __init__(self, runs: NDArray[np.uint64]) -> None:
        self.rows = 0
        self._words = np.zeros(SLOTS, dtype=np.uint32)
        self._runs = np.unique(runs)
        self._run_rows = np.zeros(len(self._runs), dtype=np.uint32)

    def add(self, rows: int, words: pl.Series, runs: pl.DataFrame) -> None:
        """Count rows by their distinct words' hashes and ``runs`` (row, run)."""
        self.rows += rows
        np.add.at(self._words, _slots(words), 1)
        places, is_known = self._places(runs["run"].to_numpy())
        count = max(1, len(self._runs))
        once = np.unique(runs["row"].to_numpy()[is_known].astype(np.int64) * count + places[is_known])
        np.add.at(self._run_rows, once % count, 1)

    def is_known(self, runs: pl.Series) -> pl.Series:
        """Return which runs are in a benchmark."""
        return pl.Series("is_known", self._places(runs.to_numpy())[1])

    def word_frequency(self, words: pl.Series) -> NDArray[np.float64]:
        """Return the share of rows with each word."""
        share: NDArray[np.float64] = self._words[_slots(words)] / max(1, self.rows)
        return share

    def word_weights(self, words: pl.Series) -> NDArray[np.float64]:
        """Return words' weights by hash."""
        return self._weights(self._words[_slots(words)])

    def run_weights(self, runs: pl.Series) -> NDArray[np.float64]:
        """Return runs' weights by hash; unknown runs are rare."""
        places, is_known = self._places(runs.to_numpy())
        counts = np.ones(len(places), dtype=np.uint32)
        counts[is_known] = self._run_rows[places[is_known]]
        return self._weights(counts)

    def _weights(self, counts: NDArray[np.uint32]) -> NDArray[np.float64]:
        weights: NDArray[np.float64] = np.log((self.rows + 2) / (np.minimum(counts, self.rows) + 1.0))
        return weights

    def _places(self, runs: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        if not len(self._runs):
            return np.zeros(len(runs), dtype=np.int64), np.zeros(len(runs), dtype=bool)
        places = np.minimum(np.searchsorted(self._runs, runs), len(self._runs) - 1)
        return places, self._runs[places] == runs


def _slots(words: pl.Series) -> NDArray[np.uint64]:
    slots: NDArray[np.uint64] = words.to_numpy() & np.uint64(SLOTS - 1)
    return slots
