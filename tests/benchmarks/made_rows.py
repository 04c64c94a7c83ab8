"""Many short rows: half are drawn word by word, half are one of 1,000 frames with words of their own.

Every seventh is the row before it with one word replaced. Nothing of them is on disk.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray


class MadeRows:
    """Short rows that are made anew whenever they are read, a function of the shard's number."""

    words, frames = 24, 1000

    def __init__(self, rows: int, shard_rows: int) -> None:
        self._rows, self._shard_rows = rows, shard_rows
        draw = np.random.default_rng(7)
        letters = draw.integers(97, 123, (8000, 7), dtype=np.uint8)
        self._vocabulary = pl.Series(["".join(map(chr, line)) for line in letters])
        self._frames = draw.integers(0, len(self._vocabulary), (self.frames, self.words))

    def __len__(self) -> int:
        return -(-self._rows // self._shard_rows)

    def read(self, index: int, columns: Sequence[str]) -> pl.DataFrame:
        first = index * self._shard_rows
        at = np.arange(first, min(first + self._shard_rows, self._rows))
        frame = pl.DataFrame({"row": at}, schema={"row": pl.Int64}).with_columns(
            id=pl.format("p{}", "row"), source=pl.lit("a"), answer=pl.lit("1"), lang=pl.lit("en")
        )
        if "statement" in columns:
            frame = frame.with_columns(statement=self._statements(index, at))
        return frame.select(columns)

    def _statements(self, index: int, at: NDArray[np.int64]) -> pl.Series:
        draw = np.random.default_rng(index)
        count, words = len(at), draw.integers(0, len(self._vocabulary), (len(at), self.words))
        numbers = draw.integers(2, 5000, count)
        framed = np.flatnonzero(draw.random(count) < 0.5)
        own = draw.random((len(framed), self.words)) < 1 / 3
        words[framed] = np.where(own, words[framed], self._frames[draw.integers(0, self.frames, len(framed))])
        copies = np.flatnonzero(at % 7 == 6)
        copies = copies[copies > 0]
        words[copies], numbers[copies] = words[copies - 1], numbers[copies - 1]
        words[copies, draw.integers(0, self.words, len(copies))] = draw.integers(0, len(self._vocabulary), len(copies))
        texts = pl.DataFrame({f"w{place}": self._vocabulary[words[:, place]] for place in range(self.words)})
        number = pl.Series("n", numbers).cast(pl.String)
        return texts.select(statement=pl.concat_str([*texts.columns, number], separator=" "))["statement"]
