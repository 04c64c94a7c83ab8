"""Train and evaluate the arms of an ablation, and compare them with its base.

- `DIR/runs/ARM-seed-N`: a training run, resumed if unfinished
- `DIR/evaluations/BENCH/`: its evaluation (`flows.pipelines.evaluate`)
- `DIR/ablation.json`, `report.md`: rewritten after each model
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from curation.config import Bench, LiveModel
from curation.config.loading import load_settings
from curation.records import StoreError
from curation.storage.locks import lock_folder
from curation.storage.stages import atomic_write
from flows.pipelines.evaluate import FOLDER, evaluate
from flows.pipelines.refresh_inputs import checkpoint_table
from flows.run.benches import load_bench
from flows.run.policies import parse_model
from flows.run.progress import print_line
from flows.run.training import load_train_recipe, start_from, train
from training.evaluation.ablations import (
    Ablation,
    Arm,
    ArmResult,
    TrainedArm,
    ablation_lines,
    compare_arms,
)
from training.evaluation.metrics import read_metrics


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
        _claim(folder, ablation)
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


def _claim(folder: Path, ablation: Ablation) -> None:
    """Record the ablation without seeds, as more may be added."""
    mark = folder / "ablation.toml.json"
    content = json.dumps(ablation.model_dump(mode="json", exclude={"seeds", "description"}), indent=1) + "\n"
    if mark.exists() and mark.read_text(encoding="utf-8") != content:
        raise StoreError(f"{folder} holds another ablation, or other settings of it; give another --out.")
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
