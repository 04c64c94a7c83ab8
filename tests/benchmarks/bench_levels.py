"""Does level control pay where a fixed set holds nothing harder? Sums made by level.

    .venv/bin/python -m tests.benchmarks.bench_levels FOLDER [--seeds 1 2 3 4 5 6 7 8] [--rounds 2] [--steps 5]

For each seed a set of `ROWS` rows a level is curated with the embedded model, with `RESERVE` more a level in reserve.
Four arms train ``--rounds`` + 1 stretches of ``--steps`` steps each, the first stretch one for all but the last arm:

  - fixed: on the first version of the set;
  - refreshed: `goldilocks refresh` with the new checkpoint after each stretch but the last, level control switched off;
  - levels: the same refresh with level control, which draws new rows of the levels in the band from the reserve;
  - variants: as levels, on a set that has variants from the start: a script rewrites each sum in another order and
    wording, and the model's attempts at variants count among this arm's tokens.

Held out are `HELD_OUT` sums a level with seeds of their own, those with a statement of the set left out; the pass rate
is the mean over the last `LAST` models. The arms are compared after equal steps, and at equal tokens: all of training
and of refreshes counted, up to what the cheapest arm used (an arm that ran dry uses no more; its last models count).
The share of drawn groups whose own pass rate is in the band is reported for each stretch. Intervals: 95 % over seeds
and problems together (`training.evaluation.estimators.crossed_interval`), and a bootstrap over seeds. What is finished
is in FOLDER and is not done again.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import statistics
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import polars as pl

from curation.difficulty.refresh import REFRESH_CHOICE
from curation.records import COUNTED_OUTCOMES, Outcome
from curation.storage.stages import atomic_write
from flows.pipelines.refresh_choice import LevelChoice
from tests.benchmarks.bench_loop import RECIPES, dry, refreshed_set, states
from tests.embedded_model.measure import measure_exercises
from training.embedded_model import WEIGHTS
from training.embedded_model.problems import Exercise
from training.evaluation.estimators import crossed_interval
from training.evaluation.report import with_interval

ARMS = ("fixed", "refreshed", "levels", "variants")
LEVELS = ({"terms": 2, "top": 89}, {"terms": 3, "top": 49}, {"terms": 3, "top": 69}, {"terms": 3, "top": 89})
"""The model solves .46, .28, .17 and .14 of them before training; of harder ones, as four terms, none at any time."""

ROWS, RESERVE = 16, 48
HELD_OUT, ATTEMPTS, LAST, SEEDS = 30, 4, 2, 8
GENERATOR = """
from random import Random


def make(level, seed, terms, top):
    random = Random(f"{level} {seed}")
    numbers = [random.randint(11, top) for _ in range(terms)]
    return {"statement": f"What is {' + '.join(map(str, numbers))}?", "answer": str(sum(numbers))}
"""

PAIRS = (
    ("levels", "refreshed"),
    ("levels", "fixed"),
    ("refreshed", "fixed"),
    ("variants", "levels"),
    ("variants", "refreshed"),
    ("variants", "fixed"),
)
"""The arms whose differences are reported."""

BAND = (0.125, 0.75)
"""Pass rates of the set's band, with eight attempts."""

RECIPE = f"""
name = "bench-levels"
shard_rows = 200
workers = 1
[[sources]]
kind = "procedural"
name = "sums"
generator = "sums.py:make"
levels = {{levels}}
rows_per_level = {ROWS}
reserve_per_level = {RESERVE}
first_seed = {{first_seed}}
license = "Apache-2.0"
[near_dedup]
enabled = false
[stage1]
model = "student"
band = {{{{ attempts = 8, min_correct = 1, max_pass_rate = {BAND[1]} }}}}
[models.student]
kind = "torch"
model = "embedded"
prompt = "plain"
decoding = {{{{ temperature = 1.0, max_tokens = 112 }}}}
"""

VARIANTS = """
[questions.variants]
model = "script"
[models.script]
kind = "recorded"
name = "script@1"
path = "variants.jsonl"
columns = { problem = "question", text = "text" }
"""


@dataclass(frozen=True, slots=True)
class Plan:
    """The size of a comparison."""

    rounds: int
    steps: int


def made_sums(seeds: Sequence[int]) -> list[Exercise]:
    """Return the sums of these seeds, of one level after the other."""
    made: dict[str, Any] = {}
    exec(GENERATOR, made)
    found = []
    for level, how in enumerate(LEVELS, 1):
        for row in (made["make"](level, seed, **how) for seed in seeds):
            found.append(Exercise(row["statement"], "sum", level, "en", {}, int(row["answer"]), row["statement"]))
    return found


def set_seeds(seed: int) -> range:
    """Return the seeds of a set's rows, those in reserve too."""
    return range(1000 * seed, 1000 * seed + ROWS + RESERVE)


def scripted_variant(statement: str) -> str:
    """Return a model's answer that asks for the same sum in another order and wording."""
    numbers = re.findall(r"\d+", statement)
    *first, last = numbers[1:] + numbers[:1]
    total = sum(map(int, numbers))
    return f"<problem>Find the sum of {', '.join(first)} and {last}.</problem> It is \\boxed{{{total}}}."


