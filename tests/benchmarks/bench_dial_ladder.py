"""Does the dial pay where a problem is a chain of steps? The ladder of `bench_loop`, dialled anew as the model grows.

    .venv/bin/python -m tests.benchmarks.bench_dial_ladder FOLDER [--seeds 301 302 303]

A rung is a sum of three to twelve terms (`tests.benchmarks.ladder`): what is learnt behind a prefix, later steps and
larger partial sums, is what the bare problem asks for, and bare upper rungs give no gradient. For each seed
``--problems`` problems are drawn, all rungs alike often, each with its worked solution, and curated by the ladder's
model with the dial (traces: solutions and attempts). Then ``--rounds`` stretches of ``--steps`` steps are trained, each
from the model of the stretch before:

  - with: on the set with the rows that have a prefix; before each further stretch `goldilocks run` curates the whole
    source anew with the arm's own model, and the dial with it, so prefixes shorten until the bare problem is in the
    band (the reverse curriculum of arXiv 2402.05808);
  - without: the same without the dial, its set curated anew by its own model as often. Its first set is that of the
    other arm less the rows with a prefix.

After the first stretch (the dial turned once) and after the last (dialled anew) both are asked ``--held-out`` held-out
problems of all rungs, bare, ``--attempts`` times each, spread over the models of the ``--last`` steps; hard ones are
the rungs from nine terms on. Equal steps, and equal tokens of training: each arm's last step before it has sampled what
the other had at its end. The tokens of curation and dial are printed and counted in neither. The figure by which the
dial is judged is with - without on the hard rungs after the last stretch at equal steps; sizes were fixed when pilot
seed 101 had its first sets, before anything was asked that is held out. The scored seeds are 301 and on. Intervals:
95 % over seeds and problems together (`training.evaluation.estimators.crossed_interval`). What is finished in FOLDER
stays.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from curation.storage.stages import atomic_write
from tests.benchmarks.bench_counterfactual import curation_tokens, rows_of
from tests.benchmarks.bench_dial import ARMS, RECIPE, describe, dialled
from tests.benchmarks.bench_loop import HELD_OUT_SEED, Plan, drawn, first_model, late_rates, sampled, states, stretch
from tests.benchmarks.ladder import response, worked_sum
from training.embedded_model.problems import Split
from training.evaluation.estimators import crossed_interval
from training.evaluation.report import verdict, with_interval

HARD_FROM = 9
"""Terms from which on a rung is a hard one."""

PARTS = ("hard rungs", "other rungs")


def curated(plan: Plan, seed: int, folder: Path, model: Path, *, dial: bool) -> Path:
    """Return the run folder of the seed's problems curated with a model."""
    from flows.cli.commands import run_recipe

    if (folder / "finished").exists():
        return folder / "run"
    folder.mkdir(parents=True, exist_ok=True)
    rows = [
        {
            "problem": item.statement,
            "answer": str(item.answer),
            "lang": item.lang,
            "solution": response(worked_sum(item), item.answer),
        }
        for item in drawn(plan, 1000 + seed, Split.TRAIN, plan.problems)
    ]
    atomic_write(folder / "problems.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    recipe = RECIPE.format(tries=plan.tries, probes=6, model=json.dumps(str(model)))
    atomic_write(folder / "recipe.toml", recipe)
    run_recipe(folder / "recipe.toml", [] if dial else ["dial.traces=[]"], folder / "run")
    atomic_write(folder / "finished", "")
    return folder / "run"


def bare_rows(run: Path, folder: Path) -> Path:
    """Return a folder with the rows of a run's set that have no prefix."""
    (folder / "data").mkdir(parents=True, exist_ok=True)
    rows = rows_of(run / "curated").filter(pl.col("prefix").is_null())
    rows.write_parquet(folder / "data" / "train-00000-of-00001.parquet")
    return folder


def trained_arm(plan: Plan, seed: int, arm: str, folder: Path, start: Path) -> tuple[list[Path], int]:
    """Return an arm's training runs, a stretch each, and the tokens of its curation; print what its sets are."""
    model, stretches, spent = start, [], 0
    for number in range(1, plan.rounds + 1):
        own = number > 1
        name = f"set-{arm}-{number}" if own else "set-1"
        run = curated(plan, seed, folder / name, model, dial=arm == "with" or not own)
        data = run / "curated" if arm == "with" or own else bare_rows(run, folder / "rows-without-1")
        print(f"seed {seed} {arm} {number}: {rows_of(data).height} rows; ", end="", flush=True)
        spent += curation_tokens(run)
        if arm == "with":
            table = dialled(run)
            spent += int(table["tokens"].sum())
            describe(table)
        else:
            print("no dial", flush=True)
        stretches.append(stretch(plan, seed, number, str(model), data, folder / f"train-{arm}-{number}"))
        model = states(stretches)[-1][1]
    return stretches, spent


def run_seed(plan: Plan, seed: int, folder: Path, start: Path) -> dict[str, Any]:
    """Run both arms of one seed; return the held-out pass rates after the first and the last stretch."""
    made = {arm: trained_arm(plan, seed, arm, folder, start) for arm in ARMS}
    found: dict[str, Any] = {"curation": {arm: made[arm][1] for arm in ARMS}, "tokens": {}}
    for when, rounds in (("once", 1), ("anew", plan.rounds)):
        stretches = {arm: made[arm][0][:rounds] for arm in ARMS}
        tokens = found["tokens"][when] = {arm: sampled(stretches[arm]) for arm in ARMS}
        budget = min(tokens.values())
        for arm in ARMS:
            way = states(stretches[arm])
            step = max(sum(total <= budget for total, _ in way), plan.last)
            at = {"steps": len(way), "tokens": step}
            found[f"{when} {arm}"] = {
                name: late_rates(plan, way[:number], folder / "rates") for name, number in at.items()
            } | {"at": at}
    atomic_write(folder / "found.json", json.dumps(found))
    return found


def is_hard(plan: Plan) -> list[bool]:
    """Return of each held-out problem whether it is of a hard rung."""
    return [item.level >= HARD_FROM for item in drawn(plan, HELD_OUT_SEED, Split.HELD_OUT, plan.held_out)]


def part_of(values: Sequence[float], hard: Sequence[bool], part: str) -> list[float]:
    """Return the values of the hard rungs, or of the others."""
    return [value for value, is_one in zip(values, hard, strict=True) if is_one is (part == PARTS[0])]


def report(plan: Plan, start: Sequence[float], by_seed: dict[int, dict[str, Any]]) -> None:
    """Print the differences of the arms."""
    hard, results = is_hard(plan), list(by_seed.values())
    for seed, one in by_seed.items():
        print(f"\nseed {seed}: tokens of training {one['tokens']}, of curation and dial {one['curation']}")
    for when in ("once", "anew"):
        for part in PARTS:
            before = statistics.fmean(part_of(start, hard, part))
            for name in ("steps", "tokens"):
                values = {arm: [part_of(one[f"{when} {arm}"][name], hard, part) for one in results] for arm in ARMS}
                rows = [
                    [b - a for a, b in zip(*pair, strict=True)]
                    for pair in zip(values["without"], values["with"], strict=True)
                ]
                means = [statistics.fmean(statistics.fmean(row) for row in values[arm]) for arm in ARMS]
                estimate = crossed_interval(rows)
                steps = " ".join("/".join(str(one[f"{when} {arm}"]["at"][name]) for arm in ARMS) for one in results)
                print(
                    f"dialled {when}, {part}, equal {name} (step {steps}): start {before:.3f}, without {means[0]:.3f}, "
                    f"with {means[1]:.3f}; with - without {with_interval(estimate, signed=True)}, "
                    f"{verdict(estimate, 'the dial pays', 'the dial costs')}; by seed "
                    + " ".join(f"{statistics.fmean(row):+.3f}" for row in rows)
                )


def main() -> None:
    """Run the seeds and print the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[301, 302, 303])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--problems", type=int, default=300)
    parser.add_argument("--held-out", type=int, default=250)
    parser.add_argument("--attempts", type=int, default=4)
    parser.add_argument("--tries", type=int, default=8)
    parser.add_argument("--last", type=int, default=4)
    options = vars(parser.parse_args())
    folder, seeds = options.pop("folder").absolute(), options.pop("seeds")
    plan = Plan(**options, least=1, most=0.875, retry=0.0, more=0, retire=0.99, family="ladder")
    folder.mkdir(parents=True, exist_ok=True)
    model = first_model(plan, folder / "model")
    by_seed: dict[int, dict[str, Any]] = {}
    for seed in seeds:
        by_seed[seed] = run_seed(plan, seed, folder / f"seed-{seed}", model)
    report(plan, late_rates(plan, [(0.0, model)], folder / "start"), by_seed)


if __name__ == "__main__":
    main()
