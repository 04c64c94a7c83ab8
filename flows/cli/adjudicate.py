"""What `goldilocks adjudicate` does and prints."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from curation.adjudication import State, evidence
from curation.adjudication.debates import STATES
from flows.cli.as_json import print_json
from flows.pipelines.adjudicate import adjudicate
from flows.run.terminal import SafeConsole

SHOWN = 20
"""Disputes that are printed; all of them are written down."""


def adjudicate_run(folder: Path, overrides: Sequence[str], *, as_json: bool = False) -> None:
    """Have the disputed labels of a run argued and judged, and print what came of it."""
    result = adjudicate(folder, overrides)
    if as_json:
        print_json({"states": dict(result.states), "settled": dict(result.settled), "path": str(result.path)})
        return
    console = SafeConsole()
    judged = result.rows.filter(state=State.JUDGED.value).sort("score", maintain_order=True)
    for row in judged.head(SHOWN).iter_rows(named=True):
        console.print(f"{row['id']}  {evidence(row)}")
    if judged.height > SHOWN:
        console.print(f"… and {judged.height - SHOWN:,} more")
    counts = ", ".join(f"{count:,} {STATES[State(state)]}" for state, count in sorted(result.states.items()))
    console.print(f"{result.rows.height:,} pairs of answers: {counts or 'none'}")
    if result.settled:
        console.print(f"{len(result.settled):,} settled; the next `goldilocks run` into {folder} applies them")
    console.print(f"all of them, with what was said: {result.path}")
