"""Compare the arms of an ablation, or analyse a run on the plane of its weights' two principal directions.

Of an ablation, in DIR:

- `runs/ARM-seed-N`: a training run, resumed if unfinished
- `evaluations/BENCH/`: its evaluation (`flows.pipelines.evaluate`)
- `ablation.json`, `report.md`: rewritten after each model

Of an analysis, in RUN/analysis:

- `problems.jsonl`: the problems asked at every point
- `points.jsonl`: a line per finished point
- `analysis.json`: directions, points, the regression
- `plots/`: reward.png, length.png, reward_by_length.png
"""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from curation.config import Bench, LiveModel, TorchModel, VllmModel
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
from training.evaluation.ablations import (
    Ablation,
    Arm,
    ArmResult,
    TrainedArm,
    ablation_lines,
    compare_arms,
)
from training.evaluation.metrics import read_metrics
from training.evaluation.surfaces import LogFit, Point, draw_surfaces, fit_log_length, grid_axes
from training.recipe import TrainRecipe
from training.rewards import CORRECTNESS, FORMAT
from training.rollouts.tasks import load_tasks
from training.rollouts.verifiers import verifier_workers


@dataclass(frozen=True, slots=True)
class AblationReport:
    """A finished ablation."""

    folder: Path
    ablation: Ablation
    results: tuple[ArmResult, ...]


def ablate(path: Path, out: Path | None = None, overrides: Sequence[str] = ()) -> AblationReport:
    """Train and evaluate an ablation's arms, or resume it, and write the report.

    Raises:
        ConfigError: the file, a recipe or a bench is invalid; nothing was trained.
        StoreError: the folder holds another ablation.
    """
    ablation = load_settings(Ablation, path, overrides)
    folder = (out or Path("runs") / f"ablate-{ablation.name}").absolute()
    arms = ablation.arms()
    loaded = [load_bench(name, ablation.bench_set, path.parent) for name in ablation.benches]
    benches = {bench.name: (bench, home) for bench, home in loaded}
    for arm in arms:  # before anything is trained
        load_train_recipe(path.parent / arm.recipe(ablation.recipe), arm.changes(ablation.set, ablation.seeds[0]))
    with lock_folder(folder):
        made_from = ablation.model_dump(mode="json", exclude={"seeds", "description"})  # more seeds may be added
        refusal = f"{folder} holds another ablation, or other settings of it; give another --out."
        _claim(folder / "ablation.toml.json", json.dumps(made_from, indent=1) + "\n", refusal)
        trained: dict[str, dict[int, TrainedArm]] = {arm.name: {} for arm in arms}
        results: list[ArmResult] = []
        for number, (seed, arm) in enumerate(itertools.product(ablation.seeds, arms), start=1):
            print_line(f"{ablation.name}, {number} of {len(ablation.seeds) * len(arms)}: {arm.name}, seed {seed}")
            run = _trained(ablation, arm, seed, path.parent, folder)
            rates = {name: _rates(ablation, bench, home, run, folder) for name, (bench, home) in benches.items()}
            before = trained[arm.after][seed].sampled_tokens if arm.after is not None else 0.0
            trained[arm.name][seed] = _measured(run, rates, before)
            results = compare_arms(arms[0].name, trained)
            table = {"name": ablation.name, "results": [result.table() for result in results]}
            atomic_write(folder / "ablation.json", json.dumps(table, indent=1) + "\n")
            atomic_write(folder / "report.md", "\n".join(ablation_lines(ablation, results)) + "\n")
    return AblationReport(folder, ablation, tuple(results))


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
    policy = parse_model(checkpoint_table(run / "model", _asking(ablation, bench)), f"the model of {run}")
    place = folder / "evaluations" / bench.name / run.name
    evaluate(bench, policy, place, home, run)
    scores = pl.read_parquet(place / FOLDER / "problems.parquet", glob=False).filter(pl.col("attempts") > 0)
    return {
        name: correct / attempts for name, correct, attempts in scores.select("problem", "correct", "attempts").rows()
    }


def _asking(ablation: Ablation, bench: Bench) -> LiveModel | None:
    named = ((ablation, ablation.model), (bench, bench.model))
    model = next((file.models[name] for file, name in named if name is not None), None)
    return model if isinstance(model, LiveModel) else None


def _measured(run: Path, rates: Mapping[str, Mapping[str, float]], before: float) -> TrainedArm:
    """Return an arm's rates and costs; ``before``: tokens sampled by its starting run."""
    rows = read_metrics(run)
    tokens = sum(row.get("sampled/attempts", 0.0) * row.get("length/sampled_mean", 0.0) for row in rows)
    groups = sum(row.get("sampled/groups", 0.0) for row in rows)
    dropped = sum(row.get("sampled/groups", 0.0) * row.get("sampled/dropped", 0.0) for row in rows)
    return TrainedArm(rates, len(rows), before + tokens, dropped / groups if groups else 0.0)


if TYPE_CHECKING:
    from training.evaluation.directions import Directions

