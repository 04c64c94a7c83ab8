"""A run and its folder.

- `DIR/run.json`: the recipe, and the base of its paths
- `DIR/stages/01-sources` … `10-export`: tables
- `DIR/attempts/`: the append-only attempt store
- `DIR/verdicts/stage1/<verifier>/`, `DIR/decisions/stage1/<verifier>/`, `DIR/labels/<verifier>/`
- `DIR/curated/`: the curated set
- `DIR/review.jsonl`: people's verdicts; append-only
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from curation.config import DifficultyStage, ModelSettings, Recipe
from curation.config.recipe import GRADER
from curation.publish import review
from curation.records import StoreError
from curation.sources.procedural import made_meta
from curation.storage.stages import atomic_write, damaged, read_json, table_digest
from flows.run.recipe import load_recipe, parse_recipe

PARTS = ("stage1", "stage2")  # names of the difficulty stages, as in recipes


@dataclass(frozen=True, slots=True)
class Run:
    """One recipe in one folder."""

    folder: Path
    recipe: Recipe
    recipe_folder: Path

    @property
    def parts(self) -> tuple[str, ...]:
        """Return the difficulty stages; the last one decides."""
        return PARTS if self.recipe.stage2 is not None else PARTS[:1]

    @property
    def version_folder(self) -> Path | None:
        """Return a refreshed version's own folder, or None."""
        return None

    @property
    def made_sources(self) -> list[str]:
        """Return the names of the procedural sources."""
        return [source.name for source in self.recipe.read_sources if source.is_made]

    def without_reserve(self, problems: pl.DataFrame) -> pl.DataFrame:
        """Return `PROBLEM` rows without the reserve; in a refresh all."""
        has_reserve = any(source.reserve_per_level for source in self.recipe.read_sources)
        if not has_reserve or self.version_folder is not None:
            return problems
        return problems.filter(~made_meta(self.made_sources).struct.field("reserved").fill_null(False))

    def check_owner(self) -> None:
        """Refuse the folder of a recipe with another name."""
        if (self.folder / "run.json").exists():
            owner = _read_run_file(self.folder)[0]["name"]
            if owner != self.recipe.name:
                raise StoreError(
                    f"{self.folder} holds a run of recipe `{owner}`, not `{self.recipe.name}`; give another --out."
                )

    def save(self) -> None:
        """Write run.json."""
        recipe = as_written(self.recipe).model_dump(mode="json")
        table = {"recipe_folder": str(self.recipe_folder), "recipe": recipe, "recipe_hash": table_digest(recipe)}
        atomic_write(self.folder / "run.json", json.dumps(table, indent=1, ensure_ascii=False) + "\n")


def difficulty_stage(recipe: Recipe, part: str) -> DifficultyStage:
    """Return a difficulty stage's settings: no early stopping of recorded attempts, no votes on labels by rule
    `posterior`.
    """
    settings = recipe.stage1 if part == PARTS[0] else recipe.stage2
    assert settings is not None, part
    if recipe.models[settings.model].kind == "recorded":
        sampling = settings.sampling.model_copy(update={"early_stopping": False})
        settings = settings.model_copy(update={"sampling": sampling})
    if recipe.labels.rule != "posterior":
        return settings
    return settings.model_copy(update={"band": settings.band.model_copy(update={"wrong_label_share": 1.0})})


def stage_model(recipe: Recipe, part: str) -> ModelSettings:
    """Return the model that a difficulty stage asks."""
    return recipe.models[difficulty_stage(recipe, part).model]


def verdicts_of_people(run: Run) -> review.ReviewVerdicts:
    """Return people's valid verdicts by problem."""
    return review.read_verdicts(run.folder, run.recipe.labels.reviewers)


def accepted_references(run: Run) -> list[str]:
    """Return the problems whose reference a person accepted."""
    return sorted(name for name, verdict in verdicts_of_people(run).items() if verdict.answer is not None)


def grader_folder(folder: Path) -> Path:
    """Return the folder of a run's grader."""
    return folder / "grader"


def with_grader(recipe: Recipe, folder: Path) -> Recipe:
    """Return the recipe with its grader, if any, as stage 2."""
    if recipe.grader is None:
        return recipe
    first, student = recipe.stage1, recipe.models[recipe.stage1.model]
    trained = {"model": str(grader_folder(folder) / "training" / "model"), "revision": None}
    changed = {key: value for key, value in trained.items() if key in type(student).model_fields}
    models = {**recipe.models, GRADER: student.model_copy(update=changed)}
    second = DifficultyStage(model=GRADER, band=recipe.grader.band, sampling=first.sampling)
    return recipe.model_copy(update={"models": models, "stage2": second})


def as_written(recipe: Recipe) -> Recipe:
    """Return the recipe without its grader's stage 2."""
    if recipe.grader is None:
        return recipe
    models = {name: model for name, model in recipe.models.items() if name != GRADER}
    return recipe.model_copy(update={"models": models, "stage2": None})


def new_run(path: Path, overrides: Sequence[str], out: Path | None) -> Run:
    """Return a recipe's run, by default in ``runs/NAME``."""
    recipe = load_recipe(path, overrides)
    folder = (out or Path("runs") / recipe.name).absolute()
    return Run(folder, with_grader(recipe, folder), path.parent.absolute())


def open_run(folder: Path) -> Run:
    """Return a folder's run; raise `StoreError` if there is none."""
    table, recipe_folder = _read_run_file(folder)
    return Run(folder, with_grader(parse_recipe(table, str(folder / "run.json")), folder), recipe_folder)


def code_folder(run: Run) -> Path:
    """Return the folder of user code, also in a refresh."""
    return run.recipe_folder if run.version_folder is None else _read_run_file(run.folder)[1]


def _read_run_file(folder: Path) -> tuple[dict[str, Any], Path]:
    stored = read_json(folder / "run.json")
    if stored is None:
        raise StoreError(f"{folder} holds no run (no run.json); start one with `goldilocks run RECIPE --out {folder}`.")
    if not stored.keys() >= {"recipe", "recipe_folder"}:
        raise damaged(folder / "run.json", "it names no recipe")
    if stored.get("recipe_hash", digest := table_digest(stored["recipe"])) != digest:
        raise damaged(folder / "run.json", "its recipe is not what was written: the hash differs")
    return stored["recipe"], Path(stored["recipe_folder"])
