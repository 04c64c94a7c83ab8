"""Train the grader on what stage 1 keeps, as a model for stage 2.

It is retrained only if survivors or training recipe change; a killed training resumes.

Invariants: no Prefect here, and no torch until a model is trained.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from curation.config.difficulty import GraderSettings
from curation.records import ConfigError
from curation.storage.stages import atomic_write, file_digest, read_table, write_parquet
from flows.run.policies import refuse_offline
from flows.run.policy_session import keep_open
from flows.run.run_folder import Run, grader_folder
from flows.run.stage import Results, Step
from flows.run.training import check_train_recipe, train_apart


def check_grader(run: Run) -> None:
    """Check the grader's training recipe, if any.

    Raises:
        ConfigError: it is missing or invalid, or its engine cannot use it.
    """
    if run.recipe.grader is not None:
        check_train_recipe(_recipe(run, run.recipe.grader), _changes(run))


def train_grader(run: Run, results: Results) -> None:
    """Train the recipe's grader on what the last decision keeps.

    Raises:
        ConfigError: the training recipe is missing, or no problem is kept.
    """
    settings, decided = run.recipe.grader, results.decisions[-1]
    assert settings is not None
    with keep_open() as models:
        models.end_local()  # the trainer needs the GPUs
    recipe = _recipe(run, settings)
    if not decided.manifest.kept:
        raise ConfigError(f"{decided.name} kept no problem, so there is nothing to train the grader on.")
    folder = grader_folder(run.folder)
    mark = folder / "made_from.json"
    made_from = json.dumps({"problems": decided.manifest.digest, "recipe": file_digest(recipe)}, indent=1) + "\n"
    is_same = mark.exists() and mark.read_text(encoding="utf-8") == made_from
    if is_same and (folder / "DONE").exists():
        return
    refuse_offline("the grader is to be trained on what stage 1 keeps now")
    if not is_same:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        atomic_write(mark, made_from)
    data = folder / "set" / "data"
    data.mkdir(parents=True, exist_ok=True)
    write_parquet(data / "problems.parquet", read_table(decided.folder, "kept"))
    resumed = (folder / "training" / "run.json").exists()
    train_apart(None if resumed else recipe, folder / "training", [] if resumed else _changes(run), resume=resumed)
    atomic_write(folder / "DONE", "")


def _recipe(run: Run, settings: GraderSettings) -> Path:
    path = run.recipe_folder / settings.recipe
    if not path.is_file():
        raise ConfigError(f"grader.recipe: there is no file {path}; name a training recipe.")
    return path


def _changes(run: Run) -> list[str]:
    problems = json.dumps(str((grader_folder(run.folder) / "set").absolute()))
    return [f'data={{ kind = "curated", folders = [{problems}] }}']


GRADER = Step(
    name="train the grader",
    work=train_grader,
    enabled=lambda run: run.recipe.grader is not None,
    check=check_grader,
)
