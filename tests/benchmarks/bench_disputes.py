"""Labels mended while training: held-out pass@1 with wrong references planted, with `curriculum.disputes` and without.

    .venv/bin/python -m tests.benchmarks.bench_disputes FOLDER [--seeds 1 2 3] [--shares .05 .1 .2] [--steps 10]

The embedded model trains on ``--problems`` problems of its family, of which a share has another number as reference;
for each seed and share once with disputes and once without, and once on clean references. Held out are ``--held-out``
problems of the held-out split, ``--attempts`` attempts each. *Right*: of the disputed labels, the share that is wrong;
*found*: of the wrong labels, the share disputed, and among those with rollouts enough. Training is synchronous, by the
torch generator. What is finished lies in FOLDER and is not done again.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl

from curation.records import PROBLEM
from curation.storage.stages import atomic_write
from tests.embedded_model.measure import measure_pass_rates
from training.embedded_model import WEIGHTS
from training.embedded_model.problems import Split, generate_exercises

RECIPES = Path(__file__).parents[2] / "flows" / "recipes"
MOST = 2
"""A run that has rollouts enough of a problem: both halves of the least size."""


def planted_set(folder: Path, problems: int, share: float, seed: int) -> set[str]:
    """Write a curated set of the embedded family with wrong references; return whose reference is wrong."""
    draw = random.Random(1000 * seed)
    exercises = list(islice(generate_exercises(500 + seed, Split.TRAIN), problems))
    wrong = {item.id for item in draw.sample(exercises, round(share * len(exercises)))}
    rows: list[dict[str, Any]] = []
    for item in exercises:
        slip = draw.choice((1, -1, 10, -10, 2, 100))
        answer = item.answer + slip if item.id in wrong else item.answer
        row = {"id": item.id, "group": item.id, "domain": "math", "statement": item.statement, "answer": str(answer)}
        rows.append({**dict.fromkeys(PROBLEM), **row, "lang": item.lang, "source": "sums", "row": len(rows)})
    (folder / "data").mkdir(parents=True, exist_ok=True)
    pl.DataFrame(rows, schema=PROBLEM).write_parquet(folder / "data" / "train-00000-of-00001.parquet")
    return wrong


def run_arm(options: argparse.Namespace, folder: Path, seed: int, share: float, mends: bool) -> dict[str, Any]:
    """Train one arm, or finish it; return its held-out pass rate and what it disputed."""
    from flows.run.training import train

    wrong = planted_set(folder / "set", options.problems, share, seed)
    out = folder / "run"
    changes = [
        f"steps={options.steps}",
        f"seed={seed}",
        f'data={{ kind = "curated", folders = [{json.dumps(str((folder / "set").absolute()))}] }}',
        "evaluation={}",
        "collector.max_staleness=0",
        f"collector.n_batch={options.batch}",
        f"collector.n_async={options.batch}",
        "checks=false",
        f"checkpoints.every={options.steps}",
        f"curriculum={{ disputes = {str(mends).lower()} }}",
    ]
    if not (out / "summary.json").exists():
        if (out / "run.json").exists():
            train(None, out, resume=True)
        else:
            train(RECIPES / "train_embedded.toml", out, changes)
    rates_path = folder / "rates.json"
    if not rates_path.exists():
        measured = measure_pass_rates(out / "model", options.held_out, options.attempts).by_problem["pass_rate"]
        atomic_write(rates_path, json.dumps(measured.to_list()))
    rates = [rate for rate in json.loads(rates_path.read_text()) if rate is not None]
    lines = (out / "disputed.jsonl").read_text().splitlines() if mends else []
    disputed = {json.loads(line)["id"] for line in lines}
    groups = Counter(json.loads(line)["problem"] for line in (out / "attempts.jsonl").read_text().splitlines())
    seen = {name for name, rollouts in groups.items() if rollouts >= MOST * 16}
    return {
        "rate": statistics.fmean(rates),
        "disputed": len(disputed),
        "hits": len(disputed & wrong),
        "wrong": len(wrong),
        "seen": len(wrong & seen),
        "rollouts": sum(groups.values()),
    }


def main() -> None:
    """Run the arms and print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("folder", type=Path)
    options.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    options.add_argument("--shares", type=float, nargs="+", default=[0.05, 0.1, 0.2])
    options.add_argument("--steps", type=int, default=10)
    options.add_argument("--problems", type=int, default=30)
    options.add_argument("--batch", type=int, default=96)
    options.add_argument("--held-out", type=int, default=80)
    options.add_argument("--attempts", type=int, default=2)
    chosen = options.parse_args()
    before = measure_pass_rates(WEIGHTS, chosen.held_out, chosen.attempts).by_problem["pass_rate"].drop_nulls()
    print(f"held-out pass@1 before: {statistics.fmean(before):.3f}")
    print("seed planted | clean  none   mended | disputed right found (of those seen enough)", flush=True)
    for seed in chosen.seeds:
        clean = run_arm(chosen, chosen.folder / f"{seed}-clean", seed, 0.0, mends=False)
        for share in chosen.shares:
            place = chosen.folder / f"{seed}-{share:g}"
            none, mended = (
                run_arm(chosen, place.with_name(f"{place.name}-{name}"), seed, share, mends=mends)
                for name, mends in (("none", False), ("mended", True))
            )
            right = f"{mended['hits'] / mended['disputed']:.2f}" if mended["disputed"] else "--"
            print(
                f"{seed:4} {share:7.0%} | {clean['rate']:.3f}  {none['rate']:.3f}  {mended['rate']:.3f}  | "
                f"{mended['disputed']:8} {right:>5} {mended['hits'] / mended['wrong']:5.2f} "
                f"({mended['hits']} of {mended['seen']})",
                flush=True,
            )


if __name__ == "__main__":
    main()
