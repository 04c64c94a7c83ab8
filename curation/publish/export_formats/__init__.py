"""Curated sets in the schemas of other trainers (rows.py has one function per format), with the judge that measured
them.

Each row holds its record (`curation.scoring`), under ``goldilocks`` or as the ground truth, and prompts of
`curation.prompts.SOLVE`. Problems with a `Need` that a format does not carry (`CARRIES`) are left out and counted.

Invariants: rows come in the set's order; in = written + left out, or an error names the row; files are written aside
and renamed. ``split`` is always train.
"""

from curation.publish.export_formats.needs import CARRIES, Need
from curation.publish.export_formats.rows import FORMATS
from curation.publish.export_formats.writing import ExportResult, export_set, set_records

__all__ = ["CARRIES", "FORMATS", "ExportResult", "Need", "export_set", "set_records"]
