"""Find a run's problem by the beginning of its id."""

from __future__ import annotations

import polars as pl

from curation.records import StoreError
from flows.pipelines.by_recipe import pipeline_of
from flows.run.lookup import rows_of
from flows.run.run_folder import Run
from flows.run.stage import Kind, Stage


def filters_of(run: Run) -> list[Stage]:
    """Return a run's filter stages, the sources first."""
    return [stage for stage in pipeline_of(run.recipe).stages_of(run) if stage.kind is Kind.FILTER]


def find_id(run: Run, beginning: str) -> str:
    """Return the run's one id with this beginning; variants' and translations' ids find the original.

    Raises:
        StoreError: no id matches, or several do.
    """
    filters, stages = filters_of(run), pipeline_of(run.recipe).stages_of(run)
    ids = _matching(run, filters[0], beginning, "id")
    if not ids and len(originals := _matching(run, filters[-1], beginning, "group")) == 1:
        return originals.pop()
    if not ids:
        additions = (stage for stage in stages if stage.kind is Kind.ADDITION)
        ids = set().union(*(_matching(run, stage, beginning, "group") for stage in additions))
    if not ids:
        raise StoreError(f"{run.folder} holds no problem whose id begins with {beginning!r}; ids stand in curated/.")
    if len(ids) > 1:
        examples = ", ".join(sorted(ids)[:5])
        raise StoreError(f"{beginning!r} begins {len(ids)} ids: {examples}{' …' if len(ids) > 5 else ''}; give more.")
    return ids.pop()


def attempt_ids_of(run: Run, name: str) -> list[str]:
    """Return the ids of a problem's variants after the last filter, else its own."""
    ids = rows_of(filters_of(run)[-1].folder_in(run), "kept", name, "group")
    return ids["id"].to_list() if ids.height else [name]


def _matching(run: Run, stage: Stage, beginning: str, column: str) -> set[str]:
    values: set[str] = set()
    for file in sorted((stage.folder_in(run) / "kept").glob("*.parquet")):
        rows = pl.scan_parquet(file, glob=False).filter(pl.col("id").str.starts_with(beginning)).select(column)
        values.update(rows.collect()[column])
    return values
