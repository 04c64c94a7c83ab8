"""Does curation pay with a real chat model? SmolLM2-135M-Instruct on a curated set, and on as many random rows.

    .venv/bin/python -m tests.benchmarks.bench_real_counterfactual FOLDER [--seeds 1 2] [--steps 10]

`bench_counterfactual` with a model that none of us trained. The source of a seed: ``--problems`` problems, ``--hard``
of them products of two numbers of two digits, which this model does not solve, the others sums in one step; a share
``--wrong`` of all has a wrong reference. `goldilocks run` keeps those in the band by ``--tries`` attempts each (the
rule of votes is off, as in `bench_real_model`: a weak model errs in one voice). Then `goldilocks train`, vLLM
generating, on the set and on as many random rows of the source, for as many steps.

Held-out sums are asked ``--attempts`` times of each arm's last weights, and of those of the random arm before it had
sampled more tokens than the curated arm did (`checkpoints.trajectory`). Intervals: over seeds and sums
together, or of one seed over its sums. What is finished lies in FOLDER and is not done again. Hours.
"""

from __future__ import annotations

import argparse
import json
import statistics
from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import Any

import polars as pl

from curation.records import PROBLEM, Domain, problem_id
from curation.storage.stages import atomic_write
from tests.benchmarks.bench_counterfactual import curation_tokens, rows_of, tokens_by_step
from tests.real_model.loop import Plan, Sampled, curate, held_out_sums, measure, train
from tests.real_model.smollm import missing, smollm_folder
from tests.real_model.sums import draw_sums, write_set
from training.evaluation.estimators import crossed_interval, paired_difference
from training.evaluation.report import with_interval


def source(options: argparse.Namespace, seed: int) -> list[tuple[str, str, str]]:
    """Return statement, reference and truth of a seed's problems, shuffled."""
    draw = Random(7000 + seed)
    hard = round(options.hard * options.problems)
    pairs = [(a, b) for a in range(12, 100) for b in range(12, 100) if a % 10 and b % 10]
    problems = [(f"What is {a} * {b}?", a * b) for a, b in draw.sample(pairs, hard)]
    sums = draw_sums(seed, options.problems - hard, held_out=False)
    problems += [(one.statement, one.a + one.b) for one in sums]
    draw.shuffle(problems)
    wrong = set(draw.sample(range(len(problems)), round(options.wrong * len(problems))))
    return [
        (statement, str(value + draw.choice((1, -1, 2, 10)) if place in wrong else value), str(value))
        for place, (statement, value) in enumerate(problems)
    ]


def trained_arm(options: argparse.Namespace, plan: Plan, folder: Path, data: Path, model: Path) -> Path:
    """Return the training run of an arm on a set."""
    folder.mkdir(parents=True, exist_ok=True)
    link = folder / "run"
    if not link.exists():
        link.mkdir()
        (link / "curated").symlink_to(data.absolute())
    return train(plan, folder, model, "trajectory = 1")


def rates(plan: Plan, model: Path, attempts: int, path: Path) -> list[float]:
    """Return the held-out pass rates of a model, from a file where it is there."""
    if not path.exists():
        found = measure(model, held_out_sums(plan), attempts, plan.temperature)
        atomic_write(path, json.dumps(asdict(found)) + "\n")
    return Sampled(**json.loads(path.read_text(encoding="utf-8"))).pass_rates


