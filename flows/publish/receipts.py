"""Write and update a published set's receipt.

Invariants: the same run gives the same bytes; the receipt is written last, as it has all other files' digests.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib.metadata import version as package_version
from pathlib import Path
from typing import Any

import polars as pl

from curation.publish import cards, receipts, review
from curation.publish.export_formats.writing import card_license
from curation.publish.receipts import Figure, Receipt
from curation.records import SourceError
from curation.storage.stages import atomic_write, file_digest
from flows.publish import receipt_figures
from flows.publish.audits import FILE as AUDIT
from flows.publish.receipt_figures import Digests
from flows.publish.versions import Version
from flows.run.run_folder import Run, verdicts_of_people
from flows.run.stage import Results

FOLDER, PLANTED, COUNTERFACTUAL = "receipt", "planted.json", "counterfactual.json"

OF_FILES = frozenset({"licences"})
"""Sections of figures that a set's own files give."""

_LEDGER = ["source", "license", "raw_statement", "raw_answer", "also_from"]


def make_receipt(
    run: Run,
    results: Results,
    version: Version,
    folder: Path,
    digests: Digests | None = None,
    planted: Iterable[Figure] | None = None,
) -> Receipt:
    """Return the receipt of a run's newest version.

    Args:
        folder: of the otherwise complete set.
        digests, planted: recomputed; by default the stored ones.
    """
    found = planted_figures(run, results) if planted is None else list(planted)
    apart = [*counterfactual_figures(run, version), *found]
    digests = digests or receipt_figures.stored_digests(run, results, version)
    figures = receipt_figures.figures_of(run, results, version, digests, apart)
    verifier = results.decisions[-1].folder.name
    base = Receipt(
        run.recipe.name,
        version.number,
        version.made_on,
        package_version("goldilocks-rl"),
        verifier,
        0,
        tuple(figures),
    )
    return with_contents(base, folder)


def with_contents(receipt: Receipt, folder: Path) -> Receipt:
    """Return a receipt with rows, digests and licences of a set's folder."""
    files = sorted((folder / "data").glob("train-*.parquet"))
    rows, columns = receipts.column_digests(files)
    tables = (pl.scan_parquet(file, glob=False).select(_LEDGER) for file in files)
    ledger = receipts.licence_figures(cards.license_counts(*tables), card_license(folder))
    others = [figure for figure in receipt.figures if figure.section not in OF_FILES]
    place = next((at for at, figure in enumerate(others) if figure.section == "digests"), len(others))
    figures = (*others[:place], *ledger, *others[place:])
    return replace(receipt, rows=rows, columns=columns, files=receipts.file_digests(folder), figures=figures)


def write_receipt(receipt: Receipt, folder: Path) -> None:
    """Write receipt.json and RECEIPT.md into the set's folder."""
    atomic_write(folder / receipts.FILE, receipt.as_json())
    atomic_write(folder / receipts.PAGE, receipts.page(receipt))


def differing_files(folder: Path) -> list[str]:
    """Return the paths of files that differ from the receipt.

    Raises:
        SourceError: it has no receipt.
    """
    receipt, _ = receipts.read_receipt(folder)
    here = receipts.file_digests(folder)
    return sorted(name for name in {*receipt.files, *here} if receipt.files.get(name) != here.get(name))


def renew_contents(folder: Path) -> None:
    """Update a changed set's receipt, if any; its run's figures stay."""
    if (folder / receipts.FILE).is_file():
        receipt, _ = receipts.read_receipt(folder)
        write_receipt(with_contents(receipt, folder), folder)


def made_from(run: Run, results: Results) -> str:
    """Return the hash of a receipt's inputs that are not the set's."""
    contents = [
        *(_digest(run.folder / name) for name in (AUDIT, f"{FOLDER}/{PLANTED}", f"{FOLDER}/{COUNTERFACTUAL}")),
        review.digest(verdicts_of_people(run)),
        receipt_figures.VERSION,
        receipt_figures.made_from(run, results),
    ]
    return hashlib.blake2b(json.dumps(contents).encode(), digest_size=8).hexdigest()


def planted_figures(run: Run, results: Results) -> list[Figure]:
    """Return figures on planted defects, unless recipe or rows have changed."""
    kept = _kept(run.folder, PLANTED)
    if kept is None or kept["made_from"] != receipt_figures.made_from(run, results):
        return []
    return [receipts.as_figure(row) for row in kept["figures"]]


def counterfactual_figures(run: Run, version: Version) -> list[Figure]:
    """Return the figures of an ablation; titles name an earlier version."""
    kept = _kept(run.folder, COUNTERFACTUAL)
    if kept is None:
        return []
    figures = [receipts.as_figure(row) for row in kept["figures"]]
    if kept["decisions"] == version.digest:
        return figures
    return [replace(figure, title=f"{figure.title} (of version {kept['version']})") for figure in figures]


def keep_figures(folder: Path, name: str, figures: Iterable[Figure], **about: object) -> None:
    """Store separately measured figures with their inputs in a run's folder."""
    table = {**about, "figures": [receipts.as_row(figure) for figure in figures]}
    atomic_write(folder / FOLDER / name, json.dumps(table, indent=1, ensure_ascii=False) + "\n")


def _kept(folder: Path, name: str) -> Mapping[str, Any] | None:
    path = folder / FOLDER / name
    try:
        table: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(table["figures"], list):
            raise TypeError("figures")
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise SourceError(f"{path} is damaged ({error}); remove it, and measure it again.") from error
    return table


def _digest(path: Path) -> str:
    return file_digest(path) if path.is_file() else ""
