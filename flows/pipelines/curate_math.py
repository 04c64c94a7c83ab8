"""The math pipeline, from raw rows to a curated set.

Stage 2 judges all problems again, not only stage 1's.
"""

from __future__ import annotations

from curation.records import Domain
from flows.run.pipeline import Pipeline
from flows.stages.decisions import difficulty
from flows.stages.decontamination import DECONTAMINATION
from flows.stages.exact_dedup import EXACT_DEDUP
from flows.stages.export import PUBLISHED
from flows.stages.grader import GRADER
from flows.stages.near_dedup import NEAR_DEDUP
from flows.stages.questions import OVERLAPS, PREMISES, REWRITING
from flows.stages.references import REFERENCES
from flows.stages.review import REVIEW
from flows.stages.sources import SOURCES
from flows.stages.statements import DOUBTFUL_ROWS, STATEMENTS

CURATE_MATH = Pipeline(
    "curate-math",
    Domain.MATH,
    (
        SOURCES,
        REWRITING,
        STATEMENTS,
        DOUBTFUL_ROWS,
        REVIEW,
        REFERENCES,
        EXACT_DEDUP,
        NEAR_DEDUP,
        DECONTAMINATION,
        OVERLAPS,
        PREMISES,
        *difficulty("stage1"),
        GRADER,
        *difficulty("stage2"),
        *PUBLISHED,
    ),
)
