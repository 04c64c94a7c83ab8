"""Find a problem of a run by the beginning of its id."""

from __future__ import annotations

import polars as pl

from curation.records import StoreError
from flows.pipelines.by_recipe import pipeline_of
from flows.run.lookup import rows_of
from flows.run.run_folder import Run
from flows.run.stage import Kind, Stage


def filters_of(run: Run) -> list[Stage]:
    """Return the filter stages of a run, the sources first."""
    return [stage for stage in pipeline_of(run.recipe).stages_of(run) if stage.kind is Kind.FILTER]


def _additions(run: Run) -> list[Stage]:
    return [stage for stage in pipeline_of(run.recipe).stages_of(run) if stage.kind is Kind.ADDITION]


def find_id(run: Run, beginning: str) -> str:
    """Return the one id of the run that begins so; a problem that is attempted under other ids, or translated, is found
    by these too.

    Raises:
        StoreError: none does, or several do.
    """
    filters = filters_of(run)
    ids = _matching(run, filters[0], beginning, "id")
    if not ids and len(originals := _matching(run, filters[-1], beginning, "group")) == 1:
        return originals.pop()
    if not ids:
        ids = set().union(*(_matching(run, stage, beginning, "group") for stage in _additions(run)))
    if not ids:
        raise StoreError(f"{run.folder} holds no problem whose id begins with {beginning!r}; ids stand in curated/.")
    if len(ids) > 1:
        examples = ", ".join(sorted(ids)[:5])
        raise StoreError(f"{beginning!r} begins {len(ids)} ids: {examples}{' …' if len(ids) > 5 else ''}; give more.")
    return ids.pop()


def attempt_ids_of(run: Run, name: str) -> list[str]:
    """Return the ids under which a problem is attempted: those of its rows after the last filter, else its own."""
    ids = rows_of(filters_of(run)[-1].folder_in(run), "kept", name, "group")
    return ids["id"].to_list() if ids.height else [name]


def _matching(run: Run, stage: Stage, beginning: str, column: str) -> set[str]:
    """Return the distinct values of a column, over the rows that a stage keeps and whose id begins so."""
    values: set[str] = set()
    for file in sorted((stage.folder_in(run) / "kept").glob("*.parquet")):
        rows = pl.scan_parquet(file, glob=False).filter(pl.col("id").str.starts_with(beginning)).select(column)
        values.update(rows.collect()[column])
    return values
