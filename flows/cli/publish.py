"""`goldilocks publish` and `goldilocks verify receipt`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from curation.publish.receipts import MEASURED, PAGE
from curation.records import ConfigError, SourceError
from flows.cli.as_json import print_json
from flows.pipelines.receipts import measure_receipt, verify_receipt
from flows.publish.curated_set import published_folder
from flows.publish.hub import plan_push
from flows.publish.hub import push as push_to_hub
from flows.publish.public_set import lacks_texts, restore, sendable
from flows.run.terminal import SafeConsole, echo

SHOWN_ROWS = 5
SHOWN = 40
"""Differences that are printed; `--json` has all."""


def publish_set(folder: Path, name: str, *, push: bool, public: bool) -> None:
    """Print what a push would send, and push if asked, without rows that fail their proof."""
    console = SafeConsole()
    curated = published_folder(folder)
    is_proved, failing = push and not lacks_texts(curated), dict[str, str]()
    if is_proved:
        from curation.publish.export_formats.writing import failing_rows
        from curation.scoring.checking import check_rows

        failing = failing_rows(curated, check_rows)
    if push and not is_proved:
        console.print("its rows are not proved, since their texts are withheld")
    if failing:
        console.print(f"{len(failing):,} problems are left out, which fail their proof:")
        for row, why in failing.items():
            console.print(f"  {row}: {why}")
    planned = plan_push(sendable(folder, failing), name)
    console.print(f"{planned.folder} → {name}, tag {planned.tag}, licence {planned.license}")
    for path, size in planned.files:
        console.print(f"  {size:>13,} B  {path}")
    total = f"{len(planned.files)} files, {planned.bytes / 1e6:,.1f} MB"
    if not push:
        console.print(
            f"{total}: nothing was sent; --push does it ({'public' if public else 'private'} where it is new)"
        )
        return
    console.print(f"{total}: {push_to_hub(planned, private=not public)}")


def restore_set(folder: Path, home: Path, places: Sequence[str]) -> None:
    """Restore withheld texts, and print how many.

    Args:
        places: sources' paths here, each `NAME=PATH`.

    Raises:
        SourceError: a source's texts have changed.
    """
    given = dict[str, str]()
    for place in places:
        name, _, given[name] = place.partition("=")
        if not (name and given[name]):
            raise ConfigError(f"--source {place}: write NAME=PATH.")
    restored = restore(folder, home, given)
    if restored.missing:
        named = "; ".join(
            f"source {source}: row {', '.join(map(str, rows[:SHOWN_ROWS]))}{' …' if len(rows) > SHOWN_ROWS else ''}"
            for source, rows in restored.missing.items()
        )
        rows = sum(map(len, restored.missing.values()))
        raise SourceError(
            f"{folder}: the texts of {rows:,} rows are not what the set was made from, and stay empty ({named}); all "
            "others are back. Give the sources in the state that ATTRIBUTION.md names."
        )
    echo(f"{restored.texts:,} texts are back in {folder}, each with its digest")


def write_receipt(folder: Path, ablation: Path | None) -> None:
    """Measure what publishing leaves out, and add it to the receipt."""
    receipt = measure_receipt(folder, ablation)
    for figure in (figure for figure in receipt.figures if figure.section in MEASURED):
        of = "" if figure.n is None else f" of {figure.n:,}"
        counted = f": {figure.counted}" if figure.counts else ""
        what = f"{figure.text}{of}{counted}" if figure.value is not None else f"{figure.text}: {figure.how}"
        echo(f"{figure.name:<32} {what}")
    echo(f"the receipt: {folder / 'curated' / PAGE}")


def print_verification(place: Path, *, quick: bool, as_json: bool) -> None:
    """Print differences from a receipt; exit with status 1 if any."""
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
