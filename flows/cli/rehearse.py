"""`goldilocks run --rehearse`: runs a recipe on few rows with small models, and reports failures.

Sources, benchmarks, licences, servers and the grader's recipe are checked as named. Open bands let rows reach every
stage; the set is not for training.
"""

from __future__ import annotations

import math
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import tomli_w

from curation.config import LiveModel, Recipe, Source
from curation.config.loading import read_toml, set_value
from curation.config.policies import ModelSettings
from curation.licenses import OTHER
from curation.policies.vllm.placement import visible_gpus
from curation.public_urls import public_url
from curation.records import ConfigError, GoldilocksError
from curation.sources.reading import check_source
from curation.storage.stages import atomic_write
from flows.cli.status import show_status
from flows.pipelines.by_recipe import open_curation, publish_set, run_stages
from flows.run.benches import as_benchmarks
from flows.run.recipe import load_recipe, parse_recipe
from flows.run.run_folder import Run, with_grader
from flows.run.training import load_train_recipe
from flows.stages.sources import SOURCES, check_licenses, require_source

GRADER_FILE = "rehearsal_grader.toml"
"""The grader's recipe in the rehearsal's folder."""

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

PLACEHOLDER = "your-"


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """What would fail, and the set's folder, if any."""

    folder: Path
    failures: tuple[str, ...]
    curated: Path | None


def rehearse(path: Path, share: float, overrides: Sequence[str] = (), out: Path | None = None) -> Rehearsal:
    """Run a recipe on a share of its rows with small policies.

    Args:
        share: of each source, above 0 and at most 1.

    Raises:
        ConfigError: recipe or share is invalid, or no source can be read.
    """
    if not 0 < share <= 1:
        raise ConfigError(f"--rehearse {share}: give a share of the rows above 0 and at most 1, as in 0.01.")
    recipe, home = load_recipe(path, overrides), path.parent.absolute()
    folder = (out or Path("runs") / f"{recipe.name}-rehearsal").absolute()
    failures = list[str]()
    sources = [small for one in recipe.read_sources if (small := _small_source(one, share, home, failures)) is not None]
    if not sources:
        raise ConfigError(f"{path}: no source can be read, so there is nothing to rehearse: {' '.join(failures)}")
    table = _small_recipe(recipe, sources, _readable_benchmarks(recipe, home, failures), folder)
    for name in dict.fromkeys(recipe.asked.values()):
        failures += _policy_failures(f"models.{name}", recipe.models[name])
    _tried(failures, "grader", partial(_check_grader, recipe, home))
    run = Run(folder, with_grader(parse_recipe(table, f"rehearsal of {path}"), folder), home)
    if recipe.grader is not None:
        folder.mkdir(parents=True, exist_ok=True)
        atomic_write(folder / GRADER_FILE, tomli_w.dumps(_small_grader()))
    curated = _tried(failures, "the pipeline", partial(_curated, run))
    if curated is not None:
        _tried(failures, "licences", lambda: check_licenses(recipe, SOURCES.folder_in(run)))
    return Rehearsal(folder, tuple(failures), curated)


def _curated(run: Run) -> Path:
    with open_curation(run):
        curated = publish_set(run, run_stages(run))
    show_status(run.folder)
    return curated


def rehearsal_lines(rehearsal: Rehearsal, share: float) -> list[str]:
    """Return the result of a rehearsal, a failure per line."""
    count = len(rehearsal.failures)
    what = "nothing that it tries would fail" if not count else f"{count} thing{'s' if count > 1 else ''} would fail"
    return [
        f"\nrehearsed on {100 * share:g} % of the rows in {rehearsal.folder}, with the small model, whose answers (and "
        f"warnings about them) say nothing of yours: {what}",
        *(f"  would fail: {failure}" for failure in rehearsal.failures),
    ]


def _tried(failures: list[str], name: str, work: Callable[[], Any]) -> Any:
    """Return the result, or note the failure and return None."""
    try:
        return work()
    except GoldilocksError as error:
        failures.append(f"{name}: {error}")
        return None


