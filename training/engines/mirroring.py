"""Claim a run's folder, and mirror it on a thread.

Invariant: a successful run ends with a complete mirror or an error.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Self

from curation.records import StoreError
from curation.storage.mirror import Mirror
from curation.storage.stages import atomic_write
from training.optimisation.checkpoint import whole_checkpoints
from training.recipe import TrainRecipe
from training.rollouts.stall_monitor import STALLED

LOGS = ("run.json", *(f"{name}.jsonl" for name in ("metrics", "batches", "changes")), "summary.json")
MODEL = "model"


class RunMirror:
    """Mirror a training run, if ``url`` is given; leaving the context copies the rest."""

    def __init__(self, url: str | None, name: str, out: Path, say: Callable[[str], None]) -> None:
        self._mirror = None if url is None else Mirror(url, name)
        self._out, self._say = out, say
        self._thread = ThreadPoolExecutor(1, "mirror")
        self._copying: Future[None] | None = None

    def __enter__(self) -> Self:
        if self._mirror is not None:
            self._mirror.claim()
            self.wake()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._thread.shutdown(cancel_futures=True)
        if self._mirror is not None:
            self._copy() if kind is None else self._try()

    def wake(self) -> None:
        """Queue a copy, unless one is queued."""
        if self._mirror is not None and (self._copying is None or self._copying.running() or self._copying.done()):
            self._copying = self._thread.submit(self._try)

    def _try(self) -> None:
        try:
            self._copy()
        except StoreError as error:
            self._say(f"not copied: {error}")

    def _copy(self) -> None:
        assert self._mirror is not None
        self._mirror.copy_logs(self._out, LOGS)
        checkpoints = {folder.name: folder for folder in whole_checkpoints(self._out)}
        if checkpoints:
            self._mirror.copy_folders("checkpoints", checkpoints)
        if (self._out / "summary.json").exists() and (self._out / MODEL).is_dir():
            self._mirror.copy_folders(MODEL, {"last": self._out / MODEL})


def claim_folder(recipe: TrainRecipe, recipe_folder: Path, out: Path, *, resume: bool) -> None:
    """Write ``run.json``; raise StoreError if the folder holds another run."""
    run_file = out / "run.json"
    if run_file.exists():
        try:
            name = json.loads(run_file.read_text(encoding="utf-8"))["recipe"]["name"]
        except (ValueError, KeyError, TypeError) as error:
            raise StoreError(f"{run_file} is damaged ({error}); start the run in another folder") from error
        if name != recipe.name:
            raise StoreError(f"{out} holds a run of recipe `{name}`, not `{recipe.name}`; give another folder")
        if not resume:
            raise StoreError(f"{out} holds a run already; resume it, or give another folder")
    elif resume:
        raise StoreError(f"{out} holds no run to resume (no run.json); start one with its recipe")
    (out / STALLED).unlink(missing_ok=True)
    table = {"recipe_folder": str(recipe_folder.absolute()), "recipe": recipe.model_dump(mode="json")}
    out.mkdir(parents=True, exist_ok=True)
    content = json.dumps({"kind": "training", **table}, indent=1, ensure_ascii=False)
    atomic_write(run_file, content + "\n")
