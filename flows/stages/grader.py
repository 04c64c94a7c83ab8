"""Train the grader on what stage 1 keeps, as a model for stage 2.

It is retrained only if survivors or training recipe change; a killed training resumes.

Invariants: no Prefect here, and no torch until a model is trained.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from curation.config.difficulty import GraderSettings
from curation.records import ConfigError
from curation.storage.stages import atomic_write, file_digest, read_table, write_parquet
from flows.run.offline import refuse_offline
from flows.run.policy_session import kept_models
from flows.run.run_folder import Run, grader_folder
from flows.run.stage import MATH, Results, StageResult, Step
from flows.run.training import check_train_recipe, train_apart

_TRAINS = "the grader is to be trained on what stage 1 keeps now"


def check_grader(run: Run) -> None:
    """Check the grader's training recipe, if any.

    Raises:
        ConfigError: it is missing or invalid, or its engine cannot use it.
    """
    if run.recipe.grader is not None:
        check_train_recipe(_recipe(run, run.recipe.grader), _changes(run))


def train_grader(run: Run, decided: StageResult) -> Path:
    """Train the recipe's grader on a stage's kept problems; return the model's folder.

    Raises:
        ConfigError: there is no grader, training recipe or problem.
    """
    settings = run.recipe.grader
    if settings is None:
        raise ConfigError(f"recipe {run.recipe.name} names no grader; add a [grader] table.")
    recipe = _recipe(run, settings)
    if not decided.manifest.kept:
        raise ConfigError(f"{decided.name} kept no problem, so there is nothing to train the grader on.")
    folder = grader_folder(run.folder)
    made_from = {"problems": decided.manifest.digest, "recipe": file_digest(recipe)}
    _clear_if_changed(folder, made_from)
    model = folder / "training" / "model"
    if (folder / "DONE").exists():
        return model
    refuse_offline(_TRAINS)
    data = folder / "set" / "data"
    data.mkdir(parents=True, exist_ok=True)
    write_parquet(data / "problems.parquet", read_table(decided.folder, "kept"))
    if (folder / "training" / "run.json").exists():
        train_apart(None, folder / "training", resume=True)
    else:
        train_apart(recipe, folder / "training", _changes(run))
    atomic_write(folder / "DONE", "")
    return model


def _recipe(run: Run, settings: GraderSettings) -> Path:
    path = run.recipe_folder / settings.recipe
    if not path.is_file():
        raise ConfigError(f"grader.recipe: there is no file {path}; name a training recipe.")
    return path


def _changes(run: Run) -> list[str]:
    problems = json.dumps(str((grader_folder(run.folder) / "set").absolute()))
    return [f'data={{ kind = "curated", folders = [{problems}] }}']


def _clear_if_changed(folder: Path, made_from: Mapping[str, object]) -> None:
    path = folder / "made_from.json"
    text = json.dumps(made_from, indent=1) + "\n"
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return
    refuse_offline(_TRAINS)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    atomic_write(path, text)


def _work(run: Run, results: Results) -> None:
    if (models := kept_models()) is not None:
        models.end_local()  # the trainer needs the GPUs
    train_grader(run, results.decisions[-1])


GRADER = Step(
    name="train the grader",
    work=_work,
    domains=MATH,
    enabled=lambda run: run.recipe.grader is not None,
    check=check_grader,
)
