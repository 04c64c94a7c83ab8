"""What stored attempts are worth: a cold start from a teacher's traces, and a first checkpoint without a new token.

    .venv/bin/python -m tests.benchmarks.bench_stored cold-start FOLDER [--seeds 1 2 3] [--steps 16]
    .venv/bin/python -m tests.benchmarks.bench_stored attempts FOLDER [--seeds 1 2 3] [--steps 12]
    .venv/bin/python -m tests.benchmarks.bench_stored tokens FOLDER [--seeds 1 2 3] [--steps 12]

cold-start: a teacher, the embedded model trained for ``--teacher-steps`` steps, keeps its attempts. From the shipped
weights, on the same problems: `sft`, four epochs over the teacher's correct attempts of its second half (four a problem
at most, hard ones more often); `rl`, ``--steps`` steps of reinforcement; `sft+rl`, the same steps from the model of
`sft`.

attempts: a set is curated by the embedded model (``--tries`` attempts a problem). From the shipped weights: `sft`
(rejection sampling) and `soft` train on curation's own attempts and sample nothing; `rl` has ``--steps`` steps that
sample; `soft+rl` and `sft+rl` have half of these steps from the models of `soft` and `sft`; `replay` starts as `soft`
does and goes on with the same objective, half of each batch stored, as long as `soft+rl`.

tokens: what a new token is worth. `cold` is `rl` of above; `sft first` goes on from the model of `sft`, and `soft
first` from stored attempts to fresh ones with a replay share by age (`half_life`) and ratio (`max_distance`), each for
half of its steps; so does `known first`, with the values of the set's pass rates and the cross-entropy
(`soft-prior` of above). The table has held-out pass@1 at a quarter, half and all of the tokens that `cold` samples,
as far as an arm samples so many: of its last checkpoint before.

All models are asked the same ``--held-out`` problems ``--attempts`` times under the same seeds. Intervals: 95 % over
seeds and problems together (`training.evaluation.estimators.crossed_interval`). What is finished in FOLDER stays.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks.bench_counterfactual import RECIPES, checkpoint, curated_run, rates, tokens_by_step
from training.embedded_model import WEIGHTS
from training.evaluation.estimators import crossed_interval
from training.evaluation.report import with_interval

PLAIN = (
    "evaluation={}",
    "collector.max_staleness=0",
    "checks=false",
    "checkpoints.every=1000",
)
SHARES = (0.25, 0.5, 1.0)
ARMS = ("cold", "sft first", "soft first", "known first")
SFT = ("objective={ kind = 'sft' }", "collector.group_size=4")
SOFT = ("objective={ kind = 'soft' }",)
KINDS_OF_SOFT = {
    "soft-prior": ("objective.value='prior'",),
    "soft-learned": ("objective.value='learned'",),
}
"""What `soft` alone is tried with besides its group's value and its square."""


def trained(out: Path, seed: int, steps: int, batch: int, changes: Sequence[str], model: Path = WEIGHTS) -> Path:
    """Train one arm, or find it finished; return its run folder."""
    from flows.run.training import train

    if not (out / "summary.json").exists():
        sizes = [f"collector.n_batch={batch}", f"collector.n_async={batch}"]
        given = [f"steps={steps}", f"seed={seed}", f"model={json.dumps(str(model.resolve()))}"]
        resume = (out / "run.json").exists()
        if resume:
            train(None, out, resume=True)
        else:
            train(RECIPES / "train_embedded.toml", out, [*given, *PLAIN, *sizes, *changes])
    return out


def cold_start(options: argparse.Namespace, seed: int, folder: Path) -> dict[str, Path]:
    """Return the runs of the arms of one seed."""
    data = [f"data={{ kind = 'embedded', problems = {options.problems}, seed = {500 + seed} }}"]
    teacher = trained(folder / "teacher", 900 + seed, options.teacher_steps, options.batch, data)
    stored = (
        f"stored={{ runs = [{json.dumps(str(teacher.resolve()))}], epochs = 4, only = true, per_problem = 4, "
        f"hardness = 1.0, after_step = {options.teacher_steps // 2} }}"
    )
    rate = f"optim.learning_rate={options.sft_rate}"
    sft = trained(folder / "sft", seed, 1000, options.batch, [*data, *SFT, stored, rate])
    own = ["attempt_store='none'"]
    rl = trained(folder / "rl", seed, options.steps, options.batch, [*data, *own])
    both = trained(folder / "sft-rl", seed, options.steps, options.batch, [*data, *own], sft / "model")
    return {"teacher": teacher, "sft": sft, "rl": rl, "sft+rl": both}


