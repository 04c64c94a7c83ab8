"""What the difficulty dial brings: problems that were never solved into the band, and then a model that solves more.

    .venv/bin/python -m tests.benchmarks.bench_dial embedded FOLDER [--seeds 1 2 3] [--steps 12]
    .venv/bin/python -m tests.benchmarks.bench_dial real FOLDER [--problems 32]

embedded: for each seed a source is drawn, ``--hard`` problems of levels 3 and 4, ``--others`` of levels 1 and 2, each
with a worked solution, and curated by the embedded model with the dial (traces: attempts and solutions). Of the
never-solved problems the share is printed that has a correct trace, and of these the share that a prefix brings into
the band, with the attempts that took. Then the embedded model is trained from the same weights, with the same seeds, on
the set with the rows that have a prefix (`with`) and on the same set without them (`without`), until each has sampled
as many tokens as the arm that sampled fewer in ``--steps`` steps, to the nearest step. All are asked ``--held-out``
held-out hard problems, without any prefix, and as many of levels 1 and 2, ``--attempts`` times each,
under the same seeds. Intervals: 95 % over seeds and problems together, of paired differences
(`training.evaluation.estimators.crossed_interval`).

real: SmolLM2-135M-Instruct (`tests/real_model`) on GSM8K's test problems, shown two worked examples; the traces are
other models' recorded correct solutions. Into the band only; nothing is trained. Needs GOLDILOCKS_DATA.

``--kinds`` takes hard ones of some kinds alone, ``--start`` another model than the shipped one, and with ``--unsolved``
neither set has the hard problems that were solved without a prefix.

What is finished in FOLDER stays.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import statistics
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl

from curation.storage.stages import atomic_write, read_table
from tests.benchmarks.bench_counterfactual import checkpoint, rows_of, tokens_by_step, trained
from tests.embedded_model.measure import measure_exercises
from tests.embedded_model.solutions import worked_solution
from training.embedded_model import WEIGHTS
from training.embedded_model.problems import Exercise, Split, generate_exercises
from training.evaluation.estimators import crossed_interval
from training.evaluation.report import verdict, with_interval

PRODUCTS = "big_product"
"""Nobody works out problems of this kind."""

ARMS = ("without", "with")

RECIPE = """
name = "dial"
shard_rows = 200
workers = 1
[[sources]]
name = "sums"
kind = "jsonl"
path = "problems.jsonl"
license = "Apache-2.0"
columns = {{ statement = "problem", answer = "answer", lang = "lang", solution = "solution" }}
[near_dedup]
enabled = false
[dial]
traces = ["attempts", "solutions"]
probes = {probes}
[stage1]
band = {{ attempts = {tries}, wrong_label_share = 1.0, max_pass_rate = 0.875 }}
[stage1.policy]
kind = "torch"
model = {model}
prompt = "plain"
decoding = {{ temperature = 1.0, max_tokens = 112 }}
"""


REAL = """
name = "dial-real"
shard_rows = 200
workers = 1
[[sources]]
name = "gsm8k"
kind = "jsonl"
path = "problems.jsonl"
license = "MIT"
columns = {{ statement = "problem", answer = "answer", solution = "solution" }}
[near_dedup]
enabled = false
[dial]
traces = ["solutions"]
probes = {probes}
[stage1]
band = {{ attempts = {tries}, wrong_label_share = 1.0 }}
[stage1.policy]
kind = "vllm"
model = {model}
prompt = "plain"
thinking = "none"
examples = [{examples}]
dtype = "float32"
max_model_len = 768
kv_cache_mb = 512
in_flight = 64
decoding = {{ temperature = 0.7, max_tokens = 120 }}
"""

EXAMPLES = (
    (
        "Tom has 3 boxes with 4 pens each. He gives away 5 pens. How many pens are left?",
        "Tom has 3 * 4 = 12 pens\nHe gives away 5, so he has 12 - 5 = 7 pens left\nA: 7",
    ),
    (
        "A ticket costs $8. Ana buys 2 tickets and a drink for $3. How much does she pay?",
        "The tickets cost 2 * 8 = $16\nWith the drink she pays 16 + 3 = $19\nA: 19",
    ),
)
_CALCULATOR = re.compile(r"<<[^<>]*>>")


def levels(seed: int, split: Split, low: int, high: int, kinds: Sequence[str] = ()) -> Iterator[Exercise]:
    """Yield exercises of these levels, of some kinds alone where any are named."""
    drawn = (item for item in generate_exercises(seed, split, kinds=kinds) if item.kind != PRODUCTS)
    return (item for item in drawn if low <= item.level <= high)


def hard_ones(options: argparse.Namespace, seed: int, split: Split) -> Iterator[Exercise]:
    """Yield the benchmark's hard exercises."""
    return levels(seed, split, 3, 4, options.kinds)


