"""`goldilocks publish DIR --receipt` and `goldilocks verify receipt`."""

from __future__ import annotations

from pathlib import Path

import typer

from curation.publish.receipts import MEASURED, PAGE
from flows.cli.as_json import print_json
from flows.pipelines.receipts import measure_receipt, verify_receipt
from flows.run.terminal import echo

SHOWN = 40
"""Differences that are printed; `--json` has all."""


def write(folder: Path, ablation: Path | None) -> None:
    """Measure what publishing leaves out, write it into the receipt, and print its figures."""
    receipt = measure_receipt(folder, ablation)
    for figure in (figure for figure in receipt.figures if figure.section in MEASURED):
        of = "" if figure.n is None else f" of {figure.n:,}"
        counted = f": {figure.counted}" if figure.counts else ""
        what = f"{figure.text}{of}{counted}" if figure.value is not None else f"{figure.text}: {figure.how}"
        echo(f"{figure.name:<32} {what}")
    echo(f"the receipt: {folder / 'curated' / PAGE}")


def verify(place: Path, *, quick: bool, as_json: bool) -> None:
    """Print what differs between a receipt and what comes out, and end with status 1 where anything does."""
    found = verify_receipt(place, quick=quick)
    if as_json:
        table = {"folder": str(found.folder), "holds": found.holds}
        print_json({**table, "differing": found.differing, "checked": found.checked, "unchecked": found.unchecked})
    else:
        for sentence in found.differing[:SHOWN]:
            echo(sentence)
        if len(found.differing) > SHOWN:
            echo(f"… and {len(found.differing) - SHOWN:,} more; --json prints all.")
        echo(f"computed again: {'; '.join(found.checked) or 'nothing'}")
        for text in found.unchecked:
            echo(f"not checked: {text}")
        count = len(found.differing)
        differ = f"{count:,} {'thing differs' if count == 1 else 'things differ'} from the receipt of {found.folder}"
        echo(f"the receipt of {found.folder} holds" if found.holds else differ)
    if not found.holds:
        raise typer.Exit(1)
