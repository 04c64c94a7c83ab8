"""Reports what the code demo caught."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
from rich.console import Console

from curation.storage.stages import read_table
from flows.demo.report import CAUGHT, KEEP, MISSED, show_counts

HERE = Path(__file__).parent
RECIPE = HERE.parent.parent / "recipes" / "demo_code.toml"


def planted_rows(run: Path, planted: Path) -> pl.DataFrame:
    """Return each planted row's kind, expected outcome, `CAUGHT` or `MISSED`, and what was missed."""
    sources = read_table(run / "stages" / "01-sources", "kept", ["id", "row"])
    decisions = read_table(run / "stages" / "10-tests", "decisions")
    power = {row["problem"]: row for row in read_table(run / "stages" / "10-tests", "power").iter_rows(named=True)}
    dropped = pl.read_parquet(run / "curated" / "dropped" / "*.parquet").select("row", "reason")
    kept = pl.read_parquet(run / "curated" / "data" / "*.parquet")["row"].to_list()
    outcomes = dict(dropped.iter_rows()) | dict.fromkeys(kept, KEEP)  # kept if any language variant is
    names = {row: name for name, row in sources.iter_rows()}
    rows = []
    for fault in map(json.loads, planted.read_text("utf-8").splitlines()):
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


def show(run: Path, console: Console) -> None:
    """Print the report of a finished run."""
    rows = planted_rows(run, HERE / "planted.jsonl")
    show_counts(rows, console)
    for line in rows.filter(pl.col("state") == MISSED)["line"]:
        console.print(f"  {line}", markup=False, highlight=False)
