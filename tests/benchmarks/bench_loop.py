"""Does the refresh pay? Rounds of train and refresh beside the same number of steps on a fixed set.

    .venv/bin/python -m tests.benchmarks.bench_loop FOLDER [--seeds 1 2 3] [--rounds 3] [--steps 8] [--problems 1000]
        [--family embedded | ladder] [--uncurated]

For each seed, problems are drawn, of the embedded model's or of a ladder whose upper rungs are out of reach at first
(`tests.benchmarks.ladder`), and a set is curated with the family's model (`goldilocks run`).
Then ``--rounds`` + 1 stretches of ``--steps`` steps are trained, each from the model of the stretch before:

  - fixed: all of them on that first version of the set;
  - refreshed: after each stretch but the last, `goldilocks refresh` with the new checkpoint and its attempts, and the
    next stretch on the version that it publishes.

Everything else is the same: initial model, batches, seeds, the number of steps, the held-out problems and the seeds
under which they are asked. The first stretch is one for both. Training is synchronous, so a stretch can be repeated.
Held out are ``--held-out`` problems of the family's held-out split, ``--attempts`` attempts each, spread over
the models of the ``--last`` steps: from one step to the next pass@1 moves by up to a tenth.

Equal steps are not equal samples: groups without diversity are dropped and others drawn in their place, and a set that
runs dry has more of them. So the fixed set is measured three times: after as many steps; at its last step before it has
sampled what training on the refreshed sets did; and before it has sampled what training and refreshes did, for which it
goes on for up to ``--more`` further stretches. A fixed set may run dry, which ends its training (what the step in which
it did sampled is not counted); it is measured at its last models then. ``--uncurated`` measures a third set as well,
all problems as they are, where the trainer alone leaves out groups that teach nothing; it may sample what the first
curation did, too.

Intervals: 95 % over seeds and held-out problems together (`training.evaluation.estimators.crossed_interval`). What is
finished lies in FOLDER and is not done again: the same command goes on after a kill. The torch generator alone is used.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl

from curation.storage.stages import atomic_write
from tests.benchmarks.bench_counterfactual import checkpoint, curation_tokens, power, tokens_by_step
from tests.benchmarks.ladder import chains, ladder_model
from tests.embedded_model.measure import measure_exercises
from training.embedded_model import WEIGHTS
from training.embedded_model.problems import Exercise, Split, generate_exercises
from training.evaluation.estimators import Estimate, crossed_interval
from training.evaluation.report import verdict, with_interval

RECIPES = Path(__file__).parents[2] / "flows" / "recipes"
ARMS = ("fixed", "refreshed")
HELD_OUT_SEED = 2026
AT = {"steps": "equal steps", "tokens": "equal training tokens", "cost": "equal tokens, those of all judging counted"}
"""Where the fixed set is measured, and in words."""

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
model = "student"
band = {{ attempts = {tries}, min_correct = {least}, max_pass_rate = {most} }}
[models.student]
kind = "torch"
model = {model}
prompt = "plain"
decoding = {{ temperature = 1.0, max_tokens = 112 }}
[refresh]
max_pass_rate = {retire}
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
    more: int
    retire: float
    last: int
    family: str


def drawn(plan: Plan, seed: int, split: Split, number: int) -> list[Exercise]:
    """Return so many of the family's problems."""
    source = chains if plan.family == "ladder" else generate_exercises
    return list(islice(source(seed, split), number))


def first_model(plan: Plan, folder: Path) -> Path:
    """Return the weights that everything begins with."""
    return ladder_model(folder) if plan.family == "ladder" else WEIGHTS.resolve()


