"""A whole `goldilocks run` on many rows: time, CPU seconds and memory of each stage, and whether memory grows.

    .venv/bin/python -m tests.benchmarks.bench_long_run [--rows 250000 1000000] [--folder DIR] [--attempts 4]

Rows are short word problems from this file's own generator, another one each time: an eighth is an exact or a near copy
of a row shortly before, a twentieth cannot be asked (a proof, a figure), one in a thousand is in the benchmark of
500 rows. The run has every stage of the math pipeline but model calls. Without ``--attempts`` none was recorded, so the
last stage drops what the filters keep; with it each row has this number, some are right, and most rows stay to the
end: the set, its card and its labels are then as large as they become. Each run is a command of its own, in one
process; the numbers are those of its `history.jsonl`. Then the set is published again, all stages finished, and the
most memory of that command is printed: its stages' peaks would hide it. With ``--folder`` a run that was killed goes
on: its first lines are then of the earlier command.
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

RECIPE = """
name = "long-run"
[[sources]]
name = "made"
kind = "jsonl"
path = "rows-{rows}.jsonl"
columns = {{ statement = "problem", answer = "answer" }}
[[decontamination.against]]
name = "exam"
kind = "jsonl"
path = "exam.jsonl"
[stage1]
model = "student"

[models.student]
kind = "recorded"
name = "nobody@1"
path = "{attempts}"
columns = {{ problem = "problem", attempts = "attempts", text = "text" }}
[stage1.band]
attempts = {wanted}
"""
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
    """Return a statement and its answer."""
    name, thing, place = draw.choice(NAMES), draw.choice(THINGS), draw.choice(PLACES)
    first, second = draw.randrange(2, 10_000), draw.randrange(2, 10_000)
    told = (
        f"At the {place}, {name} {draw.choice(ADVERBS)} {draw.choice(VERBS)} {first} {thing}. "
        f"Then {draw.choice(NAMES)} {draw.choice(VERBS)} {second} more {thing} {draw.choice(ADVERBS)}. "
    )
    return told + draw.choice(ASKED).format(thing=thing, name=name), str(first + second)


def rows(count: int) -> Iterator[tuple[str, str]]:
    """Yield ``count`` rows, the same ones each time."""
    draw = random.Random(0)
    exam = [problem(random.Random(f"exam {number}")) for number in range(BENCHMARK_ROWS)]
    recent = [problem(draw)]
    for _ in range(count):
        chance = draw.random()
        if chance < 0.05:
            statement, answer = problem(draw)
            kind = draw.choice(("Prove that the sum is even. ", "See the figure below. "))
            row = kind + statement, answer
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
    """Write JSON lines, unless they are there."""
    if file.exists():
        return
    aside = file.with_suffix(".part")
    with aside.open("w", encoding="utf-8") as out:
        out.writelines(json.dumps(line) + "\n" for line in lines)
    aside.rename(file)


def as_lines(problems: Iterator[tuple[str, str]]) -> Iterator[dict[str, object]]:
    """Yield rows as they are written."""
    return ({"problem": statement, "answer": answer} for statement, answer in problems)


def run(folder: Path, count: int, shard_rows: int, each: int) -> pl.DataFrame:
    """Run the recipe on ``count`` rows with ``each`` attempts; return what its history holds of each stage."""
    write(folder / f"rows-{count}.jsonl", as_lines(rows(count)))
    exam = (problem(random.Random(f"exam {number}")) for number in range(BENCHMARK_ROWS))
    write(folder / "exam.jsonl", as_lines(exam))
    recorded = f"attempts-{count}-{each}.jsonl"
    none: dict[str, object] = {"problem": "none", "attempts": [{"text": "none"}]}
    write(folder / recorded, attempts(count, each) if each else iter([none]))
    recipe = folder / f"recipe-{count}-{each}.toml"
    recipe.write_text(RECIPE.format(rows=count, attempts=recorded, wanted=max(2, each)))
    out = folder / f"run-{count}-{each}"
    settings = ["--set", f"shard_rows={shard_rows}", "--out", str(out)]
    command = [sys.executable, "-m", "flows.cli", "run", str(recipe), *settings]
    first = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(first.pid, 0)
    assert status == 0
    print(f"\nrun: {used.ru_maxrss / 1024:,.0f} MB at most, {used.ru_utime + used.ru_stime:.1f} CPU s")
    lines = [json.loads(line) for line in (out / "history.jsonl").read_text(encoding="utf-8").splitlines()]
    stages = [line for line in lines if "stage" in line]
    for published in ("curated", "versions"):
        shutil.rmtree(out / published)
    again = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, _, used = os.wait4(again.pid, 0)
    seconds = used.ru_utime + used.ru_stime
    print(f"\npublished again: {used.ru_maxrss / 1024:,.0f} MB at most, {seconds:.1f} CPU s")
    disk = sum(file.stat().st_size for file in out.rglob("*") if file.is_file()) / 1e9
    print(f"{count:,} rows, {disk:.2f} GB on disk, ended: {lines[-1]['state']}")
    return pl.DataFrame({name: [line.get(name) for line in stages] for name in ("stage", "in", "kept", "seconds")})


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
            print(run(folder, count, arguments.shard_rows, arguments.attempts), flush=True)


if __name__ == "__main__":
    main()