def curated(seed: int, folder: Path, variants: bool = False) -> Path:
    """Return the run folder of the first version of the set."""
    from flows.cli.commands import run_recipe
    from flows.publish.versions import stored_versions

    folder.mkdir(parents=True, exist_ok=True)
    atomic_write(folder / "sums.py", GENERATOR)
    levels = ", ".join(f"{{ terms = {one['terms']}, top = {one['top']} }}" for one in LEVELS)
    recipe = RECIPE.format(first_seed=1000 * seed, levels=f"[{levels}]")
    if variants:
        texts = [one.statement for one in made_sums(set_seeds(seed))]
        rows = [json.dumps({"question": text, "text": scripted_variant(text)}) for text in dict.fromkeys(texts)]
        atomic_write(folder / "variants.jsonl", "\n".join(rows) + "\n")
    atomic_write(folder / "recipe.toml", recipe + VARIANTS * variants)
    if not stored_versions(folder / "run"):
        run_recipe(folder / "recipe.toml", [], folder / "run")
    return folder / "run"


@cache
def held_out() -> list[Exercise]:
    """Return sums that are in no set of the first `SEEDS` seeds, as many of each level."""
    used = {one.statement for seed in range(1, SEEDS + 1) for one in made_sums(set_seeds(seed))}
    rows = {(one.level, one.statement): one for one in made_sums(range(10**6, 10**6 + 8 * HELD_OUT))}
    fresh = [one for one in rows.values() if one.statement not in used]
    return [
        one for level in range(1, len(LEVELS) + 1) for one in [row for row in fresh if row.level == level][:HELD_OUT]
    ]


def stretch(plan: Plan, seed: int, number: int, model: str, data: Path, out: Path) -> Path:
    """Train a stretch, or finish it, and return its run folder; a set that runs dry ends it early."""
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
        "collector.n_batch=64",
        "collector.n_async=64",
        "collector.max_staleness=0",
        "checkpoints.every=1",
        f"checkpoints.keep={plan.steps}",
    ]
    begun = (out / "run.json").exists()
    try:
        train(None, out, resume=True) if begun else train(RECIPES / "train_embedded.toml", out, changes)
    except TrainingError:
        if not dry(out):
            raise
    return out


def no_levels(*_: object) -> tuple[list[LevelChoice], pl.DataFrame]:
    """Return the choice of a refresh without level control."""
    return [], REFRESH_CHOICE.to_frame()


@dataclass(frozen=True, slots=True)
class Trained:
    """An arm's training: its stretches, the tokens of each refresh after them, and those of variants before them."""

    stretches: list[Path]
    refreshes: list[int]
    variants: int

    @property
    def way(self) -> list[tuple[float, Path]]:
        """Return all tokens sampled up to each step, those of refreshes too, and the model after it."""
        found, before = list[tuple[float, Path]](), float(self.variants)
        for number, out in enumerate(self.stretches):
            own = states([out])
            found += [(before + total, model) for total, model in own]
            before += own[-1][0] if own else 0.0
            before += self.refreshes[number] if number < len(self.refreshes) else 0
        return found

    @property
    def is_dry(self) -> bool:
        """Return whether its last stretch ended for having nothing to learn from."""
        return dry(self.stretches[-1])

    @property
    def in_band(self) -> list[float]:
        """Return the share of the groups drawn in each stretch whose pass rate is in the band."""
        shares = []
        for out in self.stretches:
            rows = pl.read_ndjson(out / "attempts.jsonl").filter(pl.col("outcome").is_in(COUNTED_OUTCOMES))
            correct = pl.col("outcome") == Outcome.CORRECT.value
            groups = rows.group_by("group").agg(rate=correct.mean())
            shares.append(statistics.fmean(groups["rate"].is_between(*BAND)))
        return shares


def trained_arm(plan: Plan, seed: int, arm: str, run: Path, folder: Path) -> Trained:
    """Train an arm; its set is refreshed between the stretches unless it is fixed."""
    model, stretches = str(WEIGHTS.resolve()), list[Path]()
    for number in range(1, plan.rounds + 2):
        name = "both-1" if number == 1 and arm != "variants" else f"{arm}-{number}"
        stretches.append(stretch(plan, seed, number, model, run / "curated", folder / f"train-{name}"))
        model = str(states(stretches)[-1][1])
        if arm == "fixed" and dry(stretches[-1]):
            break
        if arm != "fixed" and number <= plan.rounds:
            off = patch("flows.pipelines.refresh.drawn_levels", no_levels) if arm == "refreshed" else nullcontext()
            with off:
                refreshed_set(run, number, stretches[-1], Path(model))
    about = [json.loads(path.read_text()) for path in sorted((run / "versions").glob("*/about.json"))]
    costs = {one["number"]: int(one["cost"].get("tokens", 0)) for one in about}
    refreshes = [costs.get(number + 1, 0) for number in range(1, plan.rounds + 1)] if arm != "fixed" else []
    return Trained(stretches, refreshes, variant_tokens(run) if arm == "variants" else 0)


