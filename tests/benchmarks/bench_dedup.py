"""How fast and how good near duplicates are: 100,000 rows, of which a known share was planted.

    python tests/benchmarks/bench_dedup.py [DATA] [--rows 100000]
    python tests/benchmarks/bench_dedup.py [DATA] --stream 1000000 [--folder DIR] [--shard-rows 10000]
    python tests/benchmarks/bench_dedup.py --made 10000000 [--folder DIR] [--shard-rows 20000]

DATA holds the shared sets (default: $GOLDILOCKS_DATA, or shared/data beside the checkout). Rows are its math problems,
then as many changed copies as are wanted, by four recipes in turn: ``typography`` (case, spaces, LaTeX spacing,
thousands commas) and ``word`` (one word in thirty replaced, no number) are near duplicates; ``number`` (one number
changed) and ``half`` (every other word replaced) are other problems.

``--stream`` writes so many rows as shards, another process doing it, and shows what finding their near duplicates
takes: memory as the rows grow, disk, and the time of each step. Six rows of seven are templates (an original with new
numbers and one word in ten replaced: other problems), one is a planted near copy of a row shortly before.

``--made`` does the same with short rows that are made as they are read, so that only sketches lie on disk: half are
drawn word by word, half are one of 1,000 frames with eight words of their own; every seventh is the row before it with
one word replaced. With ``--folder`` a killed run goes on behind the last shard that it sketched.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import re
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from curation.filters.dedup import near  # noqa: E402
from curation.filters.dedup.near import near_duplicates  # noqa: E402
from curation.planting import changed  # noqa: E402

RECIPES = ("typography", "word", "number", "half")
"""The first two are the same problem, the others are not."""

NUMBER = re.compile(r"\d+")


def statements(folder: Path) -> list[tuple[str, str]]:
    """Return (set, statement) of every math problem of the shared sets, exact repeats left out."""
    set_of: dict[str, str] = {}
    for path in sorted((folder / "math").glob("*.jsonl")):
        for line in path.open(encoding="utf-8"):
            set_of.setdefault(json.loads(line)["problem"] or "", path.stem)
    return [(name, text) for text, name in set_of.items() if text]


def planted(originals: list[tuple[str, str]], count: int) -> pl.DataFrame:
    """Return originals, then copies; ``recipe`` and ``of`` (the original's row) say what each copy is."""
    draw = random.Random(0)
    words = sorted({word for _, text in originals for word in text.split() if word.isalpha() and len(word) > 5})
    long = [row for row, (_, text) in enumerate(originals) if len(text.split()) >= 30 and text.isascii()]
    rows = [(text, name, "original", row) for row, (name, text) in enumerate(originals)][:count]
    while len(rows) < count:
        recipe, of = RECIPES[len(rows) % 4], draw.choice(long)
        text = originals[of][1]
        copy = half_changed(text, draw, words) if recipe == "half" else changed(text, recipe, draw, words)
        rows.append((copy, "copies", recipe, of))
    frame = pl.DataFrame(rows, schema=["statement", "set", "recipe", "of"], orient="row").with_row_index("row")
    return frame.select(
        "statement", "set", "recipe", "of", pl.col("row").cast(pl.Int64), id=pl.format("p{}", "row"),
        source=pl.when(pl.col("recipe") == "original").then(pl.lit("a")).otherwise(pl.lit("b")), answer=pl.lit("1"),
    )  # fmt: skip


def half_changed(text: str, draw: random.Random, words: list[str]) -> str:
    """Return a copy with every other word replaced."""
    parts = text.split(" ")
    for place in draw.sample(range(len(parts)), len(parts) // 2):
        parts[place] = draw.choice(words)
    return " ".join(parts)


def template(text: str, draw: random.Random, words: list[str]) -> str:
    """Return another problem of the same kind: new numbers, one plain word in ten replaced."""
    parts = NUMBER.sub(lambda _: str(draw.randrange(2, 5000)), text).split(" ")
    plain = [i for i, part in enumerate(parts) if part.isalpha() and len(part) > 3]
    for place in draw.sample(plain, len(plain) // 10):
        parts[place] = draw.choice(words)
    return " ".join(parts)


def write_shards(folder: Path, data: Path, rows: int, shard_rows: int) -> None:
    """Write shards of templates and near copies of them, those that are there already left as they are."""
    originals = [text for _, text in statements(data)]
    words = sorted({word for text in originals for word in text.split() if word.isalpha() and len(word) > 5})
    for index in range(-(-rows // shard_rows)):
        file = folder / f"{index:05}.parquet"
        if file.exists():
            continue
        draw = random.Random(index)
        texts: list[str] = []
        while len(texts) < min(shard_rows, rows - index * shard_rows):
            if texts and draw.random() < 1 / 7:
                recent = texts[-draw.randrange(1, min(50, len(texts)) + 1)]
                texts.append(changed(recent, draw.choice(("typography", "word")), draw, words))
            else:
                texts.append(template(draw.choice(originals), draw, words))
        at = range(index * shard_rows, index * shard_rows + len(texts))
        frame = pl.DataFrame({"row": at, "statement": texts}, schema_overrides={"row": pl.Int64})
        frame.select(
            "row", "statement", id=pl.format("p{}", "row"), source=pl.lit("a"), answer=pl.lit("1"), lang=pl.lit("en")
        ).write_parquet(file)


class Folder:
    """Shards of a folder."""

    def __init__(self, folder: Path, rows: int, shard_rows: int) -> None:
        self._files = [folder / f"{index:05}.parquet" for index in range(-(-rows // shard_rows))]

    def __len__(self) -> int:
        return len(self._files)

    def read(self, index: int, columns: Sequence[str]) -> pl.DataFrame:
        """Return these columns of one shard."""
        return pl.read_parquet(self._files[index], columns=list(columns))


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


def stream(data: Path, folder: Path, rows: int, shard_rows: int) -> None:
    """Write the shards, and measure them."""
    writer = multiprocessing.get_context("spawn").Process(target=write_shards, args=(folder, data, rows, shard_rows))
    writer.start()
    writer.join()
    measure(Folder(folder, rows, shard_rows), folder, rows, shard_rows)


def measure(shards: Folder | MadeRows, folder: Path, rows: int, shard_rows: int) -> None:
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
    if isinstance(shards, MadeRows):
        planted_rows = pl.col("row") % 7 == 6
        right = members.filter(planted_rows & (pl.col("kept_row") == pl.col("row") - 1)).height
        print(f"planted {rows // 7:,}, found with the row that they copy {right:,}, others {members.height - right:,}")
    print(pl.DataFrame(steps, schema=["step", "cpu_s", "wall_s", "peak_mb"], orient="row"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Path(os.environ.get("GOLDILOCKS_DATA", ROOT.parent / "shared" / "data"))
    parser.add_argument("data", nargs="?", type=Path, default=default)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--stream", type=int, help="rows to be written as shards and read one at a time")
    parser.add_argument("--made", type=int, help="short rows to be made as they are read")
    parser.add_argument("--shard-rows", type=int, default=10_000)
    parser.add_argument("--folder", type=Path, help="where the shards are kept; a temporary folder where absent")
    arguments = parser.parse_args()
    if arguments.stream or arguments.made:
        with tempfile.TemporaryDirectory() as scratch:
            folder = arguments.folder or Path(scratch)
            folder.mkdir(parents=True, exist_ok=True)
            if arguments.made:
                made = MadeRows(arguments.made, arguments.shard_rows)
                measure(made, folder, arguments.made, arguments.shard_rows)
            else:
                stream(arguments.data, folder, arguments.stream, arguments.shard_rows)
        return
    rows = planted(statements(arguments.data), arguments.rows)
    start = time.perf_counter()
    members = near_duplicates(rows, ["a", "b"])
    took = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"{rows.height:,} rows in {took:.1f} s; {members.height:,} go; peak memory {peak:.2f} GB")
    matched = rows.join(members.select("source", "row", "kept_row", "similarity"), on=["source", "row"], how="left")
    with pl.Config(tbl_rows=20, tbl_hide_dataframe_shape=True):
        print(
            matched.group_by("recipe", maintain_order=True).agg(
                rows=pl.len(),
                goes=pl.col("kept_row").is_not_null().mean().round(4),
                to_its_original=(pl.col("kept_row") == pl.col("of")).mean().round(4),
                least=pl.col("similarity").min(),
            )
        )
        originals = matched.filter((pl.col("recipe") == "original") & pl.col("kept_row").is_not_null())
        print(originals.group_by("set").len().sort("len", descending=True))


if __name__ == "__main__":
    main()
