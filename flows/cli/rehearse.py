"""`goldilocks run --rehearse`: runs a recipe on few rows with small models, and reports failures.

Sources, benchmarks, licences, servers and the grader's recipe are checked as named. Open bands let rows reach every
stage; the set is not for training.
"""

from __future__ import annotations

import json
import math
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from curation.config import LiveModel, Recipe, Source
from curation.config.loading import read_toml, set_value
from curation.config.policies import ModelSettings
from curation.licenses import OTHER
from curation.policies.vllm.placement import visible_gpus
from curation.public_urls import public_url
from curation.records import ConfigError, GoldilocksError
from curation.sources.reading import check_source
from curation.storage.remote import is_url, local_path
from curation.storage.stages import atomic_write
from flows.cli.commands import run_recipe
from flows.run.benches import as_benchmarks
from flows.run.recipe import load_recipe
from flows.run.run_folder import Run, open_run
from flows.run.training import load_train_recipe
from flows.stages.sources import SOURCES, check_licenses, require_source

FILE, GRADER_FILE = "rehearsal.toml", "rehearsal_grader.toml"
"""The recipes in the rehearsal's folder."""

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
    run, failures = Run(folder, recipe, home), list[str]()
    sources = [small for one in recipe.read_sources if (small := _small_source(one, share, home, failures)) is not None]
    if not sources:
        raise ConfigError(f"{path}: no source can be read, so there is nothing to rehearse: {' '.join(failures)}")
    benchmarks = _benchmarks(run, failures)
    for name in dict.fromkeys(recipe.asked.values()):
        failures += _policy_failures(f"models.{name}", recipe.models[name])
    _tried(failures, "grader", partial(_check_grader, recipe, home))
    table = json.loads(json.dumps(_small_recipe(recipe, sources, benchmarks, home)))  # lists, no tuples
    folder.mkdir(parents=True, exist_ok=True)
    secret = list(_take_secrets(table))
    _write(folder / FILE, table)
    _copy_generators(sources, home, folder)
    if recipe.grader is not None:
        _write(folder / GRADER_FILE, _small_grader())
    curated = _tried(failures, "the pipeline", lambda: run_recipe(folder / FILE, secret, folder))
    if curated is not None:
        _tried(failures, "licences", lambda: check_licenses(recipe, SOURCES.folder_in(open_run(folder))))
    return Rehearsal(folder, tuple(failures), curated)


def _copy_generators(sources: Sequence[Source], home: Path, folder: Path) -> None:
    """Copy the user's files next to the recipe, which loads only from its folder."""
    for source in sources:
        if source.kind in ("procedural", "python") and (home / (name := source.path.rpartition(":")[0])).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes((home / name).read_bytes())


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


def _benchmarks(run: Run, failures: list[str]) -> list[dict[str, Any]]:
    """Return readable benchmarks as tables; note the others."""
    settings, home = run.recipe.decontamination, run.recipe_folder
    named = [(benchmark, home) for benchmark in settings.against]
    for name in settings.benches:
        named += _tried(failures, "decontamination.benches", partial(as_benchmarks, name, home)) or []
    tables = []
    for benchmark, place in named:
        if _holds(failures, f"benchmark {benchmark.name}", partial(check_source, benchmark, place)):
            table = benchmark.model_dump(exclude_none=True)
            tables.append({**table, "path": _absolute(benchmark.path, place)})
    return tables


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
    recipe: Recipe, sources: Sequence[Source], benchmarks: Sequence[dict[str, Any]], home: Path
) -> dict[str, Any]:
    left_out = {"left_out", "costs", "schedule", "refresh", "storage"}
    table = recipe.model_dump(exclude_none=True, exclude=left_out)
    table["name"] = f"{recipe.name}-rehearsal"
    table.update(sources=[_source_table(source, home) for source in sources])
    table["decontamination"] |= {"against": list(benchmarks), "benches": []}
    table["models"] = {SMALL: SMALL_POLICY}
    table["export"] |= {"license": OTHER}
    for stage in ("stage1", "stage2"):
        if stage in table:
            table[stage] = {"model": SMALL, "band": OPEN_BAND, "sampling": {"early_stopping": False}}
    if table["decontamination"].pop("embedder", None):  # the small model gives no vectors
        table["decontamination"]["methods"] = list({*recipe.decontamination.methods, "words"} - {"embedding"})
    for key in recipe.asked.keys() - {"decontamination.embedder"}:
        *path, last = key.split(".")
        reduce(dict.__getitem__, path, table)[last] = SMALL
    if recipe.grader is not None:
        table["grader"] = {"recipe": GRADER_FILE, "band": OPEN_BAND}
    return table


def _small_grader() -> dict[str, Any]:
    table = read_toml(DEMO_GRADER, f"recipe {DEMO_GRADER}")
    for change in SMALL_GRADER:
        set_value(table, change)
    return table


def _source_table(source: Source, home: Path) -> dict[str, Any]:
    table = source.model_dump(exclude_none=True)
    table["path"] = _absolute(source.path, home)
    if source.join is not None:
        table["join"]["path"] = _absolute(source.join.path, home)
    return table


def _absolute(path: str, home: Path) -> str:
    """Return an absolute path; hub sets and URLs stay."""
    if is_url(path):
        return path
    place = home / local_path(path)
    is_local = place.exists() or any(letter in path for letter in "*?[") or path.startswith(("~", ".", "/"))
    return str(place) if is_local else path


def _take_secrets(table: Any, key: str = "") -> Iterator[str]:
    """Make URLs public in place; yield settings that restore the secrets."""
    for name, value in list(table.items() if isinstance(table, dict) else enumerate(table)):
        place = f"{key}.{name}".removeprefix(".")
        if isinstance(value, dict | list):
            yield from _take_secrets(value, place)
        elif isinstance(value, str) and (public := public_url(value)) != value:
            table[name] = public
            yield f"{place}={json.dumps(value)}"


def _write(path: Path, table: dict[str, Any]) -> None:
    import tomli_w

    atomic_write(path, tomli_w.dumps(table))