def variant_tokens(run: Path) -> int:
    """Return how many tokens the first policy sampled for variants."""
    measured = pl.read_parquet(run / "stages" / "10-variants" / "decisions" / "*.parquet").select("problem", "policy")
    attempts = pl.read_parquet(run / "attempts" / "*" / "*.parquet", columns=["problem", "policy", "tokens"])
    return int(attempts.join(measured, on=["problem", "policy"])["tokens"].sum())


def late_rates(way: Sequence[tuple[float, Path]], place: Path) -> list[float]:
    """Return the held-out pass rate of each problem, the mean over the last `LAST` models of a way."""
    place.mkdir(exist_ok=True)
    measured = []
    for _, model in way[-LAST:]:
        parts = model.relative_to(place.parent).parts
        path = place / f"{'-'.join(part for part in parts if part not in ('checkpoints', 'hf'))}.json"
        if not path.exists():
            found = measure_exercises(model, held_out(), ATTEMPTS // LAST, 2026)
            atomic_write(path, json.dumps(found.by_problem["pass_rate"].fill_null(0.0).to_list()))
        measured.append(json.loads(path.read_text()))
    return [statistics.fmean(values) for values in zip(*measured, strict=True)]


def run_seed(plan: Plan, seed: int, folder: Path) -> dict[str, Any]:
    """Run the arms of a seed; return their held-out pass rates, tokens and shares in the band."""
    runs = {"fixed": curated(seed, folder / "set")}
    runs["variants"] = curated(seed, folder / "variants", variants=True)
    for arm in ARMS[1:3]:
        runs[arm] = folder / arm
        if not (folder / arm / "run.json").exists():
            shutil.rmtree(folder / "copying", ignore_errors=True)
            shutil.copytree(runs["fixed"], folder / "copying")
            (folder / "copying").rename(folder / arm)
    arms = {arm: trained_arm(plan, seed, arm, runs[arm], folder) for arm in ARMS}
    ends = {arm: one.way[-1][0] for arm, one in arms.items()}
    budget = min((ends[arm] for arm, one in arms.items() if not one.is_dry), default=max(ends.values()))
    results: dict[str, Any] = {"budget": budget}
    for arm, one in arms.items():
        within = [state for state in one.way if state[0] <= budget] or one.way[:1]
        results[arm] = {
            "steps": late_rates(one.way, folder / "rates"),
            "tokens": late_rates(within, folder / "rates"),
            "sampled": one.way[-1][0],
            "refreshes": sum(one.refreshes),
            "taken": [len(one.way), len(within)],
            "in_band": one.in_band,
        }
    return results


def bootstrap(values: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % interval of the mean by drawing seeds anew."""
    random = Random(0)
    means = sorted(statistics.fmean(random.choices(values, k=len(values))) for _ in range(10000))
    return means[250], means[-251]


def report(by_seed: dict[int, dict[str, Any]]) -> None:
    """Print the tables on standard output."""
    print("\n| seed | arm | equal steps (steps) | equal tokens (step) | tokens (refreshes) | in the band by stretch |")
    print("|---|---|---|---|---|---|")
    for seed, results in by_seed.items():
        for arm in ARMS:
            one = results[arm]
            shares = " ".join(f"{share:.2f}" for share in one["in_band"])
            print(
                f"| {seed} | {arm} | {statistics.fmean(one['steps']):.3f} ({one['taken'][0]}) | "
                f"{statistics.fmean(one['tokens']):.3f} ({one['taken'][1]}) | "
                f"{one['sampled']:,.0f} ({one['refreshes']:,}) | {shares} |"
            )
    for first, second in PAIRS:
        for at in ("steps", "tokens"):
            rows = [[a - b for a, b in zip(one[first][at], one[second][at], strict=True)] for one in by_seed.values()]
            gains = [statistics.fmean(row) for row in rows]
            low, high = bootstrap(gains)
            print(
                f"{first} - {second}, equal {at}: {with_interval(crossed_interval(rows), signed=True)}; "
                f"bootstrap over {len(gains)} seeds {low:+.3f} to {high:+.3f}; by seed "
                + " ".join(f"{gain:+.3f}" for gain in gains),
                flush=True,
            )
    for arm in ARMS:
        later = [one[arm]["in_band"][1:] for one in by_seed.values()]
        means = [statistics.fmean(row) for row in later if row]
        if means:
            low, high = bootstrap(means)
            mean = statistics.fmean(means)
            print(f"in the band after the first stretch, {arm}: {mean:.3f} ({low:.3f} to {high:.3f})", flush=True)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("folder", type=Path)
    options.add_argument("--seeds", type=int, nargs="+", default=[*range(1, SEEDS + 1)])
    options.add_argument("--rounds", type=int, default=2)
    options.add_argument("--steps", type=int, default=5)
    parsed = options.parse_args()
    plan, by_seed = Plan(parsed.rounds, parsed.steps), {}
    folder = parsed.folder.absolute() / f"rounds-{plan.rounds}-steps-{plan.steps}"
    for seed in parsed.seeds:
        by_seed[seed] = run_seed(plan, seed, folder / f"seed-{seed}")
        report(by_seed)


if __name__ == "__main__":
    main()
