"""What a set's own files say: digests of files and columns, and who gave how many rows under which licence."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from curation.publish.receipts.figures import FILE, PAGE, Figure, Needs

LEFT_OUT = (FILE, PAGE, ".published.json")
"""Files that name the receipt's digest or size, or are the receipt."""

_ROWS = 10_000


def file_digests(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file of a set by its path, the receipt itself and the mark of publication left out."""
    digests = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder).as_posix()
        if name not in LEFT_OUT and not path.name.startswith(".aside-"):
            with path.open("rb") as file:
                digests[name] = hashlib.file_digest(file, "sha256").hexdigest()
    return digests


def column_digests(files: Sequence[Path]) -> tuple[int, dict[str, str]]:
    """Return the number of rows of parquet files, and the digest of each column over all their rows, in order."""
    rows, hashes = 0, dict[str, Any]()
    for path in files:
        frame = pl.read_parquet(path, glob=False)
        rows += frame.height
        for name in frame.columns:
            digest = hashes.setdefault(name, hashlib.blake2b(digest_size=16))
            for part in frame.select(pl.col(name).alias("v")).iter_slices(_ROWS):
                digest.update(part.write_ndjson().encode())
    return rows, {name: digest.hexdigest() for name, digest in hashes.items()}


def licence_figures(ledger: Mapping[str, Sequence[tuple[str, int, int, int]]], card: str) -> list[Figure]:
    """Return the ledger of licences, a figure for each source and licence.

    Args:
        ledger: by source, (licence, problems, of which the text was changed, merged copies).
        card: the licence that the card names.
    """
    how = (
        "rows of data/train-*.parquet by source and license, and the copies in also_from; "
        "ATTRIBUTION.md says where each source is published"
    )
    figures = [Figure("licences.card", "The card's licence", card, None, None, "the header of README.md", Needs.SET)]
    for source in sorted(ledger):
        for license, problems, changed, merged in ledger[source]:
            name, title = f"licences.{source}.{license}", f"{source}, {license}"
            counts = {"changed texts": changed, "merged copies": merged}
            figures.append(Figure(name, title, problems, None, None, how, Needs.SET, counts=counts))
    return figures
