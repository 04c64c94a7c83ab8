"""`goldilocks run --rehearse`: runs a recipe on few rows with small models, and reports failures.

Sources, benchmarks, licences, models and the grader's recipe are checked as named. Open bands let rows reach every
stage; the set is not for training.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import tomli_w

from curation.config import Recipe, Source
from curation.config.loading import read_toml, set_value
from curation.licenses import OTHER
from curation.records import ConfigError, GoldilocksError
from curation.sources.reading import check_source
from curation.storage.stages import atomic_write
from flows.cli.status import show_status
from flows.pipelines.by_recipe import open_curation, publish_set, run_stages
from flows.run.benches import as_benchmarks
from flows.run.policies import check_models
from flows.run.recipe import load_recipe, parse_recipe
from flows.run.run_folder import Run, with_grader
from flows.run.terminal import echo
from flows.run.training import load_train_recipe
from flows.stages.sources import SOURCES, check_licenses, require_source

DEMO_GRADER = Path(__file__).parents[1] / "recipes" / "train_demo_grader.toml"

FEW = 16
"""Rows of a source too small for the share."""

SMALL_POLICY: dict[str, Any] = {
    "kind": "torch",
    "model": "embedded",
    "prompt": "plain",
    "decoding": {"temperature": 1.0, "max_tokens": 112},
}
OPEN_BAND = {"attempts": 2, "min_correct": 0, "max_pass_rate": 1.0, "min_judged": 1, "wrong_label_share": 1.0}
SMALL_GRADER = ["steps=2", "collector.n_async=32", "collector.n_batch=32", "checks=false"]
SMALL = "small"
"""The small model's name."""


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What would fail, and the set's folder, if any."""

    folder: Path
    failures: tuple[str, ...]
    curated: Path | None


@contextmanager
def _noting(failures: list[str], name: str = "") -> Iterator[None]:
    """Note an error of the block under this name."""
    try:
        yield
    except GoldilocksError as error:
        failures.append(f"{name}: {error}" if name else str(error))


def rehearse(path: Path, share: float, overrides: Sequence[str] = (), out: Path | None = None) -> Rehearsal:
    """Run a recipe on a share of its rows with small policies.

    Args:
        share: of each source, above 0 and at most 1.

    Raises:
        ConfigError: recipe or share is invalid, or no source can be read.
    """
    if not 0 < share <= 1:
        raise ConfigError(f"--rehearse {share}: give a share of the rows above 0 and at most 1, as in 0.01.")
    recipe, home, failures = load_recipe(path, overrides), path.parent.absolute(), list[str]()
    folder = (out or Path("runs") / f"{recipe.name}-rehearsal").absolute()
    sources, against, benches = list[Source](), list[Source](), list[str]()
    for source in recipe.read_sources:
        with _noting(failures):
            sources.append(_small_source(source, share, home))
    if not sources:
        raise ConfigError(f"{path}: no source can be read, so there is nothing to rehearse: {' '.join(failures)}")
    for benchmark in recipe.decontamination.against:
        with _noting(failures, f"benchmark {benchmark.name}"):
            check_source(benchmark, home)
            against.append(benchmark)
    for name in recipe.decontamination.benches:
        with _noting(failures, "decontamination.benches"):
            for benchmark, place in as_benchmarks(name, home):
                check_source(benchmark, place)
            benches.append(name)
    for name in dict.fromkeys(recipe.asked.values()):
        with _noting(failures):
            check_models(Run(folder, recipe, home), [name])
    with _noting(failures, "grader"):
        _check_grader(recipe, home)
    grader = folder / "rehearsal_grader.toml"
    table = _small_recipe(recipe, sources, {"against": tuple(against), "benches": tuple(benches)}, grader)
    run = Run(folder, with_grader(parse_recipe(table, f"rehearsal of {path}"), folder), home)
    if recipe.grader is not None:
        trainer = read_toml(DEMO_GRADER, f"recipe {DEMO_GRADER}")
        for change in SMALL_GRADER:
            set_value(trainer, change)
        folder.mkdir(parents=True, exist_ok=True)
        atomic_write(grader, tomli_w.dumps(trainer))
    curated: Path | None = None
    with _noting(failures, "the pipeline"):
        with open_curation(run):
            curated = publish_set(run, run_stages(run))
        show_status(run.folder)
    if curated is not None:
        with _noting(failures, "licences"):
            check_licenses(recipe, SOURCES.folder_in(run))
    return Rehearsal(folder, tuple(failures), curated)


def show_rehearsal(path: Path, share: float, overrides: Sequence[str], out: Path | None) -> int:
    """Rehearse a recipe, print a failure per line, and return the exit status."""
    rehearsal = rehearse(path, share, overrides, out)
    count = len(rehearsal.failures)
    what = "nothing failed" if not count else f"{count} {'thing' if count == 1 else 'things'} failed"
    echo(
        f"\nrehearsed on {100 * share:g} % of the rows in {rehearsal.folder}, with a small model in place of yours "
        f"(ignore warnings about its answers): {what}"
    )
    for failure in rehearsal.failures:
        echo(f"  would fail: {failure}")
    return int(count > 0)


def _small_source(source: Source, share: float, home: Path) -> Source:
    """Return a share of the source, or `FEW` rows of a small one, after reading its first rows."""
    quota, limit = source.quota, None if source.limit is None else math.ceil(source.limit * share)
    scaled = math.ceil(quota * share) if isinstance(quota, int) else share * (quota or 1.0)
    changes = {"limit": limit or FEW} if source.kind == "kattis" else {"quota": scaled, "limit": limit}
    small = source.model_copy(update=changes)
    try:
        require_source(small, home)
    except GoldilocksError as error:
        if "holds no rows" not in str(error):
            raise
        small = source.model_copy(update={"quota": FEW})
        require_source(small, home)
    return small


def _check_grader(recipe: Recipe, home: Path) -> None:
    if recipe.grader is None:
        return
    path = home / recipe.grader.recipe
    settings = load_train_recipe(path)
    named = settings.trained.model
    folder = path.parent / Path(named).expanduser()
    if named != "embedded" and not folder.is_dir():
        raise ConfigError(
            f"{path}: models.{settings.model}.model = {named!r}: there is no folder {folder}; fetch the model into it."
        )


def _small_recipe(
    recipe: Recipe, sources: Sequence[Source], benchmarks: dict[str, tuple[Any, ...]], grader: Path
) -> dict[str, Any]:
    small = recipe.model_copy(
        update={"sources": tuple(sources), "decontamination": recipe.decontamination.model_copy(update=benchmarks)}
    )
    table = small.model_dump(exclude_none=True, exclude={"left_out", "costs", "schedule", "refresh", "storage"})
    table["name"] = f"{recipe.name}-rehearsal"
    table["models"] = {SMALL: SMALL_POLICY}
    table["export"] |= {"license": OTHER}
    for stage in ("stage1", "stage2"):
        if stage in table:
            table[stage] = {"model": SMALL, "band": OPEN_BAND, "sampling": {"early_stopping": False}}
    for key in recipe.asked:
        *path, last = key.split(".")
        reduce(dict.__getitem__, path, table)[last] = SMALL
    if recipe.grader is not None:
        table["grader"] = {"recipe": str(grader), "band": OPEN_BAND}
    return table