def curated(options: argparse.Namespace, seed: int, folder: Path) -> Path:
    """Return the run folder of the seed's set."""
    from flows.cli.commands import run_recipe

    if (folder / "finished").exists():
        return folder / "run"
    folder.mkdir(parents=True, exist_ok=True)
    hard = islice(hard_ones(options, 300 + seed, Split.TRAIN), options.hard)
    items = [*hard, *islice(levels(700 + seed, Split.TRAIN, 1, 2), options.others)]
    random.Random(seed).shuffle(items)
    rows = [
        {"problem": item.statement, "answer": str(item.answer), "lang": item.lang, "solution": worked_solution(item)}
        for item in items
    ]
    atomic_write(folder / "problems.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    atomic_write(
        folder / "recipe.toml",
        RECIPE.format(tries=options.tries, probes=options.probes, model=json.dumps(str(options.start))),
    )
    run_recipe(folder / "recipe.toml", [], folder / "run")
    atomic_write(folder / "finished", "")
    return folder / "run"


def dialled(run: Path) -> pl.DataFrame:
    """Return what became of each problem that was too hard."""
    return read_table(next((run / "decisions" / "dial").iterdir()), "prefixes")


def sets(options: argparse.Namespace, seed: int, run: Path, folder: Path) -> dict[str, Path]:
    """Return the folders of the set with the rows that have a prefix, and without them.

    With ``--unsolved`` neither has the hard problems that were solved without a prefix.
    """
    rows, found = rows_of(run / "curated"), {}
    if options.unsolved:
        hard = {item.statement for item in islice(hard_ones(options, 300 + seed, Split.TRAIN), options.hard)}
        rows = rows.filter(pl.col("prefix").is_not_null() | ~pl.col("statement").is_in(hard))
    for arm, chosen in (("without", rows.filter(pl.col("prefix").is_null())), ("with", rows)):
        found[arm] = folder / f"rows-{arm}"
        (found[arm] / "data").mkdir(parents=True, exist_ok=True)
        chosen.write_parquet(found[arm] / "data" / "train-00000-of-00001.parquet")
    return found


def held_out(options: argparse.Namespace, model: Path, path: Path) -> dict[str, list[float]]:
    """Return the pass rate of each held-out problem: of the hardest kind, and of the others."""
    if not path.exists():
        found = {}
        supplies = {
            "hard": hard_ones(options, 2026, Split.HELD_OUT),
            "levels 1 and 2": levels(2026, Split.HELD_OUT, 1, 2),
        }
        for name, supply in supplies.items():
            items = list(islice(supply, options.held_out))
            rates = measure_exercises(model, items, options.attempts).by_problem["pass_rate"]
            found[name] = rates.fill_null(0.0).to_list()
        atomic_write(path, json.dumps(found))
    values: dict[str, list[float]] = json.loads(path.read_text(encoding="utf-8"))
    return values


def describe(table: pl.DataFrame) -> tuple[int, int]:
    """Print what became of problems that were too hard; return how many had a correct trace and came into the band."""
    traced = table.filter(pl.col("traces") > 0)
    into = traced.filter(pl.col("prefix").is_not_null())
    share = statistics.median(into["prefix_share"].to_list() or [0.0])
    print(
        f"{table.height} never solved, {traced.height} with a correct trace, {into.height} of these in the band "
        f"({into.height / max(1, traced.height):.0%}); {table['probes'].sum()} lengths, {table['attempts'].sum():,} "
        f"attempts, {table['tokens'].sum():,} tokens; median share of the trace {share:.2f}; "
        f"{dict(table['outcome'].value_counts(sort=True).iter_rows())}",
        flush=True,
    )
    return traced.height, into.height


