"""RECEIPT.md: the receipt on one page, a table a section. The same receipt gives the same bytes."""

from __future__ import annotations

from curation.publish.pages import Block, Section, Table
from curation.publish.pages import page as build_page
from curation.publish.receipts.figures import FILE, Figure, Needs, Receipt

SECTIONS = {
    "worth": ("What Curation Was Worth", "The set against equally many random rows of its sources, a model on each."),
    "labels": ("Wrong Labels Left", "The share of the published references that are wrong."),
    "planted": (
        "Planted Defects Found",
        "Known defects were planted in copies of the run's own rows, and this recipe's filters ran on them. The figure "
        "is the share that was dropped for any reason; the counts show the reasons.",
    ),
    "precision": ("Right When It Drops", "Of the labelled rows that a rule drops, the share dropped rightly."),
    "tests": ("What the Tests Tell Apart", "Solutions of the set's problems whose label the source gives."),
    "licences": ("Licences", "Problems by source and licence."),
    "digests": ("Digests", "Judging the stored attempts again gives the same digests."),
}
"""Heading and one sentence of each section, in the order of the page."""

MEASURED = ("worth", "planted", "labels", "tests")
"""The sections that hold what was measured on the set itself."""

_AGAIN = {
    Needs.SET: "the set",
    Needs.PACKAGE: "Goldilocks",
    Needs.RUN: "the run's folder",
    Needs.TRAINING: "training anew",
}


def page(receipt: Receipt) -> str:
    """Return the text of RECEIPT.md."""
    sections = [
        Section(heading, [sentence, *_blocks([figure for figure in receipt.figures if figure.section == section])])
        for section, (heading, sentence) in SECTIONS.items()
        if any(figure.section == section for figure in receipt.figures)
    ]
    files = (
        f"`{FILE}` holds the SHA-256 of {len(receipt.files):,} files and the digests of {len(receipt.columns):,} "
        f"columns of `data/`. Its own digest is `{receipt.digest}`: it shows an edit, it is no signature."
    )
    opening = (
        f"Version {receipt.version} of {receipt.made_on}: {receipt.rows:,} problems, judged by `{receipt.verifier}`, "
        f"curated by Goldilocks {receipt.goldilocks}. `{FILE}` holds the same figures for programs. `goldilocks "
        "verify-receipt DIR` computes again what the last column allows, and prints what differs. Intervals are 95 %."
    )
    return build_page(f"Receipt of {_cell(receipt.name)}", [opening, *sections, Section("Files", [files])])


def _blocks(figures: list[Figure]) -> list[Block]:
    rows = []
    for figure in figures:
        of = "" if figure.n is None else f"{figure.n:,}"
        again = f"`{figure.measure}`" if figure.value is None and figure.measure else _AGAIN[figure.needs]
        text = f"`{figure.text}`" if figure.section == "digests" and figure.value is not None else _cell(figure.text)
        counts = f": {_cell(figure.counted)}" if figure.counts else ""
        rows.append((_cell(figure.title), f"{text}{counts}", of, again))
    notes = dict.fromkeys(f"{figure.how[:1].upper()}{figure.how[1:]}." for figure in figures)
    return [Table(("", "figure", "of", "computed again from"), rows, "llrl"), "\n".join(notes)]


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
