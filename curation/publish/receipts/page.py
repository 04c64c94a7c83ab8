"""RECEIPT.md: the receipt on one page, a table a section. The same receipt gives the same bytes."""

from __future__ import annotations

from curation.publish.receipts.figures import FILE, Figure, Needs, Receipt

SECTIONS = {
    "worth": ("What Curation Was Worth", "The set against equally many random rows of its sources, a model on each."),
    "labels": ("Wrong Labels Left", "The share of the published references that are wrong."),
    "planted": (
        "Planted Defects Found",
        "Known defects were planted in copies of the run's own rows, and this recipe's own filters ran on them. The "
        "share that left; a row that left for another reason than the planted one left too, and is told apart.",
    ),
    "precision": ("Right When It Drops", "Of the labelled rows that a rule drops, the share dropped rightly."),
    "tests": ("What the Tests Tell Apart", "Of the problems in the set, solutions whose label the source gives."),
    "licences": ("Licences", "Who gave the rows, under which licence."),
    "digests": ("Digests", "What must come out again when the stored attempts are judged again."),
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
    lines = [
        f"# Receipt of {_cell(receipt.name)}",
        "",
        f"Version {receipt.version} of {receipt.made_on}: {receipt.rows:,} problems, judged by `{receipt.verifier}`, "
        f"curated by Goldilocks {receipt.goldilocks}. `{FILE}` says the same to programs, and how each figure was "
        "computed. `goldilocks verify receipt DIR` computes again what the last column allows, and says what differs. "
        "Intervals hold 95 %.",
        "",
    ]
    for section, (heading, sentence) in SECTIONS.items():
        own = [figure for figure in receipt.figures if figure.section == section]
        if own:
            lines += [f"## {heading}", "", sentence, "", *_table(own), ""]
    lines += [
        "## Files",
        "",
        f"`{FILE}` holds the SHA-256 of {len(receipt.files):,} files and the digests of {len(receipt.columns):,} "
        f"columns of `data/`. Its own digest is `{receipt.digest}`: it shows an edit, it is no signature.",
        "",
    ]
    return "\n".join(lines)


def _table(figures: list[Figure]) -> list[str]:
    lines = ["| | figure | of | computed again from |", "|---|---|---:|---|"]
    for figure in figures:
        of = "" if figure.n is None else f"{figure.n:,}"
        again = f"`{figure.measure}`" if figure.value is None and figure.measure else _AGAIN[figure.needs]
        text = f"`{figure.text}`" if figure.section == "digests" and figure.value is not None else _cell(figure.text)
        parts = f": {_cell(figure.counted)}" if figure.counts else ""
        lines.append(f"| {_cell(figure.title)} | {text}{parts} | {of} | {again} |")
    notes = list(dict.fromkeys(figure.how for figure in figures))
    return [*lines, "", *(f"{note[:1].upper()}{note[1:]}." for note in notes)]


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
