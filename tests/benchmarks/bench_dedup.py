"""What finding near duplicates among many short rows takes: memory as the rows grow, disk, and the time of each step.

    python -m tests.benchmarks.bench_dedup --made 10000000 [--folder DIR] [--shard-rows 20000]

Rows are made as they are read, so that only sketches are on disk: half are drawn word by word, half are one of 1,000
frames with eight words of their own; every seventh is the row before it with one word replaced. With ``--folder`` a
killed run goes on after the last shard that it sketched.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from curation.filters.dedup import near


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
        """Return these columns of one shard."""
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
        return texts.select(pl.concat_str([*texts.columns, pl.Series("n", numbers).cast(pl.String)], separator=" "))[
            "w0"
        ]


def resident_mb() -> float:
    """Return the resident memory of this process, MB; files that it maps count."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE") / 1e6


def measure(shards: MadeRows, folder: Path, rows: int, shard_rows: int) -> None:
    """Print memory by rows, and disk and time by step."""
    seen = 0
    steps: list[tuple[str, float, float, int]] = []
    scratch = folder / "sketches"
    scratch.mkdir(exist_ok=True)

    def step(name: str, start: tuple[float, float]) -> tuple[float, float]:
        now = time.process_time(), time.perf_counter()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
        steps.append((name, round(now[0] - start[0], 1), round(now[1] - start[1], 1), round(peak)))
        return now

    def advance(count: int) -> None:
        nonlocal seen
        seen += count
        if seen % max(10 * shard_rows, rows // 50 // shard_rows * shard_rows) == 0 or seen == rows:
            print(f"{seen:>12,} rows sketched: {resident_mb():,.0f} MB resident", flush=True)

    start = step("start", (time.process_time(), time.perf_counter()))
    ranks = near.source_ranks(shards, ["a"], [])
    start = step("ranks", start)
    pairs = near.similar_pairs(shards, ranks, scratch, 0.75, advance=advance)
    disk = sum(file.stat().st_size for file in scratch.iterdir()) / 1e9
    start = step("sketches and pairs", start)
    members = near.cluster_members(shards, ranks, pairs, 0.75)
    step("clusters", start)
    print(f"{rows:,} rows, {pairs.height:,} similar pairs, {members.height:,} go; {disk:.2f} GB of sketches on disk")
    right = members.filter((pl.col("row") % 7 == 6) & (pl.col("kept_row") == pl.col("row") - 1)).height
    print(f"planted {rows // 7:,}, found with the row that they copy {right:,}, others {members.height - right:,}")
    print(pl.DataFrame(steps, schema=["step", "cpu_s", "wall_s", "peak_mb"], orient="row"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--made", type=int, default=10_000_000, help="number of rows")
    parser.add_argument("--shard-rows", type=int, default=20_000)
    parser.add_argument("--folder", type=Path, help="where the sketches are kept; a temporary folder if missing")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        made = MadeRows(arguments.made, arguments.shard_rows)
        measure(made, folder, arguments.made, arguments.shard_rows)


if __name__ == "__main__":
    main()
