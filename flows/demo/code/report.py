"""The code line on the project's own sample problems: what it caught of what was planted there."""

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
    """One planted row, and what became of it; ``missed`` says what did not happen that should have."""

    planted: dict[str, Any]
    fate: str
    missed: tuple[str, ...]


def fault_reports(run: Path, planted: Path) -> list[FaultReport]:
    """Return what became of every planted row in a finished run."""
    sources = read_table(run / "stages" / "01-sources", "kept", ["id", "row"])
    decisions = read_table(run / "stages" / "10-tests", "decisions")
    power = {row["problem"]: row for row in read_table(run / "stages" / "10-tests", "power").iter_rows(named=True)}
    fates = _fates(run / "curated")
    names = {row: name for name, row in sources.iter_rows()}
    rows = []
    for line in planted.read_text("utf-8").splitlines():
        one = json.loads(line)
        name, fate = names[one["row"]], fates.get(one["row"], "lost")
        own = decisions.filter(pl.col("problem") == name)
        missed = [] if fate == one["expected"] else [f"expected {one['expected']}"]
        for kind, decision in (("corrected", "correct"), ("discarded", "discard")):
            seen = own.filter(pl.col("decision") == decision)["test"].to_list()
            if one["expected"] == KEEP and seen != one[kind]:
                missed.append(f"tests {kind}: {seen}, not {one[kind]}")
        beside = power.get(name)
        if one["made"] and (beside is None or not beside["made"]):
            missed.append("no test was made")
        if one["caught"] and (beside is None or beside["caught"] <= beside["caught_given"]):
            missed.append("no further wrong program was caught")
        rows.append(FaultReport(one, fate, tuple(missed)))
    return rows


def _fates(curated: Path) -> dict[int, str]:
    """Return row → the reason it was dropped for, or keep where at least one twin is in the set."""
    dropped = pl.read_parquet(curated / "dropped" / "*.parquet").select("row", "reason")
    kept = pl.read_parquet(curated / "data" / "*.parquet")["row"].to_list()
    return dict(dropped.iter_rows()) | dict.fromkeys(kept, KEEP)


def show(rows: list[FaultReport], console: Console) -> None:
    """Print how many of each kind met their fate, and every one that did not."""
    table = Table(title="Planted and caught", title_justify="left", box=None, pad_edge=False)
    for name in ("kind", "expected"):
        table.add_column(name, no_wrap=True)
    for name in ("planted", "as expected"):
        table.add_column(name, justify="right")
    for kind, expected in dict.fromkeys((one.planted["kind"], one.planted["expected"]) for one in rows):
        own = [one for one in rows if (one.planted["kind"], one.planted["expected"]) == (kind, expected)]
        met = sum(not one.missed for one in own)
        table.add_row(kind, expected, str(len(own)), str(met), style=None if met == len(own) else "yellow")
    met = sum(not one.missed for one in rows)
    table.add_row("all", "", str(len(rows)), str(met), style="bold")
    console.print(table)
    for one in rows:
        if one.missed:
            name, words = one.planted["name"], "; ".join(one.missed)
            console.print(f"  {name}: {one.fate}; {words}", markup=False, highlight=False)
