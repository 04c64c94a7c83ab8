"""Read the rows that `goldilocks review --audit` drew, from DIR/audit.json.

Rejected problems and corrected references count as wrong labels.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from curation.publish.audit import AuditStratum
from curation.publish.review import ReviewVerdicts
from curation.records import StoreError

FILE = "audit.json"


@dataclass(frozen=True, slots=True)
class Audit:
    """A draw; ``rows`` are statements and references as drawn."""

    size: int
    version: int | None
    strata: tuple[AuditStratum, ...]
    rows: dict[str, tuple[str, str]]

    def wrong_labels(self, verdicts: ReviewVerdicts) -> dict[str, bool]:
        """Return whether each drawn row with a verdict had a wrong label."""
        return {
            name: (answer := verdicts[name].answer) is None or answer != reference
            for name, (_, reference) in self.rows.items()
            if name in verdicts
        }


def read_audit(folder: Path) -> Audit | None:
    """Return the draw in a run's folder, or None.

    Raises:
        StoreError: it is damaged.
    """
    path = folder / FILE
    try:
        return as_audit(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{path} is damaged ({error}); remove it, and the rows are drawn again.") from error


def as_audit(table: dict[str, Any]) -> Audit:
    """Return a table's draw."""
    strata = tuple(AuditStratum(stratum["size"], tuple(stratum["drawn"])) for stratum in table["strata"])
    rows = {name: (row["statement"], row["reference"]) for name, row in table["rows"].items()}
    return Audit(table["size"], table["version"], strata, rows)
