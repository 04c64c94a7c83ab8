"""A whole `goldilocks run` on many rows: time, CPU seconds and memory of each stage, and whether memory grows.

    .venv/bin/python -m tests.benchmarks.bench_long_run [--rows 250000 1000000] [--folder DIR] [--attempts 4]

Rows are short word problems: an eighth is an exact or a near copy of a row shortly before, a twentieth cannot be asked
(a proof, a figure), one in a thousand is in the benchmark of 500 rows. The run has every stage of the math pipeline but
model calls. Without ``--attempts`` the last stage drops what the filters keep; with it each row has this number, and
most rows stay to the end. Numbers are of each command's `history.jsonl`. Then the set is published again, all stages
finished, and the most memory of that command is printed. With ``--folder`` a killed run goes on.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import polars as pl

RECIPE = Path(__file__).with_name("long_run.toml")
NAMES = "Maria Tom Ali Chen Ruth Ivan Nora Omar Lena Hugo Aisha Petra Jonas Mei Carlos Ida".split()
THINGS = "apples pencils tickets stamps bricks shells cookies marbles lamps chairs ropes coins books plates".split()
PLACES = "market school harbour station library garden museum workshop bakery stadium farm hotel".split()
VERBS = "buys sells carries paints finds packs counts borrows repairs collects".split()
ADVERBS = "quickly carefully again together quietly today early later twice first".split()
ASKED = (
    "How many {thing} are there in all?",
    "What is the total number of {thing}?",
    "How many {thing} does {name} have at the end?",
)
BENCHMARK_ROWS = 500


def problem(draw: random.Random) -> tuple[str, str]:
    name, thing, place = draw.choice(NAMES), draw.choice(THINGS), draw.choice(PLACES)
    first, second = draw.randrange(2, 10_000), draw.randrange(2, 10_000)
    story = f"At the {place}, {name} {draw.choice(ADVERBS)} {draw.choice(VERBS)} {first} {thing}. "
    story += f"Then {draw.choice(NAMES)} {draw.choice(VERBS)} {second} more {thing} {draw.choice(ADVERBS)}. "
    return story + draw.choice(ASKED).format(thing=thing, name=name), str(first + second)


def rows(count: int) -> Iterator[tuple[str, str]]:
    """Yield ``count`` rows, the same ones each time."""
    draw = random.Random(0)
    exam = [problem(random.Random(f"exam {number}")) for number in range(BENCHMARK_ROWS)]
    recent = [problem(draw)]
    for _ in range(count):
        chance = draw.random()
        if chance < 0.05:
            statement, answer = problem(draw)
            row = draw.choice(("Prove that the sum is even. ", "See the figure below. ")) + statement, answer
        elif chance < 0.051:
            row = draw.choice(exam)
        elif chance < 0.176:
            statement, answer = draw.choice(recent)
            row = (statement if chance < 0.1 else statement.replace("Then ", "Afterwards "), answer)
        else:
            row = problem(draw)
        recent = [*recent[-50:], row]
        yield row


def attempts(count: int, each: int) -> Iterator[dict[str, object]]:
    """Yield recorded attempts at ``count`` rows: one to all but one of them right, wrong ones near the answer."""
    draw = random.Random(1)
    for statement, answer in rows(count):
        right = draw.randrange(1, each)
        said = [answer] * right + [str(int(answer) + draw.choice((-10, -1, 1, 2, 100))) for _ in range(each - right)]
        texts = [{"text": f"We add both numbers of things and get \\boxed{{{value}}}."} for value in said]
        yield {"problem": statement, "attempts": texts}


def write(file: Path, lines: Iterator[dict[str, object]]) -> None:
    if file.exists():
        return
    aside = file.with_suffix(".part")
    with aside.open("w", encoding="utf-8") as out:
        out.writelines(json.dumps(line) + "\n" for line in lines)
    aside.rename(file)


def as_lines(problems: Iterator[tuple[str, str]]) -> Iterator[dict[str, object]]:
    return ({"problem": statement, "answer": answer} for statement, answer in problems)


def timed(command: list[str], name: str, *, is_empty: bool) -> float:
    """Run a command, which fails if its set is empty; print its CPU seconds, and return its peak memory in MB."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    assert is_empty or status == 0
    print(f"\n{name}: {used.ru_maxrss / 1024:,.0f} MB at most, {used.ru_utime + used.ru_stime:.1f} CPU s")
    return used.ru_maxrss / 1024


def run(folder: Path, count: int, shard_rows: int, each: int) -> tuple[pl.DataFrame, float]:
    """Run the recipe on ``count`` rows with ``each`` attempts; return its stages' history and peak memory in MB."""
    exam = (problem(random.Random(f"exam {number}")) for number in range(BENCHMARK_ROWS))
    none: dict[str, object] = {"problem": "none", "attempts": [{"text": "none"}]}
    inputs = {"sources.0.path": f"rows-{count}.jsonl", "decontamination.against.0.path": "exam.jsonl"}
    inputs["models.student.path"] = f"attempts-{count}-{each}.jsonl"
    made = (as_lines(rows(count)), as_lines(exam), attempts(count, each) if each else iter([none]))
    for name, lines in zip(inputs.values(), made, strict=True):
        write(folder / name, lines)
    changes = [*(f"{key}={folder.absolute() / name}" for key, name in inputs.items())]
    changes += [f"stage1.band.attempts={max(2, each)}", f"shard_rows={shard_rows}"]
    out = folder / f"run-{count}-{each}"
    command = [sys.executable, "-m", "flows.cli", "run", str(RECIPE), "--out", str(out)]
    command += [word for change in changes for word in ("--set", change)]
    peak = timed(command, "run", is_empty=not each)
    lines = [json.loads(line) for line in (out / "history.jsonl").read_text(encoding="utf-8").splitlines()]
    stages = [line for line in lines if "stage" in line]
    for published in ("curated", "versions"):
        shutil.rmtree(out / published, ignore_errors=not each)  # an empty set is not published
    timed(command, "published again", is_empty=not each)
    disk = sum(file.stat().st_size for file in out.rglob("*") if file.is_file()) / 1e9
    print(f"{count:,} rows, {disk:.2f} GB on disk, ended: {lines[-1]['state']}")
    columns = ("stage", "in", "kept", "seconds")
    return pl.DataFrame({name: [line.get(name) for line in stages] for name in columns}), peak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[250_000, 1_000_000])
    parser.add_argument("--shard-rows", type=int, default=10_000)
    parser.add_argument("--attempts", type=int, default=0, help="recorded at each row, so that rows stay to the end")
    parser.add_argument("--folder", type=Path, help="where rows and runs are kept; a temporary folder where absent")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch, pl.Config(tbl_rows=30, tbl_hide_dataframe_shape=True):
        folder = arguments.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        for count in arguments.rows:
            print(run(folder, count, arguments.shard_rows, arguments.attempts)[0], flush=True)


if __name__ == "__main__":
    main()
