"""How fast and how good near duplicates are: 100,000 rows, of which a known share was planted.

    python tests/benchmarks/bench_dedup.py [DATA] [--rows 100000]

DATA holds the shared sets (default: $GOLDILOCKS_DATA, or shared/data beside the checkout). Rows are its math problems,
then as many changed copies as are wanted, by four recipes in turn: ``typography`` (case, spaces, LaTeX spacing,
thousands commas) and ``word`` (one word in thirty replaced, no number) are near duplicates; ``number`` (one number
changed) and ``half`` (every other word replaced) are other problems.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import resource
import sys
import time
from pathlib import Path

import polars as pl

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from curation.filters.dedup.near import near_duplicates  # noqa: E402

RECIPES = ("typography", "word", "number", "half")
NUMBER = re.compile(r"\d+")


def statements(folder: Path) -> list[tuple[str, str]]:
    """Return (set, statement) of every math problem of the shared sets, exact repeats left out."""
    set_of: dict[str, str] = {}
    for path in sorted((folder / "math").glob("*.jsonl")):
        for line in path.open(encoding="utf-8"):
            set_of.setdefault(json.loads(line)["problem"] or "", path.stem)
    return [(name, text) for text, name in set_of.items() if text]


def changed(text: str, recipe: str, draw: random.Random, words: list[str]) -> str:
    """Return a copy of the text, changed by the recipe."""
    if recipe == "typography":
        return text.upper().replace(" ", "  ").replace(".", " .") if "\\" not in text else text.replace(" ", " \\, ")
    if recipe == "number":
        numbers = list(NUMBER.finditer(text))
        if not numbers:
            return text + " 17"
        number = draw.choice(numbers)
        return text[: number.start()] + str(int(number[0]) + 1) + text[number.end() :]
    parts = text.split(" ")
    plain = [i for i, part in enumerate(parts) if part.isalpha() and len(part) > 5]
    count = min(max(1, len(parts) // 30), len(plain)) if recipe == "word" else len(parts) // 2
    for place in draw.sample(plain if recipe == "word" else range(len(parts)), count):
        parts[place] = draw.choice(words)
    return " ".join(parts)


def planted(originals: list[tuple[str, str]], count: int) -> pl.DataFrame:
    """Return originals, then copies; ``recipe`` and ``of`` (the original's row) say what each copy is."""
    draw = random.Random(0)
    words = sorted({word for _, text in originals for word in text.split() if word.isalpha() and len(word) > 5})
    long = [row for row, (_, text) in enumerate(originals) if len(text.split()) >= 30 and text.isascii()]
    rows = [(text, name, "original", row) for row, (name, text) in enumerate(originals)][:count]
    while len(rows) < count:
        recipe, of = RECIPES[len(rows) % 4], draw.choice(long)
        rows.append((changed(originals[of][1], recipe, draw, words), "copies", recipe, of))
    frame = pl.DataFrame(rows, schema=["statement", "set", "recipe", "of"], orient="row").with_row_index("row")
    return frame.select(
        "statement", "set", "recipe", "of", pl.col("row").cast(pl.Int64), id=pl.format("p{}", "row"),
        source=pl.when(pl.col("recipe") == "original").then(pl.lit("a")).otherwise(pl.lit("b")), answer=pl.lit("1"),
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Path(os.environ.get("GOLDILOCKS_DATA", ROOT.parent / "shared" / "data"))
    parser.add_argument("data", nargs="?", type=Path, default=default)
    parser.add_argument("--rows", type=int, default=100_000)
    arguments = parser.parse_args()
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