def attempts(options: argparse.Namespace, seed: int, folder: Path) -> dict[str, Path]:
    """Return the runs of the arms of one seed."""
    run = curated_run(options, seed, folder / "set", 0.5, None)
    data = [f"data={{ kind = 'curated', folders = [{json.dumps(str((run / 'curated').resolve()))}] }}"]
    data.append("attempt_store='none'")
    only = f"stored={{ epochs = {options.epochs}, only = true }}"
    rate = f"optim.learning_rate={options.sft_rate}"
    half = options.steps // 2
    sft = trained(folder / "sft", seed, 1000, options.batch, [*data, *SFT, only, rate])
    tau = f"objective.tau={options.tau}"
    soft = trained(folder / "soft", seed, 1000, options.batch, [*data, *SOFT, tau, only])
    kinds = {
        name: trained(folder / name, seed, 1000, options.batch, [*data, *SOFT, tau, *changes, only])
        for name, changes in KINDS_OF_SOFT.items()
    }
    offline = int(json.loads((soft / "summary.json").read_text())["steps"])
    replay = [*data, *SOFT, tau, f"stored={{ epochs = {options.epochs}, share = 0.5 }}"]
    return {
        "sft": sft,
        "soft": soft,
        **kinds,
        "rl": trained(folder / "rl", seed, options.steps, options.batch, data),
        "sft+rl": trained(folder / "sft-rl", seed, half, options.batch, data, sft / "model"),
        "soft+rl": trained(folder / "soft-rl", seed, half, options.batch, data, soft / "model"),
        "replay": trained(folder / "replay", seed, offline + half, options.batch, replay),
    }


def tokens(options: argparse.Namespace, seed: int, folder: Path) -> dict[str, Path]:
    """Return the runs of the arms of one seed, each with a checkpoint a step."""
    run = curated_run(options, seed, folder / "set", 0.5, None)
    data = [f"data={{ kind = 'curated', folders = [{json.dumps(str((run / 'curated').resolve()))}] }}"]
    data += ["attempt_store='none'", "checkpoints.every=1", "checkpoints.keep=200"]
    half = options.steps // 2
    only, rate = f"stored={{ epochs = {options.epochs}, only = true }}", f"optim.learning_rate={options.sft_rate}"
    sft = trained(folder / "sft", seed, 1000, options.batch, [*data, *SFT, only, rate])
    by_age = f"half_life = {half}, max_distance = {options.distance}"
    replay = f"stored={{ epochs = {options.epochs}, share = 0.5, {by_age} }}"
    soft = [*data, *SOFT, f"objective.tau={options.tau}", replay]
    known = [*soft, *KINDS_OF_SOFT["soft-prior"]]
    size = options.batch
    alone = trained(folder / "soft", seed, 1000, size, [*soft[:-1], only])  # says how many steps sample nothing
    offline = int(json.loads((alone / "summary.json").read_text())["steps"])
    arms: dict[str, Callable[[], Path]] = {
        "cold": lambda: trained(folder / "cold", seed, options.steps, size, data),
        "sft first": lambda: trained(folder / "sft-first", seed, half, size, data, sft / "model"),
        "soft first": lambda: trained(folder / "soft-first", seed, offline + half, size, soft),
        "known first": lambda: trained(folder / "known-first", seed, offline + half, size, known),
    }
    return {arm: make() for arm, make in arms.items() if arm in options.arms}


