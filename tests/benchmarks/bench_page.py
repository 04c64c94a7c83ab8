"""How quickly the page of a run of 700,000 rows answers: `python -m tests.benchmarks.bench_page [--rows N]`.

Rows are made here and written as a stage keeps them. Printed are wall milliseconds and this process's CPU milliseconds
of whole requests through the application: the first one reads the parquet, the next ones page, sort, narrow and search.
The aim is 200 ms a page.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from pathlib import Path

import polars as pl
from starlette.testclient import TestClient

from curation.config import Recipe
from curation.records import PROBLEM
from curation.storage.stages import Shard, StageFolder
from flows.page.app import make_app
from flows.run.recipe import load_recipe
from flows.run.run_folder import Run
from flows.stages.sources import SOURCES
from tests.places import ROOT

SHARD = 20_000
WORDS = (
    "train apples speed metres kilometre marbles given how many number of solution find value integer probability "
    "triangle circle area sum product divisor prime modulo sequence remainder garden workers candles"
).split()

ASKED = (
    ("first page, parquet read", ""),
    ("the same again", ""),
    ("page 2", "page=1"),
    ("page 9,000", "page=9000"),
    ("longest first", "sort=longest"),
    ("… page 5,000", "sort=longest&page=5000"),
    ("one language", "lang=de"),
    ("one source, longest first", "source=made&sort=longest"),
    ("two words", "words=triangle+candles"),
    ("… page 2", "words=triangle+candles&page=1"),
    ("a rare word", "words=number699999"),
    ("beginning of an id", "id=0a1"),
)


def make_run(folder: Path, rows: int) -> None:
    """Write a run whose sources have so many rows of about 40 words."""
    recipe: Recipe = load_recipe(ROOT / "flows" / "recipes" / "demo_math.toml")
    run = Run(folder, recipe, folder)
    folder.mkdir(parents=True)
    run.save()
    draw = random.Random(1)
    texts = [" ".join(draw.choices(WORDS, k=40)) for _ in range(5000)]
    stage = StageFolder(SOURCES.folder_in(run), SOURCES.name, "bench", json.dumps(rows), {})
    stage.prepare()
    shards = range(0, rows, SHARD)
    for index, start in enumerate(shards):
        numbers = range(start, min(start + SHARD, rows))
        frame = pl.DataFrame(
            {
                "id": [f"{(number * 2654435761) % 2**32:08x}{number:012x}" for number in numbers],
                "statement": [f"{draw.choice(texts)} number{number}" for number in numbers],
                "answer": [str(number) for number in numbers],
                "lang": [("en", "de", "fr")[number % 3] for number in numbers],
                "row": list(numbers),
            }
        )
        made = frame.with_columns(
            group="id", domain=pl.lit("math"), source=pl.lit("made"), license=pl.lit("CC0-1.0"), weight=pl.lit(1.0)
        )
        kept = made.match_to_schema(PROBLEM, missing_columns="insert")
        stage.write(index, Shard(kept.height, {"kept": kept}))
    stage.close(len(shards))


def main() -> None:
    """Make the run, ask for its pages, print the times."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=700_000)
    rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as place:
        make_run(Path(place) / "run", rows)
        client = TestClient(make_app(Path(place) / "run"), base_url="http://localhost")
        print(f"{rows:,} rows")
        for name, query in ASKED:
            begun, cpu = time.perf_counter(), time.process_time()
            answer = client.get(f"/r/run/rows?{query}")
            wall, used = time.perf_counter() - begun, time.process_time() - cpu
            assert answer.status_code == 200, answer.text
            print(f"{name:<28} {1000 * wall:7.0f} ms wall {1000 * used:7.0f} ms CPU")


if __name__ == "__main__":
    main()
