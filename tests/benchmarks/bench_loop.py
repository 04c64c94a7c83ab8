"""Does the refresh pay? Rounds of train and refresh beside the same number of steps on a fixed set.

    .venv/bin/python -m tests.benchmarks.bench_loop FOLDER [--seeds 1 2 3] [--rounds 3] [--steps 8] [--problems 1000]

For each seed, the embedded model's problems are drawn and a set is curated with the embedded model (`goldilocks run`).
Then ``--rounds`` + 1 stretches of ``--steps`` steps are trained, each from the model of the stretch before:

  - fixed: all of them on that first version of the set;
  - refreshed: after each stretch but the last, `goldilocks refresh` with the new checkpoint and its attempts, and the
    next stretch on the version that it publishes.

Everything else is the same: initial model, batches, seeds, the number of steps, the held-out problems and the seeds
under which they are asked. The first stretch is one for both. Training is synchronous, so a stretch can be repeated.
Held out are ``--held-out`` problems of the embedded family's held-out split, ``--attempts`` attempts each.

Intervals: of one seed's difference, 95 % over held-out problems (normal, paired); of the mean over seeds, 95 % by
Student's t over seeds. What is finished lies in FOLDER and is not done again: the same command goes on after a kill.
The torch generator alone is used. Equal steps are not equal samples: groups without diversity are dropped and others
drawn in their place, so the attempts that each arm sampled are printed too, with what the refreshes took.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl

from curation.storage.stages import atomic_write
from tests.embedded_model.measure import measure_pass_rates
from training.embedded_model import WEIGHTS
from training.embedded_model.problems import Split, generate_exercises
from training.evaluation.estimators import student

RECIPES = Path(__file__).parents[2] / "flows" / "recipes"
ARMS = ("fixed", "refreshed")

RECIPE = """
name = "bench-loop"
shard_rows = 200
workers = 1
[[sources]]
name = "sums"
kind = "jsonl"
path = "problems.jsonl"
license = "Apache-2.0"
columns = {{ statement = "problem", answer = "answer", lang = "lang" }}
[near_dedup]
enabled = false
[stage1]
band = {{ attempts = {tries}, min_correct = {least}, max_pass_rate = {most} }}
[stage1.policy]
kind = "torch"
model = {model}
prompt = "plain"
decoding = {{ temperature = 1.0, max_tokens = 112 }}
[refresh]
retry_share = {retry}
"""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is compared; kept in FOLDER, so that a command with other figures does not go on there."""

    rounds: int
    steps: int
    problems: int
    held_out: int
    attempts: int
    tries: int
    least: int
    most: float
    retry: float