def by_tokens(options: argparse.Namespace, folder: Path) -> None:
    """Run the arms, and print their held-out pass@1 at shares of the tokens that the cold one samples."""
    table: dict[tuple[str, float], dict[int, list[float]]] = {}
    for seed in options.seeds:
        place = folder / f"seed-{seed}"
        runs = tokens(options, seed, place)
        if "cold" not in runs:
            for arm, run in runs.items():
                found = rates(options, run / "model", place / f"rates-{arm.replace(' ', '-')}.json")
                new = (tokens_by_step(run) or [0.0])[-1]
                print(f"seed {seed} {arm}: {statistics.fmean(found):.3f} at its end, {new:,.0f} tokens", flush=True)
            continue
        budget = tokens_by_step(runs["cold"])[-1]
        for arm, run in runs.items():
            sums = tokens_by_step(run)
            start = place / "sft" / "model" if arm == "sft first" else WEIGHTS
            for share in SHARES:
                step = max((number + 1 for number, total in enumerate(sums) if total <= share * budget), default=0)
                model = checkpoint(run, step) if step else start
                found = rates(options, model, place / f"rates-{arm.replace(' ', '-')}-{step}.json")
                table.setdefault((arm, share), {})[seed] = found
                print(f"seed {seed} {arm} at {share:g}: {statistics.fmean(found):.3f} (step {step})", flush=True)
    if not table:
        return
    print("\n| arm | " + " | ".join(f"{share:g} of cold's tokens" for share in SHARES) + " |")
    print("|---|" + "---|" * len(SHARES))
    for arm in dict.fromkeys(name for name, _ in table):
        cells = []
        for share in SHARES:
            seeds, base = table[arm, share], table["cold", 1.0]
            rows = [[mine - theirs for mine, theirs in zip(seeds[one], base[one], strict=True)] for one in seeds]
            said = " ".join(f"{statistics.fmean(values):.3f}" for values in seeds.values())
            same = arm == "cold" and share == 1
            cells.append(said + ("" if same else f"; to cold {with_interval(crossed_interval(rows), signed=True)}"))
        print(f"| {arm} | " + " | ".join(cells) + " |")


def report(base: str, results: Mapping[str, Mapping[int, Mapping[str, Any]]]) -> None:
    """Print the table on standard output."""
    print("\n| arm | pass@1 by seed | mean | new tokens | to " + base + " |\n|---|---|---|---|---|")
    for arm, seeds in results.items():
        by_seed = [statistics.fmean(one["rates"]) for one in seeds.values()]
        tokens = statistics.fmean(one["tokens"] for one in seeds.values())
        shared = [seed for seed in seeds if seed in results[base]]
        rows = [
            [mine - theirs for mine, theirs in zip(seeds[seed]["rates"], results[base][seed]["rates"], strict=True)]
            for seed in shared
        ]
        difference = "" if arm == base else with_interval(crossed_interval(rows), signed=True)
        said = " ".join(f"{value:.3f}" for value in by_seed)
        print(f"| {arm} | {said} | {statistics.fmean(by_seed):.3f} | {tokens:,.0f} | {difference} |")


def main() -> None:
    """Run the arms and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("cold-start", "attempts", "tokens"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--arms", nargs="+", default=list(ARMS), choices=ARMS, help="of tokens; only ends without cold")
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--problems", type=int, default=300)
    parser.add_argument("--teacher-steps", type=int, default=40)
    parser.add_argument("--sft-rate", type=float, default=3e-4)
    parser.add_argument("--tau", type=float, default=0.1)
    parser.add_argument("--distance", type=float, default=1.0)
    parser.add_argument("--epochs", type=float, default=2.0)
    parser.add_argument("--tries", type=int, default=16)
    parser.add_argument("--impossible", type=float, default=0.2)
    parser.add_argument("--easy", type=float, default=0.2)
    parser.add_argument("--wrong", type=float, default=0.0)
    parser.add_argument("--held-out", type=int, default=150)
    parser.add_argument("--attempts", type=int, default=4)
    options = parser.parse_args()
    folder = options.folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    if options.part == "tokens":
        by_tokens(options, folder)
        return
    start = rates(options, WEIGHTS, folder / "rates-start.json")
    results: dict[str, dict[int, dict[str, Any]]] = {
        "start": {seed: {"rates": start, "tokens": 0.0} for seed in options.seeds}
    }
    arms = cold_start if options.part == "cold-start" else attempts
    for seed in options.seeds:
        place = folder / f"seed-{seed}"
        for arm, run in arms(options, seed, place).items():
            found = rates(options, run / "model", place / f"rates-{arm}.json")
            tokens = (tokens_by_step(run) or [0.0])[-1]
            results.setdefault(arm, {})[seed] = {"rates": found, "tokens": tokens}
            print(f"seed {seed} {arm}: {statistics.fmean(found):.3f}, {tokens:,.0f} new tokens", flush=True)
    report("rl", results)


if __name__ == "__main__":
    main()