def curated(plan: Plan, seed: int, folder: Path, model: Path) -> Path:
    """Return the run folder of the first version of the set."""
    from flows.cli.commands import run_recipe
    from flows.publish.versions import stored_versions

    folder.mkdir(parents=True, exist_ok=True)
    rows = (
        {"problem": exercise.statement, "answer": str(exercise.answer), "lang": exercise.lang}
        for exercise in drawn(plan, 1000 + seed, Split.TRAIN, plan.problems)
    )
    atomic_write(folder / "problems.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    band = {"tries": plan.tries, "least": plan.least, "most": plan.most, "retry": plan.retry, "retire": plan.retire}
    atomic_write(folder / "recipe.toml", RECIPE.format(model=json.dumps(str(model)), **band))
    if not stored_versions(folder / "run"):
        run_recipe(folder / "recipe.toml", [], folder / "run")
    return folder / "run"


def stretch(plan: Plan, seed: int, number: int, model: str, data: Path, out: Path) -> Path:
    """Train one stretch, or finish it, and return its run folder. A set that runs dry ends it before its last step."""
    from flows.run.training import train
    from training.optimisation.trainer import TrainingError

    if (out / "summary.json").exists() or dry(out):
        return out
    changes = [
        f"steps={plan.steps}",
        f"seed={100 * seed + number}",
        f"models.student.model={json.dumps(model)}",
        f'data={{ kind = "curated", folders = [{json.dumps(str(data.absolute()))}] }}',
        "evaluation={}",
        "collector.max_staleness=0",
        "checkpoints.every=1",
        f"checkpoints.keep={plan.steps}",  # any of them may be the one of equal tokens
    ]
    begun = (out / "run.json").exists()
    try:
        train(None, out, resume=True) if begun else train(RECIPES / "train_embedded.toml", out, changes)
    except TrainingError:
        if not dry(out):
            raise
    return out


def dry(out: Path) -> bool:
    """Return whether a stretch ended for having nothing to learn from."""
    return (out / "stalled.json").exists()


def refreshed_set(run: Path, number: int, trained: Path, model: Path) -> None:
    """Make the set's version ``number`` + 1, where it is not there yet."""
    from flows.cli.commands import refresh_run

    mark = run / f"refreshed-{number}"
    if not mark.exists():
        refresh_run(run, model, trained / "attempts.jsonl")
        atomic_write(mark, "")


def rates(plan: Plan, model: Path, path: Path) -> list[float]:
    """Return the held-out pass rate of each problem."""
    if not path.exists():
        problems = drawn(plan, HELD_OUT_SEED, Split.HELD_OUT, plan.held_out)
        measured = measure_exercises(model, problems, max(plan.attempts // plan.last, 1), HELD_OUT_SEED)
        atomic_write(path, json.dumps(measured.by_problem["pass_rate"].fill_null(0.0).to_list()))
    read: list[float] = json.loads(path.read_text(encoding="utf-8"))
    return read


def trained_arm(plan: Plan, seed: int, arm: str, run: Path, folder: Path, start: Path) -> list[Path]:
    """Return the training runs of an arm, a stretch each; the refreshed arm's set is refreshed between them."""
    model, stretches = str(start), []
    for number in range(1, plan.rounds + 2):
        name = "both-1" if number == 1 else f"{arm}-{number}"
        stretches.append(stretch(plan, seed, number, model, run / "curated", folder / f"train-{name}"))
        model = str(states(stretches)[-1][1])
        if arm == "fixed" and dry(stretches[-1]):
            break
        if arm == "refreshed" and number <= plan.rounds:
            refreshed_set(run, number, stretches[-1], Path(model))
    return stretches


def states(stretches: Sequence[Path]) -> list[tuple[float, Path]]:
    """Return how many tokens stretches had sampled after each step, and the model of then."""
    before, found = 0.0, []
    for out in stretches:
        sums = tokens_by_step(out)
        places = [checkpoint(out, number) for number in range(1, len(sums) + 1)]
        if not dry(out):
            places[-1] = out / "model"
        found += [(before + total, place) for total, place in zip(sums, places, strict=True)]
        before += sums[-1] if sums else 0.0
    return found


def sampled(stretches: Sequence[Path]) -> float:
    """Return how many tokens stretches sampled."""
    return states(stretches)[-1][0]


def run_seed(plan: Plan, seed: int, folder: Path, model: Path, with_uncurated: bool = False) -> dict[str, Any]:
    """Run the arms of one seed; return the held-out pass rates at their ends, and the cost."""
    first = curated(plan, seed, folder / "set", model)
    if not (folder / "refreshed" / "run.json").exists():
        shutil.rmtree(folder / "copying", ignore_errors=True)
        shutil.copytree(first, folder / "copying")
        (folder / "copying").rename(folder / "refreshed")
    runs = dict(zip(ARMS, (first, folder / "refreshed"), strict=True))
    stretches = {arm: trained_arm(plan, seed, arm, run, folder, model) for arm, run in runs.items()}
    tokens = {arm: sampled(one) for arm, one in stretches.items()}
    versions = [
        {
            "kept": int(pl.read_parquet(path.parent / "decisions.parquet")["published"].sum()),
            **{key: json.loads(path.read_text())[key] for key in ("number", "counts", "cost")},
        }
        for path in sorted((runs["refreshed"] / "versions").glob("*/about.json"))
    ]
    refreshes = sum(version["cost"].get("tokens", 0) for version in versions if version["number"] > 1)
    budgets = {"tokens": tokens["refreshed"], "cost": tokens["refreshed"] + refreshes}
    way = prolonged(plan, seed, list(stretches["fixed"]), first / "curated", budgets["cost"])
    at, fixed = rates_at(plan, way, budgets, folder / "rates")
    results: dict[str, Any] = {
        "versions": versions,
        "at": at,
        "fixed": fixed,
        "refreshed": late_rates(plan, states(stretches["refreshed"]), folder / "rates"),
    }
    if with_uncurated:
        whole = curated(replace(plan, tries=2, least=0, most=1.0), seed, folder / "uncurated", model)
        budgets["cost"] += (curation := curation_tokens(first))
        data = whole / "curated"
        begun = [stretch(plan, seed, 1, str(model), data, folder / "train-uncurated-1")]
        way = prolonged(
            replace(plan, more=2 * plan.more + plan.rounds), seed, begun, data, budgets["cost"], "uncurated"
        )
        results["uncurated_at"], results["uncurated"] = rates_at(plan, way, budgets, folder / "rates")
        tokens |= {"uncurated": way[-1][0], "curation": curation}
    return results | {"tokens": tokens | {"refreshes": refreshes}}


def prolonged(
    plan: Plan, seed: int, stretches: list[Path], data: Path, budget: float, arm: str = "fixed"
) -> list[tuple[float, Path]]:
    """Train on until a budget of tokens is sampled, ``plan.more`` stretches at most; return the way of all of them."""
    folder, steps = stretches[0].parent, plan.rounds + 1
    for number in range(len(stretches) + 1, len(stretches) + 1 + plan.more):
        if not dry(stretches[-1]) and (number <= steps or sampled(stretches) < budget):
            model = states(stretches)[-1][1]
            stretches.append(stretch(plan, seed, number, str(model), data, folder / f"train-{arm}-{number}"))
    return states(stretches)


def rates_at(
    plan: Plan, way: Sequence[tuple[float, Path]], budgets: dict[str, float], place: Path
) -> tuple[dict[str, int], dict[str, list[float]]]:
    """Return the steps at which a way is measured, and each problem's held-out pass rate there."""
    steps = {"steps": plan.steps * (plan.rounds + 1)} | {
        name: max(sum(total <= budget for total, _ in way), plan.last) for name, budget in budgets.items()
    }
    return steps, {name: late_rates(plan, way[:step], place) for name, step in steps.items()}


def late_rates(plan: Plan, way: Sequence[tuple[float, Path]], place: Path) -> list[float]:
    """Return the held-out pass rate of each problem, the mean over the last ``plan.last`` models of a way."""
    place.mkdir(exist_ok=True)
    measured = []
    for _, model in way[-plan.last :]:
        name = "-".join(part for part in model.relative_to(place.parent).parts if part not in ("checkpoints", "hf"))
        measured.append(rates(plan, model, place / f"{name}.json"))
    return [statistics.fmean(values) for values in zip(*measured, strict=True)]


def report(plan: Plan, start: Sequence[float], by_seed: dict[int, dict[str, Any]]) -> None:
    """Print the tables on standard output."""
    steps = plan.steps * (plan.rounds + 1)
    print(f"\nheld-out pass rate after {steps} steps, {plan.held_out} problems x {plan.attempts} attempts")
    print(f"(the model before: {statistics.fmean(start):.3f})\n")
    print("| seed | refreshed | fixed, equal steps | equal tokens (step) | refreshes counted (step) | tokens sampled |")
    print("|---|---|---|---|---|---|")
    for seed, results in by_seed.items():
        rate = {name: f"{statistics.fmean(values):.3f}" for name, values in results["fixed"].items()}
        tokens = ", ".join(f"{name} {value:,.0f}" for name, value in results["tokens"].items())
        print(
            f"| {seed} | {statistics.fmean(results['refreshed']):.3f} | {rate['steps']} | {rate['tokens']} "
            f"({results['at']['tokens']}) | {rate['cost']} ({results['at']['cost']}) | {tokens} |"
        )
    for arm in ("fixed", "uncurated"):
        for name, words in AT.items() if all(arm in results for results in by_seed.values()) else ():
            compare(arm, name, words, list(by_seed.values()))
    for seed, results in by_seed.items():
        print(f"\nversions of seed {seed}:")
        for version in results["versions"]:
            changed = {key: value for key, value in version["counts"].items() if value}
            print(f"  {version['number']}: {version['kept']} problems; {changed}; {version['cost']}")


def gain(arm: str, name: str, results: Sequence[dict[str, Any]]) -> tuple[Estimate, list[float]]:
    """Return what a refreshed set gains on another one, over all seeds, and by seed."""
    rows = [[a - b for a, b in zip(one["refreshed"], one[arm][name], strict=True)] for one in results]
    return crossed_interval(rows), [statistics.fmean(row) for row in rows]


def compare(arm: str, name: str, words: str, results: Sequence[dict[str, Any]]) -> None:
    """Print what a refreshed set gains on another one."""
    estimate, gains = gain(arm, name, results)
    steps = ", ".join(str(one["at" if arm == "fixed" else f"{arm}_at"][name]) for one in results)
    print(
        f"\nrefreshed - {arm}, {words} (step {steps}): {with_interval(estimate, signed=True)}, "
        f"refreshing: {verdict(estimate)}\n"
        f"  by seed: {' '.join(f'{gain:+.3f}' for gain in gains)}"
        + (f"; {power(gains)}" if len(gains) > 1 else "")
        + f"; {arm} {statistics.fmean(statistics.fmean(one[arm][name]) for one in results):.3f}"
    )


def read_options(arguments: Sequence[str] | None = None) -> tuple[Plan, Path, list[int], bool]:
    """Return plan, folder, seeds, and whether the problems as they are make a third arm."""
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
    options.add_argument("--retire", type=float, default=0.99, help="a refresh's band: pass rate at most")
    options.add_argument("--last", type=int, default=4, help="models of the last steps, whose pass rates are averaged")
    options.add_argument("--more", type=int, default=2, help="stretches that the fixed set may go on, at most")
    options.add_argument("--family", choices=("embedded", "ladder"), default="embedded")
    options.add_argument("--uncurated", action="store_true", help="train on all problems as they are, too")
    parsed = vars(options.parse_args(arguments))
    folder, seeds, with_uncurated = parsed.pop("folder").absolute(), parsed.pop("seeds"), parsed.pop("uncurated")
    return Plan(**parsed), folder, seeds, with_uncurated


def main() -> None:
    plan, folder, seeds, with_uncurated = read_options()
    held_plan = folder / "plan.json"
    if held_plan.exists() and json.loads(held_plan.read_text()) != asdict(plan):
        raise SystemExit(f"{folder} holds a comparison of other figures; give another folder")
    folder.mkdir(parents=True, exist_ok=True)
    atomic_write(held_plan, json.dumps(asdict(plan)) + "\n")
    model = first_model(plan, folder / "model")
    start, by_seed = rates(plan, model, folder / "rates-start.json"), {}
    for seed in seeds:
        by_seed[seed] = run_seed(plan, seed, folder / f"seed-{seed}", model, with_uncurated)
        report(plan, start, by_seed)


if __name__ == "__main__":
    main()
