"""How quickly the page of a run of 700,000 rows answers: `python -m tests.benchmarks.bench_page [--rows N]`.

It prints wall and CPU milliseconds of whole requests through the application. The aim is 200 ms a page.
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
    *("", "", "page=1", "page=9000", "sort=longest", "sort=longest&page=5000", "lang=de", "source=made&sort=longest"),
    *("words=triangle+candles", "words=triangle+candles&page=1", "words=number699999", "id=0a1"),
)
"""Queries in their order: the first request reads the parquet."""


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
        columns = {
            "id": [f"{(number * 2654435761) % 2**32:08x}{number:012x}" for number in numbers],
            "statement": [f"{draw.choice(texts)} number{number}" for number in numbers],
            "answer": [str(number) for number in numbers],
            "lang": [("en", "de", "fr")[number % 3] for number in numbers],
            "row": list(numbers),
        }
        same = {"domain": "math", "source": "made", "license": "CC0-1.0", "weight": 1.0}
        made = pl.DataFrame(columns).with_columns(group="id", **{name: pl.lit(value) for name, value in same.items()})
        kept = made.match_to_schema(PROBLEM, missing_columns="insert")
        stage.write(index, Shard(kept.height, {"kept": kept}))
    stage.close(len(shards))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=700_000)
    rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as place:
        make_run(Path(place) / "run", rows)
        client = TestClient(make_app(Path(place) / "run"), base_url="http://localhost")
        print(f"{rows:,} rows")
        for query in ASKED:
            begun, cpu = time.perf_counter(), time.process_time()
            answer = client.get(f"/r/run/rows?{query}")
            wall, used = time.perf_counter() - begun, time.process_time() - cpu
            assert answer.status_code == 200, answer.text
            print(f"/rows?{query:<32} {1000 * wall:7.0f} ms wall {1000 * used:7.0f} ms CPU")


if __name__ == "__main__":
    main()
