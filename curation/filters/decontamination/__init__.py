"""Finds problems that overlap with benchmarks, and drops them."""

from curation.filters.decontamination.dropping import count_templates, drop_contaminated, format_hits
from curation.filters.decontamination.files import contamination_file
from curation.filters.decontamination.overlap import (
    HIT,
    METHODS,
    OVERLAP,
    SCORE,
    TEMPLATE,
    VERSION,
    BenchmarkIndex,
    OverlapSettings,
    classify_hits,
)

__all__ = [
    "HIT",
    "METHODS",
    "OVERLAP",
    "SCORE",
    "TEMPLATE",
    "VERSION",
    "BenchmarkIndex",
    "OverlapSettings",
    "classify_hits",
    "contamination_file",
    "count_templates",
    "drop_contaminated",
    "format_hits",
]
