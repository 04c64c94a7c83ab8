"""Overlap of problems with benchmark sets, so that a curated set does not teach the test.

    find_contamination(problems, benchmarks, Overlap()) -> hits

Each hit names the benchmark, its row, the method and the score. Nothing is dropped here: hits are measurements, and
who reads them decides. `contamination_file` does the same for files, row by row.
"""

from curation.contamination.files import contamination_file
from curation.contamination.overlap import HIT, METHODS, Index, Overlap, find_contamination

__all__ = ["HIT", "METHODS", "Index", "Overlap", "contamination_file", "find_contamination"]
