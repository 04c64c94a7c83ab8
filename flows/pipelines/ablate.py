"""Compare the arms of an ablation, or analyse a run on the plane of its weights' two principal directions.

Of an ablation, in DIR:

- `runs/ARM-seed-N`: a training run, resumed if unfinished
- `evaluations/BENCH/`: its evaluation (`flows.pipelines.evaluate`)
- `ablation.json`, `report.md`: rewritten after each model

Of an analysis, in RUN/analysis:

- `problems.jsonl`: the problems asked at every point
- `points.jsonl`: a line per finished point
- `analysis.json`: directions, points, the regression
- `analysis.png`: reward and length on the plane, reward by length
"""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import polars as pl
from pydantic_core import to_json

from curation.config import Bench, TorchModel, VllmModel
from curation.config.loading import load_settings, parse_settings
from curation.extras import require_extra
from curation.records import ConfigError, Domain, StoreError
from curation.response_formats import BOXED
from curation.storage.locks import lock_folder
from curation.storage.stages import atomic_write
from flows.pipelines.evaluate import FOLDER, evaluate
from flows.pipelines.refresh import checkpoint_table
from flows.run.benches import load_bench
from flows.run.policies import parse_model
from flows.run.progress import bar, print_line
from flows.run.training import load_train_recipe, read_run, start_from, train
from training.embedded_model import resolve_model
from training.embedded_model.problems import Split
from training.evaluation.ablations import Ablation, Arm, TrainedArm, ablation_lines, compare_arms
from training.evaluation.directions import (
    Directions,
    LogFit,
    Point,
    draw_surfaces,
    fit_log_length,
    grid_axes,
    principal_directions,
    write_point,
)
from training.evaluation.metrics import read_metrics
from training.recipe import TrainRecipe
from training.rewards import CORRECTNESS, FORMAT
from training.rollouts.tasks import load_tasks
from training.rollouts.verifiers import verifier_workers


def ablate(path: Path, out: Path | None = None, overrides: Sequence[str] = ()) -> Path:
    """Train and evaluate an ablation's arms, or resume it, write the report, and return its folder.

    Raises:
        ConfigError: the file, a recipe or a bench is invalid; nothing was trained.
        StoreError: the folder holds another ablation.
    """
    ablation = load_settings(Ablation, path, overrides)
    folder = (out or Path("runs") / f"ablate-{ablation.name}").absolute()
    arms = ablation.arms()
    benches = [load_bench(name, ablation.bench_set, path.parent) for name in ablation.benches]
    names = [bench.name for bench, _ in benches]
    if len(set(names)) < len(names):
        raise ConfigError(f"ablation {path}: two of its benches have one name ({', '.join(names)}); rename one.")
    for arm in arms:  # before anything is trained
        load_train_recipe(path.parent / arm.recipe(ablation.recipe), arm.changes(ablation.set, ablation.seeds[0]))
    with lock_folder(folder):
        made_from = ablation.model_dump(mode="json", exclude={"seeds", "description"})  # more seeds may be added
        refusal = f"{folder} holds another ablation, or other settings of it; give another --out."
        _claim(folder / "ablation.toml.json", json.dumps(made_from, indent=1) + "\n", refusal)
        trained: dict[str, dict[int, TrainedArm]] = {arm.name: {} for arm in arms}
        for number, (seed, arm) in enumerate(itertools.product(ablation.seeds, arms), start=1):
            print_line(f"{ablation.name}, {number} of {len(ablation.seeds) * len(arms)}: {arm.name}, seed {seed}")
            run = _trained(ablation, arm, seed, path.parent, folder)
            rates = {bench.name: _rates(ablation, bench, home, run, folder) for bench, home in benches}
            before = trained[arm.after][seed].sampled_tokens if arm.after is not None else 0.0
            trained[arm.name][seed] = _measured(run, rates, before)
            results = compare_arms(trained)
            table = to_json({"name": ablation.name, "results": results}, indent=1, inf_nan_mode="null").decode()
            atomic_write(folder / "ablation.json", f"{table}\n")
            atomic_write(folder / "report.md", "\n".join(ablation_lines(ablation, results)) + "\n")
    return folder


def _claim(mark: Path, content: str, refusal: str) -> None:
    """Record what a folder holds; refuse another one."""
    if mark.exists() and mark.read_text(encoding="utf-8") != content:
        raise StoreError(refusal)
    atomic_write(mark, content)


def _trained(ablation: Ablation, arm: Arm, seed: int, home: Path, folder: Path) -> Path:
    out = _run_folder(folder, arm.name, seed)
    if (out / "model" / "DONE.json").exists() and (out / "summary.json").exists():
        return out
    if (out / "run.json").exists():
        train(None, out, resume=True)
    else:
        recipe, changes = home / arm.recipe(ablation.recipe), arm.changes(ablation.set, seed)
        if arm.after is not None:
            changes = [*changes, start_from(recipe, _run_folder(folder, arm.after, seed) / "model", changes)]
        train(recipe, out, changes)
    return out


def _run_folder(folder: Path, arm: str, seed: int) -> Path:
    return folder / "runs" / f"{arm}-seed-{seed}"


def _rates(ablation: Ablation, bench: Bench, home: Path, run: Path, folder: Path) -> dict[str, float]:
    named = ((ablation, ablation.model), (bench, bench.model))
    asked_as = next((file.models[name] for file, name in named if name is not None), None)
    policy = parse_model(checkpoint_table(run / "model", asked_as), f"the model of {run}")
    place = folder / "evaluations" / bench.name / run.name
    evaluate(bench, policy, place, home, run)
    scores = pl.read_parquet(place / FOLDER / "problems.parquet", glob=False).filter(pl.col("attempts") > 0)
    return dict(scores.select("problem", pl.col("correct") / pl.col("attempts")).iter_rows())


