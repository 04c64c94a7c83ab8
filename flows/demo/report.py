"""Compares planted defects with runs' decisions, for the three parts of the demo."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
from rich.console import Console
from rich.table import Table

from curation.records import DropReason
from curation.storage.stages import read_table
from flows.cli.commands import refresh_run
from flows.run.training import start_from, train
from flows.stages.export import EXPORT

HERE = Path(__file__).parent
RECIPES = HERE.parent / "recipes"

KEEP, REWRITTEN = "keep", "rewritten"
"""Expected outcomes other than a DropReason."""

LATE = [
    DropReason.TOO_FEW_ATTEMPTS,
    DropReason.SUSPECTED_WRONG_LABEL,
    DropReason.NEVER_SOLVED,
    DropReason.TOO_EASY,
    DropReason.OVER_QUOTA,
]
"""Reasons of difficulty or quota, not of a bad row."""

NOT_FOUND = "not in the run"

CAUGHT, OTHER, MISSED, FALSE_ALARM = "caught", "other reason", "missed", "false alarm"


def row_outcomes(curated: Path) -> pl.DataFrame:
    """Return each source row's outcome by the published folder: source, row, statement, stage, reason, rewritten."""
    columns = ["source", "row", "raw_statement", "raw_answer", "statement"]
    rows = pl.read_parquet(curated / "data" / "*.parquet").filter(pl.col("translation_of").is_null())
    kept = rows.select(*columns, pl.lit(EXPORT.name).alias("stage"), pl.lit(None, pl.String).alias("reason"))
    dropped = pl.read_parquet(curated / "dropped" / "*.parquet").select(*columns, "stage", "reason")
    return pl.concat([kept, dropped]).select(
        "source",
        "row",
        pl.coalesce("raw_statement", "statement").alias("statement"),
        "stage",
        "reason",
        pl.any_horizontal(pl.col("raw_statement", "raw_answer").is_not_null()).alias("rewritten"),
    )


def compare(planted: Path, outcomes: pl.DataFrame) -> pl.DataFrame:
    """Return rows with `kind` and `expected` of planted ones, and whether they were `CAUGHT`; null for fine rows.

    Rows are matched by source and row, since texts may be shared or missing. A bad row that only difficulty stages
    dropped is missed: without recorded attempts it ends there anyway.
    """
    marks = pl.read_ndjson(planted, infer_schema_length=None).select("source", "row", "kind", "expected")
    rows = outcomes.join(marks, on=["source", "row"], how="full", coalesce=True).with_columns(
        reason=pl.when(pl.col("stage").is_null()).then(pl.lit(NOT_FOUND)).otherwise("reason"),
        rewritten=pl.col("rewritten").fill_null(False),
    )
    reason, expected = pl.col("reason"), pl.col("expected")
    is_good = reason.is_null() | reason.is_in(LATE)
    is_met = (
        pl.when(expected == KEEP)
        .then(reason.is_null())
        .when(expected == REWRITTEN)
        .then(pl.col("rewritten") & is_good)
        .otherwise(reason.eq_missing(expected))
    )
    is_found = reason.is_not_null() & (reason != NOT_FOUND) & ~expected.is_in([KEEP, REWRITTEN])
    state = (
        pl.when(expected.is_null() & ~is_good)
        .then(pl.lit(FALSE_ALARM))
        .when(expected.is_null())
        .then(pl.lit(None, pl.String))
        .when(is_met)
        .then(pl.lit(CAUGHT))
        .when(is_found & (~is_good | expected.is_in(LATE)))
        .then(pl.lit(OTHER))
        .otherwise(pl.lit(MISSED))
    )
    return rows.with_columns(state=state).sort("source", "row")


def label_score(rows: pl.DataFrame) -> tuple[int, int, int]:
    """Return the number of planted wrong labels, of suspected labels, and of right suspicions."""
    suspicion = DropReason.SUSPECTED_WRONG_LABEL.value
    planted, suspected = (rows.filter(pl.col(name) == suspicion) for name in ("expected", "reason"))
    return planted.height, suspected.height, planted.filter(reason=suspicion).height


def show_counts(rows: pl.DataFrame, console: Console) -> None:
    """Print how many rows of each kind were caught."""
    states = (CAUGHT, OTHER, MISSED)
    counted = (
        rows.drop_nulls("kind")
        .group_by("kind", "expected")
        .agg((pl.col("state") == state).sum().alias(state) for state in states)
    )
    table = Table(title="Planted and caught", title_justify="left", box=None, pad_edge=False)
    for name in ("kind", "expected"):
        table.add_column(name, no_wrap=True)
    for name in ("planted", *states):
        table.add_column(name, justify="right")
    for kind, expected, *counts in counted.sort("kind", "expected").iter_rows():
        style = None if counts[0] == sum(counts) else "yellow"
        table.add_row(kind, expected, *(str(count or "·") for count in (sum(counts), *counts)), style=style)
    totals = counted.select(states).sum().row(0)
    table.add_row("all", "", *map(str, (sum(totals), *totals)), style="bold")
    console.print(table)


