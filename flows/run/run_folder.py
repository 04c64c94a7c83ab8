"""A run and its folder: where each stage lies, what a stage hands to the next, and how a stage's shards are driven.

DIR/run.json                        the recipe as run, and the folder that its relative paths refer to
DIR/stages/01-sources … 07-contamination, 08-stage1-attempts, 09-stage2-attempts
DIR/attempts/                       the append-only attempt store
DIR/verdicts/stage1/<verifier>/     apart, by the verifier's version, so that another one can judge again
DIR/decisions/stage1/<verifier>/
DIR/curated/                        the curated set: data card, data/, dropped/, disputed/, plots/
DIR/review.jsonl                    what people said of disputed labels; only ever appended to
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from curation import review
from curation.config import DifficultyStage, Recipe, RecordedPolicy, SecondStage
from curation.records import StoreError
from curation.store import Manifest, Shard, Stage, finished_shards, read_manifest, write_aside
from flows.run.progress import bar
from flows.run.recipe import load_recipe, parse_recipe
from flows.run.runner import runner_of

FOLDERS = {
    "sources": "stages/01-sources",
    "rewriting": "stages/02-rewriting",
    "statements": "stages/02-statements",
    "review": "stages/03-review",
    "references": "stages/04-references",
    "duplicates": "stages/05-duplicates",
    "near_duplicates": "stages/06-near-duplicates",
    "contamination": "stages/07-contamination",
    "premises": "stages/07-premises",
    "stage1.attempts": "stages/08-stage1-attempts",
    "stage2.attempts": "stages/09-stage2-attempts",
    "export": "stages/10-export",
}

TITLES = {
    "sources": "Sources",
    "rewriting": "Rewriting by a model",
    "statements": "Format filter",
    "review": "Review by people",
    "references": "Reference check",
    "duplicates": "Exact duplicates",
    "near_duplicates": "Near duplicates",
    "contamination": "Overlap with benchmarks",
    "premises": "Premises by votes",
    "stage1.attempts": "Stage 1: attempts",
    "stage1.verdicts": "Stage 1: verdicts",
    "stage1.decisions": "Stage 1: difficulty",
    "stage2.attempts": "Stage 2: attempts",
    "stage2.verdicts": "Stage 2: verdicts",
    "stage2.decisions": "Stage 2: difficulty",
    "export": "Curated set",
}

CODE_FOLDERS = {
    "programs": "stages/02-programs",
    "matrix": "stages/08-matrix",
    "generators": "stages/09-generators",
    "tests": "stages/10-tests",
    "twins": "stages/11-twins",
}
"""The code line's own stages, beside those that it shares with the math line."""

CODE_TITLES = {
    "programs": "Format filter",
    "matrix": "Solutions on tests",
    "generators": "Generators asked for",
    "tests": "Tests by agreement",
    "twins": "Languages asked for",
}

ALL_TITLES = {**TITLES, **CODE_TITLES}

CODE_FILTERS = (
    "sources",
    "programs",
    "duplicates",
    "near_duplicates",
    "contamination",
    "matrix",
    "generators",
    "tests",
    "twins",
)
"""The code line's stages before any attempt, in order."""

FILTERS = (
    "sources",
    "rewriting",
    "statements",
    "review",
    "references",
    "duplicates",
    "near_duplicates",
    "contamination",
    "premises",
)
"""The stages before any attempt, in order; a run may leave out some (`Run.filters`)."""


@dataclass(frozen=True, slots=True)
class Done:
    """A finished stage: its folder and its numbers. ``reused`` says that nothing had to be computed."""

    name: str
    folder: Path
    manifest: Manifest
    reused: bool = False


@dataclass(frozen=True, slots=True)
class Run:
    """One recipe in one folder."""

    folder: Path
    recipe: Recipe
    recipe_folder: Path

    @property
    def filters(self) -> tuple[str, ...]:
        """The stages before any attempt that this run has, in order; people's verdicts are one once there are any."""
        asked = {
            "review": bool(review.read_verdicts(self.folder)),
            "near_duplicates": self.recipe.near_duplicates.enabled,
            "contamination": bool(self.recipe.contamination.against),
            "rewriting": self.recipe.rewriting.policy is not None,
            "premises": self.recipe.premises.policy is not None,
        }
        if self.recipe.flow == "curate-code":
            asked["generators"] = self.recipe.code.generation.policy is not None
            return tuple(name for name in CODE_FILTERS if asked.get(name, True))
        return tuple(name for name in FILTERS if asked.get(name, True))

    @property
    def stages(self) -> tuple[str, ...]:
        """The difficulty stages of the recipe, in order; the last one decides what is curated."""
        return ("stage1",) if self.recipe.stage2 is None else ("stage1", "stage2")

    def where(self, stage: str, verifier: str = "") -> Path:
        """The folder of a stage; verdicts and decisions have one per verifier."""
        fixed = FOLDERS.get(stage) or CODE_FOLDERS.get(stage)
        if fixed is not None:
            return self.folder / fixed
        part, kind = stage.split(".")
        return self.folder / kind / part / verifier

    def check_owner(self) -> None:
        """Refuse a folder that belongs to another recipe."""
        if (self.folder / "run.json").exists():
            held = open_run(self.folder).recipe.name
            if held != self.recipe.name:
                raise StoreError(
                    f"{self.folder} holds a run of recipe `{held}`, not `{self.recipe.name}`; give another --out."
                )

    def save(self) -> None:
        """Write run.json."""
        recipe = as_written(self.recipe).model_dump(mode="json")
        table = {"recipe_folder": str(self.recipe_folder), "recipe": recipe}
        write_aside(self.folder / "run.json", json.dumps(table, indent=1, ensure_ascii=False) + "\n")


