"""Prefect flows, the command line and recipes: wiring and nothing else. `run_recipe` is for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

__all__ = ["run_recipe"]


def run_recipe(recipe: str | Path, out: str | Path | None = None, overrides: Sequence[str] = ()) -> Path:
    """Run a recipe from raw rows to a curated set, as `goldilocks run` does; return the folder of the set.

    Args:
        out: the run folder, runs/NAME by default; what is finished there is not made again.
        overrides: changed settings, as ``stage1.band.attempts=8``.

    Raises:
        GoldilocksError: the recipe, an input or a model cannot be used; the message states what to change.
    """
    from flows.pipelines.by_recipe import curate

    return curate(Path(recipe), Path(out) if out is not None else None, overrides)
