"""Find a problem by the beginning of its id, and read what a run's stages did with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from curation.records import ATTEMPT, StoreError
from flows.pipelines.by_recipe import pipeline_of
from flows.pipelines.run_tables import verifier_of
from flows.publish.versions import newest_run, scan_decisions, stored_versions
from flows.run.pipeline import read_result
from flows.run.run_folder import Run, open_run
from flows.run.stage import Kind, Stage, rows_of
from flows.stages.attempts import attempt_store, attempts_of
from flows.stages.questions import VARIANTS, final_verdicts


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


Rows = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Step:
    """A stage's rows of a problem by table, and further lines."""

    stage: Stage
    tables: Mapping[str, Rows]
    lines: tuple[str, ...]

    @property
    def kept(self) -> Rows:
        """Return the rows that the stage kept."""
        return self.tables.get("kept", [])

    @property
    def dropped(self) -> Rows:
        """Return the rows that the stage dropped."""
        return self.tables.get("dropped", [])

    def decision_on(self, problem: str) -> dict[str, Any] | None:
        """Return a difficulty stage's decision on a problem or variant."""
        return next((row for row in self.tables.get("decisions", ()) if row["problem"] == problem), None)


def steps_of(run: Run, name: str, *, verdicts: bool = False) -> list[Step]:
    """Return a problem's way through the stages, in its newest version where the set is made.

    Args:
        verdicts: read these large tables too.
    """
    run, newest = open_run(run.folder), newest_run(run.folder)
    verifier, variants, steps = verifier_of(run), attempt_ids_of(run, name), []
    for stage in pipeline_of(run.recipe).stages_of(run):
        is_late = stage.kind in (Kind.ADDITION, Kind.EXPORT)
        own = newest if is_late else run
        folder, ids = stage.folder_in(own, verifier), variants if is_late or stage.part else [name]
        names: tuple[str, ...] = ("kept", "dropped")
        if stage.kind in (Kind.MEASURE, Kind.DECISION):
            names = ("decisions", "verdicts") if verdicts else ("decisions",)
        tables = {table: [row for one in ids for row in _rows(stage, folder, table, one)] for table in names}
        lines = tuple(line for one in ids for line in stage.explain(own, folder, one))
        steps.append(Step(stage, tables, lines))
    return steps


def _rows(stage: Stage, folder: Path, table: str, name: str) -> Rows:
    if stage.kind in (Kind.MEASURE, Kind.DECISION):
        return rows_of(folder, table, name, "problem").to_dicts()
    if stage.kind is Kind.ADDITION and table == "kept":
        return rows_of(
            folder, table, name, "variant_of" if stage.name == VARIANTS.name else "translation_of"
        ).to_dicts()
    found = rows_of(folder, table, name, "id", "group")
    own = found.filter(pl.col("id") == name) if "id" in found.columns else found
    return (own if own.height else found).to_dicts()


def explain_table(run: Run, name: str) -> dict[str, Any]:
    """Return a problem's rows in each stage."""
    stages = [
        {"name": step.stage.name, **{table: rows for table, rows in step.tables.items() if rows}}
        for step in steps_of(run, name, verdicts=True)
    ]
    return {"problem": name, "recipe": run.recipe.name, "stages": stages}


def judged_attempts(
    run: Run, part: str, verifier: str, problem: str
) -> list[tuple[dict[str, Any], dict[str, Any] | None]]:
    """Return a stage's verdicts on a problem, each with its attempt if it is stored."""
    verdicts = rows_of(final_verdicts(run, part).folder_in(run, verifier), "verdicts", problem, "problem")
    result = read_result(attempts_of(part), run, verifier)
    stored = attempt_store(run, result).read([problem]) if result is not None else pl.DataFrame(schema=ATTEMPT)
    attempts = {row["index"]: row for row in stored.iter_rows(named=True)}
    return [(verdict, attempts.get(verdict["index"])) for verdict in verdicts.iter_rows(named=True)]


def version_rows(run: Run, problems: Sequence[str]) -> Rows:
    """Return each version's decisions on a problem and its variants, oldest first, with the `version`."""
    rows = []
    for version in stored_versions(run.folder):
        decided = scan_decisions(run.folder, version.number).filter(pl.col("problem").is_in(problems)).collect()
        rows += [{"version": version, **row} for row in decided.iter_rows(named=True)]
    return rows
