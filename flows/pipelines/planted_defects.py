"""Measure how many planted defects a run's filters and label rule find, without asking models.

Invariants: nothing is written in the run's folder; the same run gives the same figures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import takewhile

import polars as pl

from curation.difficulty.label_trust import check_by_planting
from curation.planting import KINDS, VERSION, PlantedRows, plant_rows
from curation.publish.receipts import Figure, Needs, share_figure
from curation.records import PROBLEM
from curation.storage.scratch import ScratchFolder
from curation.storage.sorted_parts import scan_table
from curation.storage.stages import Shard, read_table
from flows.pipelines.by_recipe import pipeline_of
from flows.run.pipeline import run_stage
from flows.run.run_folder import Run, accepted_references, difficulty_stage
from flows.run.stage import JUDGING_TABLE, SOLUTIONS_TABLE, TESTS_TABLE, Kind, Results, StageResult, StageRun
from flows.stages.decisions import opened_votes, other_references, stored_verdicts
from flows.stages.decontamination import DECONTAMINATION, benchmark_statements
from flows.stages.dedup import NEAR_DEDUP
from flows.stages.sources import SOURCES
from flows.stages.tests import EXECUTION_MATRIX, LANGUAGE_VARIANTS

MOST, SOUND = 100, 2000  # max rows per kind of defect, and max rows without any
SAMPLE = 20_000  # max rows that may get planted defects

_FILTERS = (
    "planted in copies of rows that had passed; the recipe's filters, except stages that ask a model, ran on them and "
    "on rows without a defect; the counts show the stage and reason of each drop"
)
_LABELS = (
    "planted three times in the run's own votes, and searched for with {}; also accused are labels that were not "
    "planted, some of which are wrong"
)
_DROPPED = pl.Schema({"source": pl.String, "row": pl.Int64, "stage": pl.String, "reason": pl.String})


def planted_figures(run: Run, results: Results) -> list[Figure]:
    """Return the recall of each kind of planted defect."""
    code = run.recipe.code.model_copy(update={"make_tests": False})
    recipe = run.recipe.model_copy(update={"questions": {}, "code": code})  # filters that need no model
    figures = list(_row_figures(Run(run.folder, recipe, run.recipe_folder), results))
    return [*figures, _label_figure(run, results)] if run.recipe.flow == "curate-math" else figures


def _label_figure(run: Run, results: Results) -> Figure:
    settings, name, title = run.recipe.labels, "planted.wrong_reference", "Wrong references"
    verdicts, others = (
        stored_verdicts(run, results.decisions[-1].folder.name),
        other_references(results.get(NEAR_DEDUP)),
    )
    band = None if settings.rule == "posterior" else difficulty_stage(run.recipe, run.parts[-1]).band
    with opened_votes(verdicts, others) as (votes, voters):
        accepted = tuple(accepted_references(run))
        check = check_by_planting(votes, voters, settings.drop_above, accepted, run.recipe.seed, band)
    if check is None:
        return share_figure(name, title, 0, 0, "too few problems have votes", Needs.RUN)
    by_posterior = settings.rule != "votes" and check.posterior_holds
    found = check.by_posterior if by_posterior else check.by_votes
    how = _LABELS.format("the answers of all policies" if by_posterior else "the votes of the last stage's policy")
    counts = {"also accused": found.others, "labels in all": check.problems}
    return share_figure(name, title, found.hits, check.planted, how, Needs.RUN, counts)


def _row_figures(run: Run, results: Results) -> Iterator[Figure]:
    math = run.recipe.flow == "curate-math"
    statements = benchmark_statements(run) if DECONTAMINATION.enabled(run) else []
    sample = plant_rows(_passed_rows(results), statements, run.recipe.seed, most=MOST, sound=SOUND, math=math)
    left = _dropped(run, sample.rows, {} if math else _copied_tables(results, sample))
    for name, kind in KINDS.items():
        if kind.math_only and not math:
            continue
        rows = sample.planted.filter(pl.col("kind") == name)
        found = Counter(rows.join(left, on=["source", "row"]).select("stage", "reason").rows())
        ordered = sorted(found.items(), key=lambda item: (item[0][1] not in kind.reasons, -item[1], item[0]))
        reasons, how = {f"{stage}: {reason}": count for (stage, reason), count in ordered}, _FILTERS
        if rows.height:
            reasons["stayed"] = rows.height - found.total()
        else:
            how = "the recipe names no benchmark" if kind.of_benchmark else "no row of the run can carry it"
        yield share_figure(f"planted.{name}", kind.title, found.total(), rows.height, how, Needs.RUN, reasons)


def _passed_rows(results: Results) -> pl.DataFrame:
    """Return up to `SAMPLE` rows that passed all filters, before language variants.

    Ids are digests, so the first in order are random.
    """
    folder = [result for result in results.filters if result.name != LANGUAGE_VARIANTS.name][-1].folder
    table = scan_table(folder, "kept")
    first = table.select("id").bottom_k(SAMPLE, by="id").collect(engine="streaming")["id"]
    rows = table.select(PROBLEM.names()).filter(pl.col("id").is_in(first.implode()))
    return rows.collect(engine="streaming").sort("id")


def _copied_tables(results: Results, sample: PlantedRows) -> dict[str, pl.DataFrame]:
    """Return the programs' tables for the sample's rows, copies included."""
    copies = pl.DataFrame([*sample.copies.items()], schema={"id": pl.String, "problem": pl.String}, orient="row")
    names = pl.concat([sample.rows.select("id", problem="id"), copies]).unique(maintain_order=True)
    tables = {name: read_table(results[SOURCES].folder, name) for name in (TESTS_TABLE, SOLUTIONS_TABLE, JUDGING_TABLE)}
    return {
        name: rows.join(names, on="problem", maintain_order="left").with_columns(problem="id").select(rows.columns)
        for name, rows in tables.items()
    }


def _dropped(run: Run, rows: pl.DataFrame, tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """Return what the filters before the execution matrix drop of other rows, in a temporary folder."""

    def read(job: StageRun) -> StageResult:
        folder = job.open(VERSION, "")
        return job.compute(
            folder, [(rows.height, lambda: Shard(rows.height, {"kept": rows, **tables}))], total=rows.height
        )

    with ScratchFolder("planted") as place:
        planted_run, results = Run(place, run.recipe, run.recipe_folder), Results()
        stages = pipeline_of(run.recipe).before_attempts(planted_run)
        for stage in takewhile(lambda stage: stage.name != EXECUTION_MATRIX.name, stages):
            stage = replace(SOURCES, work=read) if stage.name == SOURCES.name else stage
            results = results.plus(run_stage(stage, planted_run, results))
        filters = (result for result in results if result.stage.kind is Kind.FILTER)
        dropped = [table for result in filters if (table := read_table(result.folder, "dropped")).width]
        return pl.concat([_DROPPED.to_frame(), *(table.select(_DROPPED.names()) for table in dropped)])