def real(options: argparse.Namespace, folder: Path) -> None:
    """Turn the dial for SmolLM2 on GSM8K, and print what became of the problems."""
    from flows.cli.commands import run_recipe
    from tests.places import SHARED_DATA
    from tests.real_model.smollm import smollm_folder

    lines = (SHARED_DATA / "attempts" / "gsm8k_openai_models.jsonl").read_text(encoding="utf-8").splitlines()
    rows = []
    for line in lines:
        row = json.loads(line)
        right = [one["text"] for one in row["samples"] if one["correct"] and one["text"]]
        if right:
            text = _CALCULATOR.sub("", min(right, key=len))
            rows.append({"problem": row["problem"], "answer": row["gold"], "solution": text})
    chosen = random.Random(1).sample(rows, options.problems)
    atomic_write(folder / "problems.jsonl", "".join(json.dumps(row) + "\n" for row in chosen))
    shown = ", ".join(f"{{ statement = {json.dumps(one)}, response = {json.dumps(two)} }}" for one, two in EXAMPLES)
    model = json.dumps(str(smollm_folder()))
    recipe = REAL.format(tries=options.tries, probes=options.probes, model=model, examples=shown)
    atomic_write(folder / "recipe.toml", recipe)
    run_recipe(folder / "recipe.toml", [], folder / "run")
    describe(dialled(folder / "run"))


def run_seed(options: argparse.Namespace, seed: int, folder: Path) -> dict[str, Any]:
    """Run one seed, and print what it came to."""
    run = curated(options, seed, folder / "set")
    table = dialled(run)
    data = sets(options, seed, run, folder)
    print(f"seed {seed}, sets of {' and '.join(str(rows_of(data[arm]).height) for arm in ARMS)}: ", end="")
    traced, into = describe(table)
    runs = {arm: trained(options, seed, data[arm], folder / arm, options.steps, str(options.start)) for arm in ARMS}
    sums = {arm: tokens_by_step(runs[arm]) for arm in ARMS}
    budget = min(total[-1] for total in sums.values())
    found: dict[str, Any] = {"traced": traced, "into": into, "attempts": int(table["attempts"].sum())}
    for arm in ARMS:
        step = min(range(1, len(sums[arm]) + 1), key=lambda number: abs(sums[arm][number - 1] - budget))
        last = step == len(sums[arm])
        model = runs[arm] / "model" if last else checkpoint(runs[arm], step)
        found[arm] = held_out(options, model, folder / f"rates-{arm}-{step}.json")
        rates = ", ".join(f"{name} {statistics.fmean(values):.3f}" for name, values in found[arm].items())
        print(f"seed {seed} {arm}: {rates} after {step} steps, {sums[arm][step - 1]:,.0f} tokens", flush=True)
    return found


def report(results: Sequence[dict[str, Any]], start: dict[str, list[float]]) -> None:
    """Print the shares and the differences."""
    traced, into = (sum(one[name] for one in results) for name in ("traced", "into"))
    spent = sum(one["attempts"] for one in results)
    print(f"\ninto the band: {into} of {traced} with a correct trace ({into / max(1, traced):.0%}), {spent:,} attempts")
    for name in start:
        means = [statistics.fmean(statistics.fmean(one[arm][name]) for one in results) for arm in ARMS]
        rows = [[b - a for a, b in zip(one["without"][name], one["with"][name], strict=True)] for one in results]
        print(
            f"{name}: start {statistics.fmean(start[name]):.3f}, without {means[0]:.3f}, with {means[1]:.3f}; with - "
            f"without {with_interval(crossed_interval(rows), signed=True)}, "
            f"{verdict(crossed_interval(rows), 'the dial pays', 'the dial costs')}; by seed "
            + " ".join(f"{statistics.fmean(row):+.3f}" for row in rows)
        )


def main() -> None:
    """Run the seeds and print the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("embedded", "real"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--problems", type=int, default=32)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--start", type=Path, default=WEIGHTS.resolve())
    parser.add_argument("--hard", type=int, default=160)
    parser.add_argument("--kinds", nargs="+", default=[], help="the kinds that are hard ones; all where none is named")
    parser.add_argument("--unsolved", action="store_true", help="hard problems only where a prefix was needed")
    parser.add_argument("--others", type=int, default=60)
    parser.add_argument("--tries", type=int, default=16)
    parser.add_argument("--probes", type=int, default=6)
    parser.add_argument("--held-out", type=int, default=100)
    parser.add_argument("--attempts", type=int, default=4)
    options = parser.parse_args()
    folder = options.folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    if options.part == "real":
        real(options, folder)
        return
    start = held_out(options, options.start, folder / "rates-start.json")
    report([run_seed(options, seed, folder / f"seed-{seed}") for seed in options.seeds], start)


if __name__ == "__main__":
    main()