def _measured(run: Path, rates: Mapping[str, Mapping[str, float]], before: float) -> TrainedArm:
    """Return an arm's rates and costs; ``before``: tokens sampled by its starting run."""
    rows = read_metrics(run)
    tokens = sum(row.get("sampled/attempts", 0.0) * row.get("length/sampled_mean", 0.0) for row in rows)
    groups = sum(row.get("sampled/groups", 0.0) for row in rows)
    dropped = sum(row.get("sampled/groups", 0.0) * row.get("sampled/dropped", 0.0) for row in rows)
    return TrainedArm(rates, before + tokens, dropped / groups if groups else 0.0)


@dataclass(frozen=True, slots=True)
class Analysis:
    """A finished analysis; ``fit`` is None if all lengths are equal."""

    directions: Directions
    points: list[Point]
    fit: LogFit | None
    plots: Path


def analyse(run: Path, size: int = 9, problems: int = 512, attempts: int = 16) -> Analysis:
    """Analyse a finished training run, or resume its analysis.

    Args:
        size: points along each direction.
        problems, attempts: numbers at each point, and at each problem.

    Raises:
        StoreError: the folder holds no training run, or an analysis with other figures.
        ConfigError: the run is unfinished, kept no trajectory or trained on programs.
    """
    require_extra("plots", "`goldilocks ablate --analyse`")
    recipe, home = read_run(run)
    kept = sorted(path for path in (run / "trajectory").glob("v*") if (path / "DONE.json").exists())
    if not (run / "model" / "DONE.json").exists() or not kept:
        raise ConfigError(
            f"{run} has no finished model with intermediate ones; train to the end with checkpoints.trajectory = 10"
        )
    directions = principal_directions([resolve_model(recipe.trained.model, home), *kept, run / "model"])
    place = (run / "analysis").absolute()
    with lock_folder(place):
        bench = _bench(recipe, home, place, problems, attempts)
        figures = {"size": size, "problems": problems, "attempts": attempts, "states": len(directions.states)}
        refusal = f"{place} was begun with other sizes (figures.json); remove it to start again."
        _claim(place / "figures.json", json.dumps(figures) + "\n", refusal)
        firsts, seconds = grid_axes(directions.coordinates, size)
        points = _measure(recipe, directions, list(itertools.product(firsts, seconds)), bench, place)
        fit = fit_log_length(points)
        draw_surfaces(points, fit, directions.coordinates, directions.explained, place / "analysis.png")
        places = zip((state.name for state in directions.states), directions.coordinates, strict=True)
        way = [{"state": name, "coordinates": at} for name, at in places]
        table = {"explained": directions.explained, "way": way, "points": points, "fit": fit}
        atomic_write(place / "analysis.json", to_json(table, indent=1).decode() + "\n")
    return Analysis(directions, points, fit, place / "analysis.png")


def _bench(recipe: TrainRecipe, home: Path, place: Path, problems: int, attempts: int) -> Bench:
    tasks = list(itertools.islice(load_tasks(recipe.data, Split.TRAIN, home).values(), problems))
    if any(task.request.domain is Domain.CODE for task in tasks):
        raise ConfigError("the run was trained on programs; only math sets can be analysed")
    rows = [
        {"problem": task.request.statement, "answer": task.reference_answer, "lang": task.request.lang}
        for task in tasks
    ]
    atomic_write(place / "problems.jsonl", "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    table = {
        "name": "analysis",
        "attempts": attempts,
        "k": [],
        "consistency": False,
        "decoding": {"temperature": recipe.temperature, "max_tokens": recipe.rewards.max_length},
        "workers": verifier_workers(),
        "verify": {"response_format": BOXED},
        "sources": [{"name": "problems", "path": "problems.jsonl", "columns": {"answer": "answer", "lang": "lang"}}],
    }
    return parse_settings(Bench, table, "the problems of the analysis")


def _measure(
    recipe: TrainRecipe, directions: Directions, wanted: Sequence[tuple[float, float]], bench: Bench, place: Path
) -> list[Point]:
    log = place / "points.jsonl"
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    points = {(point.first, point.second): point for point in (Point(**json.loads(line)) for line in lines)}
    with bar("Points", len(wanted)) as advance:
        for at in wanted:
            if at not in points:
                points[at] = _ask(recipe, directions, at, bench, place)
                atomic_write(log, "".join(json.dumps(asdict(point)) + "\n" for point in points.values()))
            advance(1)
    return [points[at] for at in wanted]


def _ask(recipe: TrainRecipe, directions: Directions, at: tuple[float, float], bench: Bench, place: Path) -> Point:
    own, work = recipe.trained, place / "point"
    shutil.rmtree(work, ignore_errors=True)
    model = write_point(directions, *at, work / "model")
    kind, name = (TorchModel, "torch") if isinstance(own, TorchModel) else (VllmModel, "vllm")
    shared = {key: getattr(own, key) for key in ("prompt", "thinking", "examples")}
    asked_as = kind.model_validate({"kind": name, "model": "point", **shared})
    policy = parse_model(checkpoint_table(model, asked_as), "the analysis")
    evaluate(bench, policy, work / "run", place, work, own_problems=True)
    scores = pl.read_parquet(work / "run" / FOLDER / "problems.parquet", glob=False)
    shutil.rmtree(work)
    texts, formed, rewarded = (int(scores[name].sum()) for name in ("texts", "formed", "rewarded"))
    mean = scores["tokens"].mean()
    reward = (FORMAT * formed + CORRECTNESS * rewarded) / max(texts, 1)
    return Point(*at, reward, mean if isinstance(mean, float) else 0.0)