def _holds(failures: list[str], name: str, check: Callable[[], object]) -> bool:
    before = len(failures)
    _tried(failures, name, check)
    return len(failures) == before


def _small_source(source: Source, share: float, home: Path, failures: list[str]) -> Source | None:
    """Return a share of the source, or note that it is unreadable."""
    shared = _share_of(source, share)
    try:
        require_source(shared, home)
        return shared
    except GoldilocksError as error:
        if "holds no rows" not in str(error):
            failures.append(str(error))
            return None
    few = source.model_copy(update={"quota": FEW})
    return few if _holds(failures, "rows", partial(require_source, few, home)) else None


def _share_of(source: Source, share: float) -> Source:
    limit = None if source.limit is None else math.ceil(source.limit * share)
    if source.kind == "kattis":
        return source.model_copy(update={"limit": limit or FEW})
    quota = source.quota
    scaled = math.ceil(quota * share) if isinstance(quota, int) else share * (quota or 1.0)
    return source.model_copy(update={"quota": scaled, "limit": limit})


def _readable_benchmarks(recipe: Recipe, home: Path, failures: list[str]) -> dict[str, list[Any]]:
    """Return the benchmarks and benches that can be read; note the others."""
    settings = recipe.decontamination
    against = [
        benchmark.model_dump(exclude_none=True)
        for benchmark in settings.against
        if _holds(failures, f"benchmark {benchmark.name}", partial(check_source, benchmark, home))
    ]
    return {"against": against, "benches": [name for name in settings.benches if _is_readable(name, home, failures)]}


def _is_readable(bench: str, home: Path, failures: list[str]) -> bool:
    named = _tried(failures, "decontamination.benches", partial(as_benchmarks, bench, home)) or []
    checked = [
        _holds(failures, f"benchmark {benchmark.name}", partial(check_source, benchmark, place))
        for benchmark, place in named
    ]
    return bool(checked) and all(checked)


def _policy_failures(name: str, policy: ModelSettings) -> Iterator[str]:
    if not isinstance(policy, LiveModel):
        return
    for key in ("model", "revision"):
        if str(getattr(policy, key, None) or "").startswith(PLACEHOLDER):
            yield f"{name}.{key} = {getattr(policy, key)!r} is a placeholder; set the model that answers."
    if policy.kind == "vllm" and not visible_gpus():
        yield f"{name}: kind `vllm` wants a GPU, and none is to be seen on this machine."
    for url in getattr(policy, "urls", ()):
        place = urlsplit(url)
        port = place.port or (443 if place.scheme == "https" else 80)
        try:
            socket.create_connection((place.hostname or "", port), timeout=3).close()
        except OSError as error:
            yield f"{name}: nobody listens at {public_url(url)} ({error}); start the server, or name another in `urls`."


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
    recipe: Recipe, sources: Sequence[Source], benchmarks: dict[str, list[Any]], folder: Path
) -> dict[str, Any]:
    left_out = {"left_out", "costs", "schedule", "refresh", "storage"}
    table = recipe.model_dump(exclude_none=True, exclude=left_out)
    table["name"] = f"{recipe.name}-rehearsal"
    table["sources"] = [source.model_dump(exclude_none=True) for source in sources]
    table["decontamination"] |= benchmarks
    table["models"] = {SMALL: SMALL_POLICY}
    table["export"] |= {"license": OTHER}
    for stage in ("stage1", "stage2"):
        if stage in table:
            table[stage] = {"model": SMALL, "band": OPEN_BAND, "sampling": {"early_stopping": False}}
    for key in recipe.asked:
        *path, last = key.split(".")
        reduce(dict.__getitem__, path, table)[last] = SMALL
    if recipe.grader is not None:
        table["grader"] = {"recipe": str(folder / GRADER_FILE), "band": OPEN_BAND}
    return table


def _small_grader() -> dict[str, Any]:
    table = read_toml(DEMO_GRADER, f"recipe {DEMO_GRADER}")
    for change in SMALL_GRADER:
        set_value(table, change)
    return table
