"""Recorded attempts judged end to end, beside Math-Verify judging the same attempts in one process.

    .venv/bin/python -m tests.benchmarks.bench_pipeline [ATTEMPTS.jsonl] [--repeat 4] [--peer 1000]

The attempts file holds one problem a line: ``problem``, ``gold``, ``samples`` [{``text``}]; by default that of OpenAI's
GSM8K models in the shared data folder. ``--repeat`` writes every attempt so many times (4 x 5,276 = 21,104). The line
is timed as a user runs it: a new process, from the recipe to the data card. Math-Verify judges the first ``--peer``
attempts; its time for all of them is scaled up from these.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
SHARED = Path(os.environ.get("GOLDILOCKS_DATA", ROOT.parent / "shared" / "data"))
RECIPE = """
name = "bench-line"
[[sources]]
name = "bench"
kind = "jsonl"
path = "rows.jsonl"
columns = { statement = "problem", answer = "gold" }
[stage1]
model = "student"

[models.student]
kind = "recorded"
name = "recorded@bench"
path = "rows.jsonl"
columns = { problem = "problem", attempts = "samples", text = "text" }
"""


def read(path: Path, repeat: int) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [{**row, "samples": [{"text": s["text"]} for s in row["samples"]] * repeat} for row in rows]


def time_line(rows: list[dict[str, Any]], folder: Path) -> float:
    """Return seconds of `goldilocks run`, all of it."""
    with (folder / "rows.jsonl").open("w", encoding="utf-8") as out:
        out.writelines(json.dumps(row) + "\n" for row in rows)
    (folder / "recipe.toml").write_text(RECIPE)
    command = [sys.executable, "-m", "flows.cli", "run", str(folder / "recipe.toml"), "--out", str(folder / "run")]
    begun = time.perf_counter()
    subprocess.run(command, cwd=ROOT, check=True)
    return time.perf_counter() - begun


def time_peer(rows: list[dict[str, Any]], attempts: int) -> float:
    """Return seconds of Math-Verify for so many attempts, as its README uses it."""
    from math_verify import parse, verify

    judged = [(row["gold"], sample["text"]) for row in rows for sample in row["samples"]][:attempts]
    begun = time.perf_counter()
    for gold, text in judged:
        verify(parse(gold), parse(text))
    return (time.perf_counter() - begun) / len(judged)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", nargs="?", type=Path, default=SHARED / "attempts" / "gsm8k_openai_models.jsonl")
    parser.add_argument("--repeat", type=int, default=4)
    parser.add_argument("--peer", type=int, default=1000)
    arguments = parser.parse_args()
    if not arguments.path.exists():
        sys.exit(f"{arguments.path}: there is no such file; give a file of attempts.")
    rows = read(arguments.path, arguments.repeat)
    total = sum(len(row["samples"]) for row in rows)
    per_attempt = time_peer(rows, min(arguments.peer, total))
    with tempfile.TemporaryDirectory() as folder:
        seconds = time_line(rows, Path(folder))
    print(f"{total:,} attempts, {os.cpu_count()} cores")
    print(f"goldilocks run, recipe to card   {seconds:8.1f} s   {total / seconds:8.0f} attempts/s")
    print(f"Math-Verify, one process, alone  {per_attempt * total:8.1f} s   {1 / per_attempt:8.0f} attempts/s")
    print(f"ratio                            {per_attempt * total / seconds:8.1f}")


if __name__ == "__main__":
    main()
