"""The code pipeline, from raw rows or packages to a curated set.

Stage 2 judges all problems again, not only stage 1's.
"""

from __future__ import annotations

from curation.records import Domain
from flows.run.pipeline import Pipeline
from flows.stages.decisions import difficulty
from flows.stages.decontamination import DECONTAMINATION
from flows.stages.exact_dedup import EXACT_DEDUP
from flows.stages.execution_matrix import EXECUTION_MATRIX
from flows.stages.export import EXPORT
from flows.stages.language_variants import LANGUAGE_VARIANTS
from flows.stages.near_dedup import NEAR_DEDUP
from flows.stages.programs import PROGRAMS
from flows.stages.questions import OVERLAPS
from flows.stages.sources import SOURCES
from flows.stages.test_programs import TEST_PROGRAMS
from flows.stages.tests import TESTS
from flows.stages.translation import TRANSLATION

CURATE_CODE = Pipeline(
    "curate-code",
    Domain.CODE,
    (
        SOURCES,
        PROGRAMS,
        EXACT_DEDUP,
        NEAR_DEDUP,
        DECONTAMINATION,
        OVERLAPS,
        EXECUTION_MATRIX,
        TEST_PROGRAMS,
        TESTS,
        LANGUAGE_VARIANTS,
        *difficulty("stage1"),
        *difficulty("stage2"),
        TRANSLATION,
        EXPORT,
    ),
)
