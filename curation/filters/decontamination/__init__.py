"""Contamination: problems that overlap with benchmark sets, so that a curated set does not teach the test.

    find_contamination(problems, benchmarks, OverlapSettings()) -> hits
    drop_contaminated(problems, hits) -> kept, dropped

Each hit names the benchmark, its row, the method and the score. Hits are measurements; `drop_contaminated` is the
decision of a run, which drops what has any. `contamination_file` measures files, row by row.
"""

from curation.filters.decontamination.dropping import REFUSED, count_templates, drop_contaminated, format_hits
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
    find_contamination,
)

__all__ = [
    "HIT",
    "METHODS",
    "OVERLAP",
    "REFUSED",
    "SCORE",
    "TEMPLATE",
    "VERSION",
    "BenchmarkIndex",
    "OverlapSettings",
    "classify_hits",
    "contamination_file",
    "count_templates",
    "drop_contaminated",
    "find_contamination",
    "format_hits",
]