def one_seed(options: argparse.Namespace, seed: int, folder: Path) -> dict[str, Any]:
    """Run both arms of a seed and return its figures."""
    plan = Plan(
        words=0, held_out=options.held_out, attempts=options.tries, steps=options.steps, seed=seed,
        evaluate_every=options.steps,
    )  # fmt: skip
    model = smollm_folder()
    folder.mkdir(parents=True, exist_ok=True)
    problems = source(options, seed)
    rows = [json.dumps({"problem": one, "answer": two, "lang": "en"}) + "\n" for one, two, _ in problems]
    run = curate(plan, folder, model, "".join(rows))
    count = rows_of(run / "curated").height
    chosen = Random(4000 + seed).sample(problems, count)
    write_set_of(folder / "random-set", chosen)
    arms = {
        "curated": trained_arm(options, plan, folder / "curated", run / "curated", model),
        "random": trained_arm(options, plan, folder / "random", folder / "random-set", model),
    }
    sums = {name: tokens_by_step(out) for name, out in arms.items()}
    step = max((n + 1 for n, total in enumerate(sums["random"]) if total <= sums["curated"][-1]), default=1)
    truth = {statement: right for statement, _, right in problems}
    wrong = {
        name: sum(truth[one] != two for one, two in rows_of(data).select("statement", "answer").iter_rows())
        for name, data in (("curated", run / "curated"), ("random", folder / "random-set"))
    }
    at = arms["random"] / "model" if step == options.steps else arms["random"] / "trajectory" / f"v{step:08}"
    return {
        "rows": count,
        "wrong": wrong,
        "tokens": {name: total[-1] for name, total in sums.items()},
        "curation": curation_tokens(run),
        "step": step,
        "start": rates(plan, model, options.attempts, folder / "rates-start.json"),
        "curated": rates(plan, arms["curated"] / "model", options.attempts, folder / "rates-curated.json"),
        "random": rates(plan, arms["random"] / "model", options.attempts, folder / "rates-random.json"),
        "random, equal tokens": rates(plan, at, options.attempts, folder / f"rates-random-{step}.json"),
    }


def write_set_of(folder: Path, problems: list[tuple[str, str, str]]) -> None:
    """Write rows as a curated set, as far as the trainer reads one."""
    write_set(folder, [])
    table = pl.DataFrame(
        [
            {"id": problem_id(one), "group": problem_id(one), "domain": Domain.MATH.value, "statement": one}
            | {"answer": two, "lang": "en", "meta": "{}"}
            for one, two, _ in problems
        ]
    )
    missing_columns = [pl.lit(None, kind).alias(name) for name, kind in PROBLEM.items() if name not in table.columns]
    table.with_columns(missing_columns).write_parquet(folder / "data" / "train-00000-of-00001.parquet")


def report(results: dict[int, dict[str, Any]]) -> None:
    """Print what the seeds came to."""
    for seed, one in results.items():
        rate = {name: f"{statistics.fmean(one[name]):.3f}" for name in ("start", "curated", "random")}
        tokens = {name: round(value) for name, value in one["tokens"].items()}
        print(
            f"seed {seed}: {one['rows']} rows, wrong {one['wrong']}, tokens {tokens}, of curation "
            f"{one['curation']:,}; pass@1 {rate}, random at equal tokens (step {one['step']}) "
            f"{statistics.fmean(one['random, equal tokens']):.3f}"
        )
    for name, words in (("random", "equal steps"), ("random, equal tokens", "equal tokens")):
        pairs = [(one[name], one["curated"]) for one in results.values()]
        if len(pairs) == 1:
            estimate = paired_difference(*pairs[0])
        else:
            estimate = crossed_interval([[b - a for a, b in zip(*pair, strict=True)] for pair in pairs])
        print(f"curated - random, {words}: {with_interval(estimate, signed=True)}")


def main() -> None:
    """Run what is not done yet, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--problems", type=int, default=240)
    parser.add_argument("--hard", type=float, default=0.5)
    parser.add_argument("--wrong", type=float, default=0.15)
    parser.add_argument("--tries", type=int, default=8)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--held-out", type=int, default=64)
    parser.add_argument("--attempts", type=int, default=8)
    options = parser.parse_args()
    if reason := missing():
        raise SystemExit(reason)
    results = {}
    for seed in options.seeds:
        results[seed] = one_seed(options, seed, options.folder.absolute() / f"seed-{seed}")
        report(results)


if __name__ == "__main__":
    main()