def show_math(run: Path, console: Console) -> None:
    """Print what the math demo caught."""
    rows = compare(HERE / "planted.jsonl", row_outcomes(run / "curated"))
    show_counts(rows, console)
    alarms = "False alarms (good rows dropped by a format rule)"
    for title, state in (("Missed", MISSED), ("Dropped for another reason", OTHER), (alarms, FALSE_ALARM)):
        found = rows.filter(pl.col("state") == state)
        console.print(f"{title}: {found.height or 'none'}", highlight=False)
        for row in found.iter_rows(named=True):
            text = " ".join((row["statement"] or "").split()) or "(no statement)"
            end = row["reason"] or ("rewritten and kept" if row["rewritten"] else "kept")
            short = text[:70] + "…" if len(text) > 70 else text
            console.print(f"  {row['source']}:{row['row']} {short} → {end}", markup=False, highlight=False)
    wrong, suspected, right = label_score(rows)
    console.print(
        f"Wrong labels: {right} of {wrong} planted ones suspected, {right} of {suspected} suspicions right.",
        highlight=False,
    )


def planted_rows(run: Path) -> pl.DataFrame:
    """Return each planted row's kind, expected outcome, `CAUGHT` or `MISSED`, and what was missed."""
    sources = read_table(run / "stages" / "01-sources", "kept", ["id", "row"])
    decisions = read_table(run / "stages" / "10-tests", "decisions")
    power = {row["problem"]: row for row in read_table(run / "stages" / "10-tests", "power").iter_rows(named=True)}
    dropped = pl.read_parquet(run / "curated" / "dropped" / "*.parquet").select("row", "reason")
    kept = pl.read_parquet(run / "curated" / "data" / "*.parquet")["row"].to_list()
    outcomes = dict(dropped.iter_rows()) | dict.fromkeys(kept, KEEP)  # kept if any language variant is
    names = {row: name for name, row in sources.iter_rows()}
    rows = []
    for fault in map(json.loads, (HERE / "code" / "planted.jsonl").read_text("utf-8").splitlines()):
        name, outcome = names[fault["row"]], outcomes.get(fault["row"], "lost")
        missed = [] if outcome == fault["expected"] else [f"expected {fault['expected']}"]
        missed += _missed_tests(fault, decisions.filter(pl.col("problem") == name), power.get(name))
        line = f"{fault['name']}: {outcome}; {'; '.join(missed)}"
        rows.append((fault["kind"], fault["expected"], MISSED if missed else CAUGHT, line))
    return pl.DataFrame(rows, schema=["kind", "expected", "state", "line"], orient="row")


def _missed_tests(fault: dict[str, Any], decisions: pl.DataFrame, power: dict[str, Any] | None) -> list[str]:
    missed = []
    for kind, decision in (("corrected", "correct"), ("discarded", "discard")):
        changed = decisions.filter(pl.col("decision") == decision)["test"].to_list()
        if fault["expected"] == KEEP and changed != fault[kind]:
            missed.append(f"tests {kind}: {changed}, not {fault[kind]}")
    if fault["made"] and (power is None or not power["made"]):
        missed.append("no test was made")
    if fault["caught"] and (power is None or power["caught"] <= power["caught_given"]):
        missed.append("no further wrong program was caught")
    return missed


def show_code(run: Path, console: Console) -> None:
    """Print what the code demo caught."""
    rows = planted_rows(run)
    show_counts(rows, console)
    for line in rows.filter(pl.col("state") == MISSED)["line"]:
        console.print(f"  {line}", markup=False, highlight=False)


def show_loop(run: Path, console: Console) -> None:
    """Print the report of the live demo, and refresh its set with a grader that was trained further."""
    print_line = partial(console.print, highlight=False, soft_wrap=True)
    statements = pl.concat(
        pl.read_parquet(run / "curated" / part / "*.parquet", columns=["id", "statement"])
        for part in ("data", "dropped")
    )
    planted = pl.read_ndjson(HERE / "live" / "planted.jsonl")["problem"]
    wrong = set(statements.filter(pl.col("statement").is_in(planted.implode()))["id"])
    print_line("Sampled live: the embedded model, then the grader trained on what it can learn from.")
    for part in ("stage1", "stage2"):
        decided = pl.read_parquet(run / "decisions" / part / "*" / "decisions" / "*.parquet")
        attempts, all_attempts = decided["attempts"].sum(), 16 * decided.height
        print_line(f"  {part}: {attempts:,} of {all_attempts:,} attempts settled {decided.height} problems")
        suspected = set(decided.filter(reason=DropReason.SUSPECTED_WRONG_LABEL.value)["problem"])
        right = len(suspected & wrong)
        found = f"{right} found, {len(suspected) - right} sound ones suspected"
        print_line(f"    {len(wrong)} wrong references planted: {found}")
    print_line("\nA newer checkpoint, and the set refreshed with it:")
    run = run.absolute()
    newer, recipe = run / "newer", RECIPES / "train_demo_grader.toml"
    if not (newer / "model").is_dir():
        data = f'data={{ kind = "curated", folders = [{json.dumps(str(run / "curated"))}] }}'
        model = start_from(recipe, run / "grader" / "training" / "model")
        train(recipe, newer, ["steps=6", "name=train-demo-newer", model, data])
    refresh_run(run, newer / "model", newer / "attempts.jsonl")