PLACE = "analysis"


@dataclass(frozen=True, slots=True)
class Analysis:
    """A finished analysis; ``fit`` is None if all lengths are equal."""

    folder: Path
    directions: Directions
    points: tuple[Point, ...]
    fit: LogFit | None
    plots: tuple[Path, ...]

    def table(self) -> dict[str, Any]:
        """Return the analysis as one JSON object."""
        return {
            "folder": str(self.folder),
            "explained": self.directions.explained,
            "way": [
                {"state": path.name, "coordinates": place}
                for path, place in zip(self.directions.states, self.directions.coordinates, strict=True)
            ],
            "points": [asdict(point) for point in self.points],
            "fit": asdict(self.fit) if self.fit is not None else None,
            "plots": [str(path) for path in self.plots],
        }


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
    from training.evaluation.directions import principal_directions  # needs torch

    recipe, home = read_run(run)
    directions = principal_directions(_states(recipe, home, run))
    place = (run / PLACE).absolute()
    with lock_folder(place):
        bench = _bench(recipe, home, place, problems, attempts)
        firsts, seconds = grid_axes(directions.coordinates, size)
        figures = {"size": size, "problems": problems, "attempts": attempts, "states": len(directions.states)}
        refusal = f"{place} was begun with other figures (figures.json); remove it to begin anew."
        _claim(place / "figures.json", json.dumps(figures) + "\n", refusal)
        points = _measure(recipe, directions, [(a, b) for a in firsts for b in seconds], bench, place)
        fit = fit_log_length(points)
        plots = draw_surfaces(points, directions.coordinates, directions.explained, place / "plots")
        analysis = Analysis(place, directions, tuple(points), fit, tuple(plots))
        table = {name: value for name, value in analysis.table().items() if name not in ("folder", "plots")}
        atomic_write(place / "analysis.json", json.dumps(table, indent=1) + "\n")
    return analysis


def _states(recipe: TrainRecipe, home: Path, run: Path) -> list[Path]:
    kept = sorted(path for path in (run / "trajectory").glob("v*") if (path / "DONE.json").exists())
    if not (run / "model" / "DONE.json").exists() or not kept:
        raise ConfigError(
            f"{run} has no trained model with states of its way; train with checkpoints.trajectory = 10, and finish"
        )
    return [resolve_model(recipe.trained.model, home), *kept, run / "model"]


def _bench(recipe: TrainRecipe, home: Path, place: Path, problems: int, attempts: int) -> Bench:
    tasks = list(islice(load_tasks(recipe.data, Split.TRAIN, home).values(), problems))
    if any(task.request.domain is Domain.CODE for task in tasks):
        raise ConfigError("the run was trained on programs; only sets of math problems are analysed so far")
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
        "sources": [
            {
                "name": "problems",
                "kind": "jsonl",
                "path": "problems.jsonl",
                "columns": {"answer": "answer", "lang": "lang"},
            }
        ],
    }
    return parse_settings(Bench, table, "the problems of the analysis")


def _measure(
    recipe: TrainRecipe, directions: Directions, wanted: Sequence[tuple[float, float]], bench: Bench, place: Path
) -> list[Point]:
    log = place / "points.jsonl"
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    points = {(point.first, point.second): point for line in lines for point in (Point(**json.loads(line)),)}
    with bar("Points", len(wanted)) as advance:
        for first, second in wanted:
            if (first, second) not in points:
                points[first, second] = _ask(recipe, directions, (first, second), bench, place)
                text = "".join(json.dumps(asdict(point)) + "\n" for point in points.values())
                atomic_write(log, text)
            advance(1)
    return [points[at] for at in wanted]


def _ask(recipe: TrainRecipe, directions: Directions, at: tuple[float, float], bench: Bench, place: Path) -> Point:
    from training.evaluation.directions import write_point  # needs torch

    work = place / "point"
    shutil.rmtree(work, ignore_errors=True)
    model = write_point(directions, *at, work / "model")
    policy = parse_model(checkpoint_table(model, _point_model(recipe)), "the analysis")
    evaluate(bench, policy, work / "run", place, work, own_problems=True)
    scores = pl.read_parquet(work / "run" / FOLDER / "problems.parquet", glob=False)
    texts = max(int(scores["texts"].sum()), 1)
    formed, rewarded = int(scores["formed"].sum()), int(scores["rewarded"].sum())
    gained = FORMAT * formed + CORRECTNESS * rewarded
    mean = scores["tokens"].mean()
    shutil.rmtree(work)
    return Point(*at, gained / texts, float(mean) if isinstance(mean, float) else 0.0)


def _point_model(recipe: TrainRecipe) -> LiveModel:
    own = recipe.trained
    shared: dict[str, Any] = {name: getattr(own, name) for name in ("prompt", "thinking", "examples")}
    if isinstance(own, TorchModel):
        return TorchModel(kind="torch", model="point", **shared)
    return VllmModel(kind="vllm", model="point", **shared)
