"""A run's first stages beside the filter in process: rows a second by the clock and by CPU time, and peak memory.

    .venv/bin/python -m tests.benchmarks.bench_filter_run [DATA] [--rows 200000] [--shard-rows 2000]

The rows are those of the labelled sets (`bench_filters`), repeated, as one .jsonl file; the stages are those of the
math pipeline up to the reference check, in this process and without Prefect. A stage's time is that of reading, working
and writing its shards; the filter in process has the same rows in one frame, 40,000 at a time. Peak memory is of the
process, whose rows the benchmark wrote in another one.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import tempfile
import time
from pathlib import Path

from curation.filters.statements import filter_statements
from curation.sources.problems import read_source
from flows.pipelines.curate_math import CURATE_MATH
from flows.run.pipeline import run_stage
from flows.run.run_folder import Run, new_run
from flows.run.stage import Results
from flows.stages.references import REFERENCES
from flows.stages.statements import GROUP_ROWS
from tests.benchmarks.bench_filters import ROOT, cpu, load, peak

RECIPE = """
name = "filter-run"
[[sources]]
name = "sets"
kind = "jsonl"
path = "rows.jsonl"
columns = { statement = "statement", answer = "answer", choices = "choices", lang = "lang", meta = ["set"] }
[stage1]
model = "student"

[models.student]
kind = "recorded"
name = "a@1"
path = "none.jsonl"
columns = { text = "t" }
"""


def write_rows(data: Path, file: Path, count: int) -> None:
    """Write ``count`` rows of the labelled sets as JSON lines, from the first again behind the last."""
    rows = load(data).select("statement", "answer", "choices", "lang", set="source").to_dicts()
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
    with file.open("w", encoding="utf-8") as handle:
        for start in range(0, count, len(lines)):
            handle.writelines(lines[: count - start])


def print_rate(name: str, rows: int, begun: tuple[float, float], note: str = "") -> None:
    """Print what a piece of work took since ``begun``, its clock and CPU seconds."""
    took, busy = time.perf_counter() - begun[0], cpu() - begun[1]
    rates = f"{rows / took:9,.0f} rows/s {rows / busy:9,.0f} per CPU second"
    print(f"{name:<18} {rows:9,} rows {took:7.1f} s {rates}   peak {peak():.2f} GB{note}", flush=True)


def run_stages(run: Run) -> None:
    """Run the stages up to the reference check, and print what each took."""
    results = Results()
    for stage in CURATE_MATH.stages_of(run):
        if stage is REFERENCES:
            break
        begun = time.perf_counter(), cpu()
        results = results.plus(run_stage(stage, run, results))
        manifest = results.problems.manifest
        print_rate(stage.title, manifest.rows_in, begun, f"   kept {manifest.kept:,}")


def run_in_process(run: Run) -> None:
    """Run the filter on the same rows, without files."""
    (source,) = run.recipe.sources
    frames = list(read_source(source, run.recipe_folder, GROUP_ROWS))
    begun = time.perf_counter(), cpu()
    for frame in frames:
        filter_statements(frame, run.recipe.statements)
    print_rate("in process", sum(frame.height for frame in frames), begun)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--shard-rows", type=int, default=2000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        writer = multiprocessing.get_context("spawn").Process(
            target=write_rows, args=(arguments.data, folder / "rows.jsonl", arguments.rows)
        )
        writer.start()
        writer.join()
        recipe = folder / "recipe.toml"
        recipe.write_text(RECIPE)
        run = new_run(recipe, [f"shard_rows={arguments.shard_rows}"], folder / "run")
        run_stages(run)
        run_in_process(run)


if __name__ == "__main__":
    main()
