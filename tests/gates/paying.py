"""Does curation pay, and does a refresh? The embedded model trained on one set and on another, from the same weights.

A curated set against as many random rows of its source: for each seed a source is drawn, `IMPOSSIBLE` of it products
that the embedded model never solves, `EASY` of it of level 1, and a share `WRONG` with a wrong reference. The arms are

    curated        what `goldilocks run` keeps of the source
    random         as many rows of the source, drawn by chance
    from-attempts  the curated set, from the model that imitates the correct attempts that curation sampled anyway

Groups that teach nothing are dropped and others drawn in their place, so equal steps are not equal samples. Each arm is
measured at its last checkpoint before it has sampled what the curated arm sampled in all its steps; with the cost of
curation counted, others than `from-attempts`, which bears that cost itself, go on until they have sampled what curation
sampled besides.

A set that is refreshed against a fixed one: `rounds` + 1 stretches of `steps` steps, each from the model of the stretch
before, which is one for both at first. After each stretch but the last, `goldilocks refresh` makes the next version of
the refreshed set with the new checkpoint and its attempts. A set that runs dry ends a stretch early. Held-out attempts
are spread over the models of the last steps, since pass@1 moves by up to a tenth from one step to the next.

All models are asked the same held-out problems, under the same seeds.
"""

from __future__ import annotations

import json
import random
import shutil
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import orjson
import polars as pl

from curation.records import PROBLEM, Domain
from tests.benchmarks.ladder import chains, ladder_model
from tests.embedded_model.measure import measure_exercises
from tests.places import ROOT
from training.embedded_model import WEIGHTS
from training.embedded_model.problems import Exercise, Split, generate_exercises
from training.evaluation.estimators import Estimate, crossed_interval
from training.evaluation.metrics import read_metrics

PROBLEMS, IMPOSSIBLE, EASY, WRONG = 300, 0.4, 0.15, 0.15
"""Of a source: its problems, and shares of them."""
STEPS, BATCH, HELD_OUT, ATTEMPTS = 8, 64, 150, 4
"""Of an arm."""
HELD_OUT_SEED = 2026
IMITATION = (
    "objective={ kind = 'sft' }",
    "collector.group_size=4",
    "stored={ epochs = 2, only = true }",
    "optim.learning_rate=3e-4",
)

RECIPE = """
name = "paying"
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
band = {{ attempts = 8, {band} }}
[models.student]
kind = "torch"
model = {model}
prompt = "plain"
decoding = {{ temperature = 1.0, max_tokens = 112 }}
{more}
"""


