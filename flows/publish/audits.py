"""Read the rows that `goldilocks review --audit` drew, from DIR/audit.json.

Rejected problems and corrected references count as wrong labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from curation.publish.audit import AuditStratum
from curation.publish.receipts import first_fault
from curation.publish.review import ReviewVerdicts
from curation.records import StoreError

FILE = "audit.json"


@dataclass(frozen=True, slots=True)
class AuditRow:
    """A row's statement and reference as drawn."""

    statement: str
    reference: str


@dataclass(frozen=True, slots=True)
class Audit:
    """A draw."""

    size: int
    version: int | None
    strata: tuple[AuditStratum, ...]
    rows: dict[str, AuditRow]

    def wrong_labels(self, verdicts: ReviewVerdicts) -> dict[str, bool]:
        """Return whether each drawn row with a verdict had a wrong label."""
        return {
            name: (answer := verdicts[name].answer) is None or answer != row.reference
            for name, row in self.rows.items()
            if name in verdicts
        }


def read_audit(folder: Path) -> Audit | None:
    """Return the draw in a run's folder, or None.

    Raises:
        StoreError: it is damaged.
    """
    path = folder / FILE
    try:
        return TypeAdapter(Audit).validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as error:
        why = first_fault(error)
        raise StoreError(f"{path} is damaged ({why}); remove it, and the rows are drawn again.") from error
