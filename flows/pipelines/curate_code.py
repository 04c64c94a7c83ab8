"""The code pipeline: raw rows or problem packages to a curated set. A new stage is one line here.

Solutions run on tests say which tests are believed and which are made; then each problem is asked for once per
language. Stage 2 re-grades the entire original set, not the survivors of stage 1.
"""

from __future__ import annotations

from curation.records import Domain
from flows.run.pipeline import Pipeline
from flows.stages.contamination import CONTAMINATION
from flows.stages.difficulty import difficulty
from flows.stages.duplicates import DUPLICATES
from flows.stages.export import EXPORT
from flows.stages.generators import GENERATORS
from flows.stages.matrix import MATRIX
from flows.stages.near_duplicates import NEAR_DUPLICATES
from flows.stages.programs import PROGRAMS
from flows.stages.sources import SOURCES
from flows.stages.tests import TESTS
from flows.stages.twins import TWINS

CURATE_CODE = Pipeline(
    "curate-code",
    Domain.CODE,
    (
        SOURCES,
        PROGRAMS,
        DUPLICATES,
        NEAR_DUPLICATES,
        CONTAMINATION,
        MATRIX,
        GENERATORS,
        TESTS,
        TWINS,
        *difficulty("stage1"),
        *difficulty("stage2"),
        EXPORT,
    ),
)
