"""Curated sets in other trainers' schemas, with judging records (`curation.scoring`).

Programs without tests that judge them are left out and counted.

Invariants: rows keep the set's order; in = written + left out, or an error names the row.
"""

from curation.publish.export_formats.rows import FORMATS
from curation.publish.export_formats.writing import ExportResult, export_set, set_records

__all__ = ["FORMATS", "ExportResult", "export_set", "set_records"]
