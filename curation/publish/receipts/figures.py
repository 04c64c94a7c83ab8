"""What a receipt holds: figures with intervals and how each was computed, and digests; and how it is in a file.

Invariants: the same figures give the same bytes; no path of a machine and no day but the version's is in it; a
figure that was not measured says so and names the command that measures it. ``digest`` is over all the rest: it shows
that someone edited the file, not who wrote it.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from curation.records import SourceError

FILE, PAGE = "receipt.json", "RECEIPT.md"

SCHEMA = "goldilocks-receipt@1"

_Z95 = 1.959963984540054


class Needs(StrEnum):
    """What it takes to compute a figure again."""

    SET = "set"  # the set's own files
    PACKAGE = "package"  # this version of Goldilocks alone
    RUN = "run"  # the folder of its run
    TRAINING = "training"  # models trained anew


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure. ``value`` is None where it was not measured; then ``measure`` is the command that does.

    Args:
        name: dotted; what stands before the first dot is its section.
        n: what it rests on: rows, verdicts, solutions.
        how: in a sentence or two, how it was computed.
        counts: what it is made of, by name.

    Example: ``Figure("planted.proof", "Proofs", 0.98, (0.9, 1.0), 50, "planted in 50 rows …", Needs.RUN)``
    """

    name: str
    title: str
    value: float | int | str | None
    interval: tuple[float, float] | None
    n: int | None
    how: str
    needs: Needs
    measure: str | None = None
    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def section(self) -> str:
        """Return the section that it stands in."""
        return self.name.partition(".")[0]

    @property
    def text(self) -> str:
        """Return value and interval as the page prints them."""
        if self.value is None:
            return "not measured" if self.measure else "–"
        if isinstance(self.value, float):
            low_high = "" if self.interval is None else f" ({self.interval[0]:.3f} to {self.interval[1]:.3f})"
            return f"{self.value:.3f}{low_high}"
        return f"{self.value:,}" if isinstance(self.value, int) else self.value

    @property
    def counted(self) -> str:
        """Return what it is made of, in words."""
        return ", ".join(f"{name.replace('_', ' ')} {count:,}" for name, count in self.counts.items())


@dataclass(frozen=True, slots=True)
class Receipt:
    """The receipt of one version of a set.

    Args:
        files: SHA-256 of each file of the set, by its path; the receipt itself and the mark of publication left out.
        columns: digest of each column of ``data/train-*.parquet``, in the order of the rows.
        rows: of ``data/train-*.parquet``.
    """

    name: str
    version: int
    made_on: str
    goldilocks: str
    verifier: str
    rows: int
    figures: tuple[Figure, ...]
    files: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, str] = field(default_factory=dict)

    def figure(self, name: str) -> Figure | None:
        """Return a figure by its name."""
        return next((figure for figure in self.figures if figure.name == name), None)

    @property
    def digest(self) -> str:
        """Return the SHA-256 of all that is in it."""
        return hashlib.sha256(json.dumps(self._table(), sort_keys=True).encode()).hexdigest()

    def as_json(self) -> str:
        """Return the text of receipt.json."""
        return json.dumps({**self._table(), "digest": self.digest}, indent=1, ensure_ascii=False) + "\n"

    def _table(self) -> dict[str, Any]:
        table = asdict(self)
        return {"schema": SCHEMA, **table, "figures": [as_row(figure) for figure in self.figures]}


def as_row(figure: Figure) -> dict[str, Any]:
    """Return a figure as JSON holds it."""
    return {**asdict(figure), "interval": None if figure.interval is None else list(figure.interval)}


def read_receipt(folder: Path) -> tuple[Receipt, str]:
    """Return the receipt of a set and the digest that is in it, which need not be its own.

    Raises:
        SourceError: there is none, or it cannot be read.
    """
    path = folder / FILE
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
        if table["schema"] != SCHEMA:
            raise SourceError(f"{path}: schema {table['schema']}, this version reads {SCHEMA}.")
        figures = tuple(as_figure(row) for row in table.pop("figures"))
        digest, _ = str(table.pop("digest")), table.pop("schema")
        return Receipt(**table, figures=figures), digest
    except (FileNotFoundError, NotADirectoryError) as error:
        raise SourceError(
            f"{folder}: no {FILE} there; sets have one since they are published with a receipt: `goldilocks run` again."
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SourceError(
            f"{path} is damaged ({error}); `goldilocks publish DIR --receipt` of the run's folder writes it anew."
        ) from error


def as_figure(row: Mapping[str, Any]) -> Figure:
    """Return the figure that `as_row` made a row of."""
    interval = row["interval"]
    pair = None if interval is None else (interval[0], interval[1])
    return Figure(**{**row, "interval": pair, "needs": Needs(row["needs"])})


def share_figure(
    name: str, title: str, hits: int, n: int, how: str, needs: Needs, counts: Mapping[str, int] | None = None
) -> Figure:
    """Return a share with its 95 % Wilson interval; no value where nothing was counted."""
    if not n:
        return Figure(name, title, None, None, 0, how, needs)
    low, high = wilson(hits, n)
    interval = round(low, 4), round(high, 4)
    return Figure(name, title, round(hits / n, 4), interval, n, how, needs, counts=dict(counts or {}))


def wilson(hits: int, n: int) -> tuple[float, float]:
    """Return the 95 % interval of a share (Wilson 1927)."""
    share, z2 = hits / n, _Z95 * _Z95
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = _Z95 / (1 + z2 / n) * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)
