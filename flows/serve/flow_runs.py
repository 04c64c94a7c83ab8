"""Names flow runs, shares the GPUs, and emits events that start the next flow.

Invariants: a version is announced once (`goldilocks.curated`), also after a kill. Only locks limit runs, as they end
with their holder, unlike Prefect's limits.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from prefect import get_run_logger
from prefect.events import emit_event
from prefect.runtime import deployment, flow_run

from curation.records import GoldilocksError
from curation.storage.locks import is_locked, lock_folder, lock_holder
from curation.storage.stages import atomic_write
from flows.pipelines.by_recipe import open_curation
from flows.publish.versions import Version, latest, published_rows, stored_versions, summary
from flows.run.recipe import load_recipe
from flows.run.run_folder import Run, new_run, open_run, stage_model
from flows.serve.unfinished import ANNOUNCED, FIRST, announced_version, checkpoint

CURATED, CHECKPOINT, EXHAUSTED = "goldilocks.curated", "goldilocks.checkpoint", "goldilocks.exhausted"
"""Events: a set's new version, a new model, a refresh with too few rows."""

EXHAUSTED_SHARE = 0.5  # share of its first version's rows below which a set is exhausted

RETRIES, RETRY_S = 2, 30
PATIENT = 40  # retries of a refresh, while a run holds the folder


def run_name() -> str:
    """Return the flow run's name and version."""
    given: dict[str, Any] = flow_run.get_parameters()
    try:
        folder, path = given.get("folder"), given.get("recipe")
        if folder is not None:
            return version_name(open_run(Path(folder)).recipe.name, Path(folder))
        name = load_recipe(Path(str(path)), given.get("overrides") or []).name
        return version_name(name, Path(given.get("out") or Path("runs") / name))
    except GoldilocksError as error:  # the flow itself reports it
        return str(error).partition("\n")[0][:80]


def version_name(name: str, folder: Path) -> str:
    """Return a set's name and version, as in ``my-math v3``."""
    return f"{name} v{newest_number(folder)}"


def newest_number(folder: Path) -> int:
    """Return the number of a set's newest version, or 0."""
    newest = latest(folder)
    return newest.number if newest is not None else 0


@contextmanager
def curation_run(recipe: Path, out: Path | None, overrides: list[str] | None) -> Iterator[Run | None]:
    """Open a run within the block; None if a deployment's folder is in use."""
    run = new_run(recipe, overrides or [], out)
    if deployment.id is not None and is_locked(run.folder):
        get_run_logger().info("passed over: %s is in use by another run", run.folder)
        yield None
        return
    with open_curation(run):
        if not (run.folder / ANNOUNCED).exists():
            for mark in (FIRST, ANNOUNCED):
                atomic_write(run.folder / mark, f"{newest_number(run.folder)}\n")
        uses_gpus = any(stage_model(run.recipe, part).kind == "vllm" for part in run.parts)
        with gpus(run) if uses_gpus else nullcontext():
            yield run
        newest = latest(run.folder)
        # also what an earlier run published and was killed before it announced; a refresh announces its own
        if newest is not None and newest.origin == "run" and announce_version(run, newest):
            get_run_logger().info(summary(newest))


def gpus(run: Run) -> AbstractContextManager[int]:
    """Hold a GPU slot, waiting if needed."""
    return gpu_slot(run.recipe.schedule.gpus, get_run_logger().info)


def announce_version(run: Run, version: Version) -> bool:
    """Emit a version's event once; return whether emitted now."""
    if announced_version(run.folder) >= version.number:
        return False
    payload = {"folder": str(run.folder), "version": version.number, "made_on": version.made_on}
    emit_event(event=CURATED, resource=resource("set", run.recipe.name), payload=payload)
    atomic_write(run.folder / ANNOUNCED, f"{version.number}\n")
    return True


def announce_exhausted(run: Run, version: int, rows: int | None = None) -> None:
    """Emit an event if few rows are left in the band.

    Args:
        rows: by default the version's.
    """
    first = published_rows(run.folder, stored_versions(run.folder)[0].number)
    now = published_rows(run.folder, version) if rows is None else rows
    if now >= EXHAUSTED_SHARE * first:
        return
    payload = {"folder": str(run.folder), "version": version, "rows": now, "first_rows": first}
    emit_event(event=EXHAUSTED, resource=resource("set", run.recipe.name), payload=payload)
    get_run_logger().warning("the set is exhausted: %d rows are in the band, %d were at first", now, first)


def announce_checkpoint(folder: Path, version: int) -> None:
    """Emit the event of a trained model."""
    payload = {**checkpoint(folder, version), "version": version}
    emit_event(event=CHECKPOINT, resource=resource("checkpoint", open_run(folder).recipe.name), payload=payload)


def resource(kind: str, name: str) -> dict[str, str]:
    """Return the resource of an event."""
    return {"prefect.resource.id": f"goldilocks.{kind}.{name}", "prefect.resource.name": name}


POLL_S = 1.0  # seconds between attempts to get a slot


@contextmanager
def gpu_slot(slots: int, notify: Callable[[str], None]) -> Iterator[int]:
    """Wait for a slot, hold it within the block, and yield its number.

    Args:
        slots: max runs on GPUs.
        notify: called once with the holders, before waiting.
    """
    folders = [slots_folder() / f"slot-{number}" for number in range(slots)]
    if all(map(is_locked, folders)):
        holders = ", ".join(map(lock_holder, folders))
        notify(f"waits for the GPUs: all {slots} slots are held, by processes {holders}")
    with ExitStack() as stack:
        with lock_folder(slots_folder(), patience_s=math.inf):  # one run at a time looks for a slot
            while all(is_held := [is_locked(folder) for folder in folders]):
                time.sleep(POLL_S)
            number = is_held.index(False)
            stack.enter_context(lock_folder(folders[number], patience_s=POLL_S))
        yield number


def slots_folder() -> Path:
    """Return the folder of the slots."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "goldilocks" / "gpus"