def curate(
    folder: Path, exercises: Sequence[Exercise], answers: Sequence[str], model: Path, band: str, more: str = ""
) -> Path:
    """Return the run folder of a set that is curated with a model; ``more``: further tables of the recipe."""
    from flows.cli.commands import run_recipe

    folder.mkdir(parents=True)
    rows = [
        {"problem": item.statement, "answer": answer, "lang": item.lang}
        for item, answer in zip(exercises, answers, strict=True)
    ]
    (folder / "problems.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "recipe.toml").write_text(RECIPE.format(model=json.dumps(str(model)), band=band, more=more))
    run_recipe(folder / "recipe.toml", [], folder / "run")
    return folder / "run"


def rows_of(folder: Path) -> pl.DataFrame:
    """Return the rows of a published set."""
    return pl.concat([pl.read_parquet(path) for path in sorted((folder / "data").glob("*.parquet"))])


def train_on(data: Path, out: Path, model: Path, steps: int, seed: int, *more: str) -> Path:
    """Train the model on a set and return the run folder; each step has a checkpoint."""
    from flows.run.training import train

    changes = [
        f"steps={steps}",
        f"seed={seed}",
        f"models.student.model={json.dumps(str(model))}",
        f'data={{ kind = "curated", folders = [{json.dumps(str(data.absolute()))}] }}',
        "evaluation={}",
        "collector.max_staleness=0",
        "checkpoints.every=1",
        f"checkpoints.keep={steps}",
        *more,
    ]
    train(ROOT / "flows" / "recipes" / "train_embedded.toml", out, changes)
    return out


def model_at(run: Path, step: int) -> Path:
    """Return the model after a step of a run that ended well, or of the last one."""
    is_last = step == len(read_metrics(run)) and not dry(run)
    return run / "model" if is_last else run / "checkpoints" / f"step-{step:08}" / "hf"


def rates(model: Path, exercises: Sequence[Exercise], attempts: int) -> list[float]:
    """Return the pass rate of each held-out problem."""
    values: list[float] = measure_exercises(model, exercises, attempts)["pass_rate"].fill_null(0.0).to_list()
    return values


def source(seed: int) -> tuple[list[Exercise], list[str]]:
    """Return the exercises of a seed's source, shuffled, and their references, a share of them wrong."""
    draw = random.Random(9000 + seed)
    hard, easy = round(IMPOSSIBLE * PROBLEMS), round(EASY * PROBLEMS)
    exercises = list(islice(generate_exercises(300 + seed, Split.TRAIN, kinds=("big_product",)), hard))
    usual = (item for item in generate_exercises(700 + seed, Split.TRAIN) if item.kind != "big_product")
    exercises += list(islice((item for item in usual if item.level == 1), easy))
    known = {item.id for item in exercises}
    others = (item for item in generate_exercises(800 + seed, Split.TRAIN) if item.level in (2, 3, 4))
    exercises += list(islice((item for item in others if item.id not in known), PROBLEMS - len(exercises)))
    draw.shuffle(exercises)
    answers = [str(item.answer) for item in exercises]
    for place in draw.sample(range(len(exercises)), round(WRONG * len(exercises))):
        answers[place] = str(exercises[place].answer + draw.choice((1, -1, 10, -10, 2, 100)))
    return exercises, answers


def random_rows(seed: int, folder: Path, count: int) -> Path:
    """Return the folder of a set with so many random rows of the seed's source."""
    rows = [
        {
            "id": item.id,
            "group": item.id,
            "domain": Domain.MATH.value,
            "statement": item.statement,
            "answer": answer,
            "lang": item.lang,
            "source": "embedded",
            "row": row,
            "license": "Apache-2.0",
            "weight": 1.0,
            "meta": orjson.dumps({"topic": item.kind, "level": item.level}).decode(),
        }
        for row, (item, answer) in enumerate(zip(*source(seed), strict=True))
    ]
    table = pl.DataFrame(rows, schema=PROBLEM)
    chosen = random.Random(4000 + seed).sample(range(table.height), count)
    (folder / "data").mkdir(parents=True)
    table[sorted(chosen)].write_parquet(folder / "data" / "train-00000-of-00001.parquet")
    return folder


def tokens_by_step(run: Path) -> list[float]:
    """Return how many tokens were sampled up to each step."""
    total, sums = 0.0, []
    for row in read_metrics(run):
        total += row.get("sampled/attempts", 0.0) * row.get("length/sampled_mean", 0.0)
        sums.append(total)
    return sums


def curation_tokens(run: Path) -> int:
    """Return how many tokens the curation of a set sampled."""
    marks = (run / "verdicts").glob("*/*/DONE.json")
    return sum(int(json.loads(path.read_text())["notes"].get("tokens", 0)) for path in marks)


def arms(seed: int, folder: Path, wanted: Sequence[str], *, with_cost: bool) -> dict[str, list[float]]:
    """Return the held-out pass rates of a seed's arms at equal tokens."""
    held_out = list(islice(generate_exercises(HELD_OUT_SEED, Split.HELD_OUT), HELD_OUT))
    sizes = (f"collector.n_batch={BATCH}", f"collector.n_async={BATCH}", "checks=false", "attempt_store='none'")
    first = curate(folder / "set", *source(seed), WEIGHTS.resolve(), "wrong_label_share = 0.5")
    data = first / "curated"
    out = train_on(data, folder / "curated", WEIGHTS.resolve(), STEPS, seed, *sizes)
    sampled, found = tokens_by_step(out)[STEPS - 1], {}
    for arm in wanted:
        step = STEPS
        if arm != "curated":
            start, rows, budget, steps = WEIGHTS.resolve(), data, sampled, STEPS
            if arm == "random":
                rows = random_rows(seed, folder / "rows", rows_of(data).height)
                if with_cost:
                    budget, steps = sampled + curation_tokens(first), 3 * STEPS
            else:
                start = train_on(data, folder / "imitation", start, 1000, seed, *sizes, *IMITATION) / "model"
            out = train_on(rows, folder / arm, start.resolve(), steps, seed, *sizes)
            step = max((n + 1 for n, total in enumerate(tokens_by_step(out)) if total <= budget), default=1)
        found[arm] = rates(model_at(out if arm != "curated" else folder / "curated", step), held_out, ATTEMPTS)
    return found


@dataclass(frozen=True, slots=True)
class Loop:
    """Sizes of a comparison of a refreshed set with a fixed one."""

    rounds: int = 3
    steps: int = 8
    problems: int = 1000
    held_out: int = 400
    attempts: int = 8
    min_correct: int = 1
    last: int = 4
    """Models of the last steps, whose pass rates are averaged."""
    ladder: bool = False
    """Problems of `tests.benchmarks.ladder`, whose upper rungs are out of reach at first."""

    def drawn(self, seed: int, split: Split, number: int) -> list[Exercise]:
        """Return so many problems."""
        return list(islice((chains if self.ladder else generate_exercises)(seed, split), number))

    def first_model(self, folder: Path) -> Path:
        """Return the weights that everything begins with."""
        return ladder_model(folder) if self.ladder else WEIGHTS.resolve()

    def curated(self, seed: int, folder: Path, model: Path) -> Path:
        """Return the run folder of the first version of the set."""
        exercises = self.drawn(1000 + seed, Split.TRAIN, self.problems)
        answers = [str(item.answer) for item in exercises]
        band = f"min_correct = {self.min_correct}, max_pass_rate = 0.75"
        return curate(folder, exercises, answers, model, band, "[refresh]\nmax_pass_rate = 0.99")

    def stretches(self, seed: int, arm: str, run: Path, folder: Path, start: Path) -> list[Path]:
        """Return the training runs of an arm; the refreshed arm's set is refreshed between them."""
        from flows.cli.commands import refresh_run
        from training.optimisation.trainer import TrainingError

        model, made = start, list[Path]()
        for number in range(1, self.rounds + 2):
            out = folder / ("both-1" if number == 1 else f"{arm}-{number}")
            if not out.exists():
                try:
                    train_on(run / "curated", out, model, self.steps, 100 * seed + number)
                except TrainingError:
                    if not dry(out):
                        raise
            made.append(out)
            model = models(made)[-1]
            if arm == "fixed" and dry(out):
                break
            if arm == "refreshed" and number <= self.rounds:
                refresh_run(run, model, out / "attempts.jsonl")
        return made

    def gains(self, seed: int, folder: Path, model: Path) -> list[float]:
        """Return what refreshes gain on the first version of the set at equal steps, by held-out problem."""
        first = self.curated(seed, folder / "set", model)
        held_out = self.drawn(HELD_OUT_SEED, Split.HELD_OUT, self.held_out)
        at_end = {}
        for arm, run in (("fixed", first), ("refreshed", shutil.copytree(first, folder / "refreshed"))):
            last = models(self.stretches(seed, arm, run, folder, model))[-self.last :]
            by_model = [rates(one, held_out, max(self.attempts // self.last, 1)) for one in last]
            at_end[arm] = [statistics.fmean(values) for values in zip(*by_model, strict=True)]
        return [a - b for a, b in zip(at_end["refreshed"], at_end["fixed"], strict=True)]


def dry(out: Path) -> bool:
    """Return whether a stretch ended for having nothing to learn from."""
    return (out / "stalled.json").exists()


def models(stretches: Sequence[Path]) -> list[Path]:
    """Return the models after each step of stretches."""
    return [model_at(out, step) for out in stretches for step in range(1, len(read_metrics(out)) + 1)]


def gain(rows: list[list[float]]) -> tuple[Estimate, list[float]]:
    """Return the mean of differences by seed and problem with its 95 % interval over both, and the mean by seed."""
    return crossed_interval(rows), [statistics.fmean(row) for row in rows]
