"""Reports what the code demo caught."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from rich.console import Console
from rich.table import Table

from curation.storage.stages import read_table
from flows.demo.report import KEEP

HERE = Path(__file__).parent
RECIPE = HERE.parent.parent / "recipes" / "demo_code.toml"


@dataclass(frozen=True, slots=True)
class FaultReport:
    """A planted row, its outcome, and what should have happened."""

    planted: dict[str, Any]
    fate: str
    missed: tuple[str, ...]


def fault_reports(run: Path, planted: Path) -> list[FaultReport]:
    """Return planted rows' outcomes in a finished run."""
    sources = read_table(run / "stages" / "01-sources", "kept", ["id", "row"])
    decisions = read_table(run / "stages" / "10-tests", "decisions")
    power = {row["problem"]: row for row in read_table(run / "stages" / "10-tests", "power").iter_rows(named=True)}
    outcomes = _outcomes(run / "curated")
    names = {row: name for name, row in sources.iter_rows()}
    rows = []
    for line in planted.read_text("utf-8").splitlines():
        fault = json.loads(line)
        name, outcome = names[fault["row"]], outcomes.get(fault["row"], "lost")
        own = decisions.filter(pl.col("problem") == name)
        missed = [] if outcome == fault["expected"] else [f"expected {fault['expected']}"]
        for kind, decision in (("corrected", "correct"), ("discarded", "discard")):
            changed_tests = own.filter(pl.col("decision") == decision)["test"].to_list()
            if fault["expected"] == KEEP and changed_tests != fault[kind]:
                missed.append(f"tests {kind}: {changed_tests}, not {fault[kind]}")
        power_row = power.get(name)
        if fault["made"] and (power_row is None or not power_row["made"]):
            missed.append("no test was made")
        if fault["caught"] and (power_row is None or power_row["caught"] <= power_row["caught_given"]):
            missed.append("no further wrong program was caught")
        rows.append(FaultReport(fault, outcome, tuple(missed)))
    return rows


def _outcomes(curated: Path) -> dict[int, str]:
    """Return drop reasons by row, or `KEEP` if any language variant is in the set."""
    dropped = pl.read_parquet(curated / "dropped" / "*.parquet").select("row", "reason")
    kept = pl.read_parquet(curated / "data" / "*.parquet")["row"].to_list()
    return dict(dropped.iter_rows()) | dict.fromkeys(kept, KEEP)


def show(rows: list[FaultReport], console: Console) -> None:
    """Print the report."""
    table = Table(title="Planted and caught", title_justify="left", box=None, pad_edge=False)
    for name in ("kind", "expected"):
        table.add_column(name, no_wrap=True)
    for name in ("planted", "as expected"):
        table.add_column(name, justify="right")
    for kind, expected in dict.fromkeys((report.planted["kind"], report.planted["expected"]) for report in rows):
        same_kind = [
            report for report in rows if (report.planted["kind"], report.planted["expected"]) == (kind, expected)
        ]
        met = sum(not report.missed for report in same_kind)
        table.add_row(kind, expected, str(len(same_kind)), str(met), style=None if met == len(same_kind) else "yellow")
    met = sum(not report.missed for report in rows)
    table.add_row("all", "", str(len(rows)), str(met), style="bold")
    console.print(table)
    for report in rows:
        if report.missed:
            name, words = report.planted["name"], "; ".join(report.missed)
            console.print(f"  {name}: {report.fate}; {words}", markup=False, highlight=False)
