"""Compares planted defects with a run's decisions.

``decisions`` has each source row's outcome:

    source, row   the source's name, and the position in it
    statement     the original text
    stage         where it was decided
    reason        a DropReason; null if kept
    rewritten     whether statement or answer were rewritten

Rows are matched by (source, row), since texts may be shared or missing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
from rich.console import Console
from rich.table import Table

from curation.records import DropReason

KEEP, REWRITTEN = "keep", "rewritten"
"""Expected outcomes other than a DropReason."""

COLUMNS = ("source", "row", "statement", "stage", "reason", "rewritten")

LATE = frozenset(
    {
        DropReason.TOO_FEW_ATTEMPTS,
        DropReason.SUSPECTED_WRONG_LABEL,
        DropReason.NEVER_SOLVED,
        DropReason.TOO_EASY,
        DropReason.OVER_QUOTA,
    }
)
"""Reasons of difficulty or quota, not of a bad row."""

NOT_FOUND = "not in the run"


@dataclass(frozen=True, slots=True)
class RowOutcome:
    """A row's outcome; ``reason`` is a DropReason, `NOT_FOUND`, or None if kept."""

    source: str
    row: int
    statement: str
    reason: str | None
    rewritten: bool = False

    def __str__(self) -> str:
        text = " ".join(self.statement.split()) or "(no statement)"
        end = self.reason or ("rewritten and kept" if self.rewritten else "kept")
        return f"{self.source}:{self.row} {text[:70] + '…' if len(text) > 70 else text} → {end}"

    @property
    def is_good(self) -> bool:
        """Return whether the row is good, whatever its difficulty."""
        return self.reason is None or self.reason in LATE

    def meets(self, expected: str) -> bool:
        """Return whether a planted row ended as expected."""
        if expected == KEEP:
            return self.reason is None
        if expected == REWRITTEN:
            return self.rewritten and self.is_good
        return self.reason == expected

    def is_caught_otherwise(self, expected: str) -> bool:
        """Return whether another rule dropped the row, for its defect or for difficulty, as planted."""
        if expected in (KEEP, REWRITTEN) or self.reason in (None, NOT_FOUND, expected):
            return False
        return not self.is_good or expected in LATE


@dataclass(frozen=True, slots=True)
class CaughtRow:
    """A kind of planted row; ``planted == caught + len(otherwise) + len(missed)``.

    A bad row that only difficulty stages dropped is missed: without recorded attempts it ends there anyway.
    """

    kind: str
    expected: str
    planted: int
    caught: int
    otherwise: tuple[RowOutcome, ...] = ()
    missed: tuple[RowOutcome, ...] = ()


@dataclass(frozen=True, slots=True)
class LabelScore:
    """Suspected wrong labels; shares are None for 0/0."""

    planted: int
    suspected: int
    right: int
    false: tuple[RowOutcome, ...] = field(default=())

    @property
    def recall(self) -> float | None:
        """Return the suspected share of planted wrong labels."""
        return self.right / self.planted if self.planted else None

    @property
    def precision(self) -> float | None:
        """Return the share of right suspicions."""
        return self.right / self.suspected if self.suspected else None


def caught_rows(planted_path: Path, decisions: pl.DataFrame) -> list[CaughtRow]:
    """Return results by kind, in alphabetical order."""
    outcomes = _outcomes(decisions)
    kinds: dict[str, list[tuple[Mapping[str, Any], RowOutcome]]] = {}
    for planted in _read_planted(planted_path):
        place = (planted["source"], planted["row"])
        outcome = outcomes.get(place, RowOutcome(*place, planted["question"] or "", NOT_FOUND))
        kinds.setdefault(planted["kind"], []).append((planted, outcome))
    return [_caught_kind(kind, pairs) for kind, pairs in sorted(kinds.items())]


def _caught_kind(kind: str, pairs: Sequence[tuple[Mapping[str, Any], RowOutcome]]) -> CaughtRow:
    right, otherwise, missed = 0, [], []
    for planted, outcome in pairs:
        expected = planted["expected"]
        if outcome.meets(expected):
            right += 1
        elif outcome.is_caught_otherwise(expected):
            otherwise.append(outcome)
        else:
            missed.append(outcome)
    return CaughtRow(kind, pairs[0][0]["expected"], len(pairs), right, tuple(otherwise), tuple(missed))


def false_alarms(planted_path: Path, decisions: pl.DataFrame) -> list[RowOutcome]:
    """Return rows without a planted defect that were dropped as bad.

    `caught_rows` counts dropped controls as missed.
    """
    planted = {(p["source"], p["row"]) for p in _read_planted(planted_path)}
    return [outcome for place, outcome in _outcomes(decisions).items() if place not in planted and not outcome.is_good]


def wrong_labels(planted_path: Path, decisions: pl.DataFrame) -> LabelScore:
    """Return recall and precision of suspected labels."""
    reason = DropReason.SUSPECTED_WRONG_LABEL
    planted = {(p["source"], p["row"]) for p in _read_planted(planted_path) if p["expected"] == reason}
    suspected = {place: outcome for place, outcome in _outcomes(decisions).items() if outcome.reason == reason}
    false = tuple(outcome for place, outcome in suspected.items() if place not in planted)
    return LabelScore(len(planted), len(suspected), len(suspected) - len(false), false)


def show(planted_path: Path, decisions: pl.DataFrame, console: Console) -> None:
    """Print the report."""
    caught = caught_rows(planted_path, decisions)
    table = Table(title="Planted and caught", title_justify="left", box=None, pad_edge=False)
    for name in ("kind", "expected"):
        table.add_column(name, no_wrap=True)
    for name in ("planted", "caught", "other reason", "missed"):
        table.add_column(name, justify="right")
    for kind in caught:
        counts = (kind.planted, kind.caught, len(kind.otherwise), len(kind.missed))
        style = None if kind.planted == kind.caught else "yellow"
        table.add_row(kind.kind, kind.expected, *(str(count) if count else "·" for count in counts), style=style)
    totals = (
        sum(x) for x in zip(*((o.planted, o.caught, len(o.otherwise), len(o.missed)) for o in caught), strict=True)
    )
    table.add_row("all", "", *(str(total) for total in totals), style="bold")
    console.print(table)
    _print_outcomes(console, "Missed", [fate for kind in caught for fate in kind.missed])
    _print_outcomes(console, "Dropped for another reason", [fate for kind in caught for fate in kind.otherwise])
    _print_outcomes(console, "False alarms (good rows dropped by a format rule)", false_alarms(planted_path, decisions))
    score = wrong_labels(planted_path, decisions)
    console.print(
        f"Wrong labels: {score.right} of {score.planted} planted ones suspected (recall {_share(score.recall)}), "
        f"{score.right} of {score.suspected} suspicions right (precision {_share(score.precision)}).",
        highlight=False,
    )
    _print_outcomes(console, "Wrongly suspected", score.false)


def _print_outcomes(console: Console, title: str, outcomes: Sequence[RowOutcome]) -> None:
    console.print(f"{title}: {len(outcomes) or 'none'}", highlight=False)
    for outcome in outcomes:
        console.print(f"  {outcome}", markup=False, highlight=False)


def _share(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.0%}"


def _read_planted(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").split("\n") if line]


def _outcomes(decisions: pl.DataFrame) -> dict[tuple[str, int], RowOutcome]:
    return {
        (source, row): RowOutcome(source, row, statement or "", reason, bool(rewritten))
        for source, row, statement, _, reason, rewritten in decisions.select(COLUMNS).iter_rows()
    }