def difficulty_stage(recipe: Recipe, part: str) -> DifficultyStage:
    """The recipe's table of a difficulty stage."""
    settings = recipe.stage1 if part == "stage1" else recipe.stage2
    assert settings is not None, part
    return settings


def policy_name(settings: DifficultyStage) -> str:
    """The stage's policy as a recipe names it; a live one's revision is known once it has answered."""
    policy = settings.policy
    return policy.name if isinstance(policy, RecordedPolicy) else policy.model


def grader_folder(folder: Path) -> Path:
    """Where a run's grader is trained and published."""
    return folder / "grader"


def with_grader(recipe: Recipe, folder: Path) -> Recipe:
    """The recipe with stage 2 as its grader makes it: stage 1's policy with the trained model in its place."""
    if recipe.grader is None:
        return recipe
    first = recipe.stage1
    trained = {"model": str(grader_folder(folder) / "training" / "model"), "revision": None}
    changed = {key: value for key, value in trained.items() if key in type(first.policy).model_fields}
    policy = first.policy.model_copy(update=changed)
    second = SecondStage(policy=policy, band=recipe.grader.band, sampling=first.sampling)
    return recipe.model_copy(update={"stage2": second})


def as_written(recipe: Recipe) -> Recipe:
    """The recipe as its author wrote it: without the stage 2 that its grader makes, which names the run's folder."""
    return recipe if recipe.grader is None else recipe.model_copy(update={"stage2": None})


def new_run(path: Path, overrides: Sequence[str], out: Path | None) -> Run:
    """The run of a recipe file; ``runs/NAME`` where no folder is given."""
    recipe = load_recipe(path, overrides)
    folder = (out or Path("runs") / recipe.name).absolute()
    return Run(folder, with_grader(recipe, folder), path.parent.absolute())


def open_run(folder: Path) -> Run:
    """The run that a folder holds."""
    path = folder / "run.json"
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
        recipe, recipe_folder = table["recipe"], Path(table["recipe_folder"])
    except (FileNotFoundError, NotADirectoryError) as error:
        raise StoreError(
            f"{folder} holds no run (no run.json); start one with `goldilocks run RECIPE --out {folder}`."
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{path} is damaged ({error}); run the recipe again.") from error
    return Run(folder, with_grader(parse_recipe(recipe, str(path)), folder), recipe_folder)


def found(run: Run, stage: str, verifier: str = "") -> Done | None:
    """A stage as it lies on disk, whatever made it; None where it is not finished."""
    folder = run.where(stage, verifier)
    manifest = read_manifest(folder)
    return Done(stage, folder, manifest, reused=True) if manifest is not None else None


def drive(
    stage: Stage,
    shards: Iterable[tuple[int, Callable[[], Shard]]],
    *,
    total: int | None,
    rows_in: int | None = None,
) -> Done:
    """Bring a stage to its manifest: finished shards are passed over, the others computed and written in order.

    Args:
        shards: (rows, work) per shard. ``work`` is called only where the shard is not finished.
        total: rows for the progress bar.
        rows_in: rows that must go in, checked when the stage closes.
    """
    manifest = stage.manifest()
    if manifest is not None:
        return Done(stage.name, stage.folder, manifest, reused=True)
    stage.prepare()
    count = 0
    rows_of: dict[int, int] = {}
    with bar(ALL_TITLES.get(stage.name, stage.name), total) as advance:

        def lacking() -> Iterator[tuple[int, Callable[[], Shard]]]:
            nonlocal count
            for index, (rows, work) in enumerate(shards):
                count = index + 1
                if stage.finished(index):
                    advance(rows)
                else:
                    rows_of[index] = rows
                    yield index, work

        for index, shard in runner_of(stage.name).map(lacking()):
            stage.write(index, shard)
            advance(rows_of.pop(index))
    return Done(stage.name, stage.folder, stage.close(count, rows_in))


def shard_counts(folder: Path, table: str = "kept") -> list[int]:
    """Rows of each shard of a finished stage's table."""
    return [mark["tables"][table]["rows"] for mark in finished_shards(folder)]


def inputs(*done: Done, **more: str) -> Mapping[str, str]:
    """What a stage was made from, for its fingerprint."""
    return {**{stage.name: stage.manifest.digest for stage in done}, **more}