def curated(plan: Plan, seed: int, folder: Path) -> Path:
    """Return the run folder of the first version of the set."""
    from flows.cli.commands import run_recipe
    from flows.publish.versions import stored_versions

    folder.mkdir(parents=True, exist_ok=True)
    drawn = islice(generate_exercises(1000 + seed, Split.TRAIN), plan.problems)
    rows = (
        {"problem": exercise.statement, "answer": str(exercise.answer), "lang": exercise.lang} for exercise in drawn
    )
    atomic_write(folder / "problems.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    band = {"tries": plan.tries, "least": plan.least, "most": plan.most, "retry": plan.retry}
    atomic_write(folder / "recipe.toml", RECIPE.format(model=json.dumps(str(WEIGHTS.resolve())), **band))
    if not stored_versions(folder / "run"):
        run_recipe(folder / "recipe.toml", [], folder / "run")
    return folder / "run"


def stretch(plan: Plan, seed: int, number: int, model: str, data: Path, out: Path) -> Path:
    """Train one stretch, or finish it, and return its run folder."""
    from flows.run.training import train

    if (out / "summary.json").exists():
        return out
    if (out / "run.json").exists():
        train(None, out, resume=True)
        return out
    changes = [
        f"steps={plan.steps}",
        f"seed={100 * seed + number}",
        f"model={json.dumps(model)}",
        f'data={{ kind = "curated", folders = [{json.dumps(str(data.absolute()))}] }}',
        "evaluation={}",
        "collector.max_staleness=0",
        "logged_rollouts=0",
    ]
    train(RECIPES / "train_embedded.toml", out, changes)
    return out


def refreshed_set(run: Path, number: int, trained: Path) -> None:
    """Make the set's version ``number`` + 1, where it is not there yet."""
    from flows.cli.refresh import refresh_run

    mark = run / f"refreshed-{number}"
    if not mark.exists():
        refresh_run(run, trained / "model", trained / "attempts.jsonl")
        atomic_write(mark, "")


def rates(plan: Plan, model: Path, path: Path) -> list[float | None]:
    """Return the held-out pass rate of each problem."""
    if not path.exists():
        pass_rates = measure_pass_rates(model, plan.held_out, plan.attempts).by_problem["pass_rate"]
        atomic_write(path, json.dumps(pass_rates.to_list()))
    read: list[float | None] = json.loads(path.read_text(encoding="utf-8"))
    return read


def run_seed(plan: Plan, seed: int, folder: Path) -> dict[str, Any]:
    """Run both arms of one seed; return the held-out pass rates at their ends, and the cost."""
    first = curated(plan, seed, folder / "set")
    if not (folder / "refreshed" / "run.json").exists():
        shutil.rmtree(folder / "copying", ignore_errors=True)
        shutil.copytree(first, folder / "copying")
        (folder / "copying").rename(folder / "refreshed")
    results: dict[str, Any] = {"attempts": dict.fromkeys(ARMS, 0)}
    for arm, run in zip(ARMS, (first, folder / "refreshed"), strict=True):
        model = "embedded"
        for number in range(1, plan.rounds + 2):
            name = "both-1" if number == 1 else f"{arm}-{number}"
            out = stretch(plan, seed, number, model, run / "curated", folder / f"train-{name}")
            model = str(out / "model")
            results["attempts"][arm] += (out / "attempts.jsonl").read_bytes().count(b"\n")
            if arm == "refreshed" and number <= plan.rounds:
                refreshed_set(run, number, out)
        results[arm] = rates(plan, Path(model), folder / f"rates-{arm}.json")
    results["versions"] = [
        {
            "kept": int(pl.read_parquet(path.parent / "decisions.parquet")["published"].sum()),
            **{key: json.loads(path.read_text())[key] for key in ("number", "counts", "cost")},
        }
        for path in sorted((folder / "refreshed" / "versions").glob("*/about.json"))
    ]
    return results


def mean_of(values: Sequence[float | None]) -> float:
    return statistics.fmean(value for value in values if value is not None)


def difference(first: Sequence[float | None], other: Sequence[float | None]) -> tuple[float, float]:
    """Return the mean of the paired differences, and the reach of its 95 % interval over problems."""
    pairs = [b - a for a, b in zip(first, other, strict=True) if a is not None and b is not None]
    return statistics.fmean(pairs), 1.96 * statistics.stdev(pairs) / math.sqrt(len(pairs))


def _rate_text(results: dict[str, Any], arm: str) -> str:
    return f"{mean_of(results[arm]):.3f}"


def _attempts_text(results: dict[str, Any], arm: str) -> str:
    return f"{results['attempts'][arm]:,}"


def report(plan: Plan, start: Sequence[float | None], by_seed: dict[int, dict[str, Any]]) -> None:
    """Print the tables on standard output."""
    steps = plan.steps * (plan.rounds + 1)
    print(f"held-out pass rate after {steps} steps, {plan.held_out} problems x {plan.attempts} attempts")
    print(f"(the embedded model before: {mean_of(start):.3f})\n")
    print("| seed | fixed | refreshed | difference (95 % over problems) | attempts sampled: fixed | refreshed |")
    print("|---|---|---|---|---|---|")
    gains = []
    for seed, results in by_seed.items():
        gain, reach = difference(results["fixed"], results["refreshed"])
        gains.append(gain)
        ends, attempts = ([f"{show(results, arm)}" for arm in ARMS] for show in (_rate_text, _attempts_text))
        reached = f"{gain:+.3f} ({gain - reach:+.3f} to {gain + reach:+.3f})"
        print(f"| {seed} | {' | '.join(ends)} | {reached} | {' | '.join(attempts)} |")
    if len(gains) > 1:
        mean = statistics.fmean(gains)
        reach = student(len(gains) - 1) * statistics.stdev(gains) / math.sqrt(len(gains))
        print(
            f"mean of {len(gains)} seeds: {mean:+.4f} (95 % over seeds {mean - reach:+.4f} to {mean + reach:+.4f})\n"
            + ("refreshing is better" if mean - reach > 0 else "worse" if mean + reach < 0 else "no difference shown")
        )
    for seed, results in by_seed.items():
        print(f"\nversions of seed {seed}:")
        for version in results["versions"]:
            changed = {key: value for key, value in version["counts"].items() if value}
            print(f"  {version['number']}: {version['kept']} problems; {changed}; {version['cost']}")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("folder", type=Path)
    options.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--steps", type=int, default=8)
    options.add_argument("--problems", type=int, default=1000)
    options.add_argument("--held-out", type=int, default=400)
    options.add_argument("--attempts", type=int, default=8)
    options.add_argument("--least", type=int, default=1, help="the band: correct attempts at least")
    options.add_argument("--tries", type=int, default=8, help="the band: attempts a problem")
    options.add_argument("--most", type=float, default=0.75, help="the band: pass rate at most")
    options.add_argument("--retry", type=float, default=0.5, help="share of the unsolved that a refresh asks again")
    parsed = vars(options.parse_args())
    folder, seeds = parsed.pop("folder").absolute(), parsed.pop("seeds")
    plan = Plan(**parsed)
    held_plan = folder / "plan.json"
    if held_plan.exists() and json.loads(held_plan.read_text()) != parsed:
        raise SystemExit(f"{folder} holds a comparison of other figures; give another folder")
    folder.mkdir(parents=True, exist_ok=True)
    atomic_write(held_plan, json.dumps(parsed) + "\n")
    by_seed = {seed: run_seed(plan, seed, folder / f"seed-{seed}") for seed in seeds}
    report(plan, rates(plan, WEIGHTS, folder / "rates-start.json"), by_seed)


if __name__ == "__main__":
    main()
