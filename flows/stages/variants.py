"""Ask a model for variants of kept problems, then check and measure them (`curation.questions.variants`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache

import polars as pl

from curation.filters.decontamination.overlap import HIT
from curation.questions.variants import STAGE, VariantChecks
from curation.records import Domain
from curation.sources.reading import source_digest
from curation.storage.stages import read_table
from flows.run.policies import model_title
from flows.run.policy_session import PolicySession, failure_budget
from flows.run.run_folder import Run, difficulty_stage
from flows.run.stage import MATH, Kind, StageRun
from flows.stages.attempts import measure_rows
from flows.stages.decontamination import DECONTAMINATION, benchmark_index, benchmarks_of, overlap_settings
from flows.stages.judging import open_judge
from flows.stages.question import Inputs, question_stage

_OF_THE_SET = ["id", "source", "row", "statement", "answer", "lang"]


@contextmanager
def _checks(job: StageRun) -> Iterator[Inputs]:
    recipe = job.recipe
    settings, writer = difficulty_stage(recipe, job.run.parts[-1]), recipe.questions[STAGE].model
    assert settings.model is not None
    assert writer is not None
    kept = job.problems
    budget = failure_budget(job.run, kept.manifest.kept)
    problems = read_table(kept.folder, "kept", _OF_THE_SET)
    with open_judge(job.run) as judge, PolicySession(job.run, STAGE, settings.model, budget, None, bool) as solver:
        policy = solver.policy.key.policy
        index = cache(lambda: benchmark_index(job.run, problems["statement"]))

        def measure(rows: pl.DataFrame) -> pl.DataFrame:
            none = pl.lit(None, pl.String)
            rows = rows.with_columns(domain=pl.lit(Domain.MATH.value), meta=none, raw_answer=none)
            return measure_rows(job.run, judge, solver, rows)

        def overlaps(statements: pl.Series) -> Sequence[str | None]:
            found: list[str | None] = [None] * len(statements)
            hits = index().hits(statements) if DECONTAMINATION.enabled(job.run) else HIT.to_frame()
            for at, name in hits.select("row", "benchmark").iter_rows():
                found[at] = name
            return found

        title = model_title(recipe, writer)
        checks = VariantChecks(judge, problems, overlaps, measure, title, policy)
        against = [source_digest(benchmark, home) for benchmark, home in benchmarks_of(job.run)]
        compared = f"{overlap_settings(recipe)} {against}"
        made_from = f"{solver.policy.key} {settings.band.digest()} {compared} {recipe.verify.digest()}"
        yield Inputs(lambda _: (checks,), version=judge.version, settings=made_from, tool=checks)


_ASKED = question_stage(STAGE, "stages/10-variants", _checks, kind=Kind.ADDITION, domains=MATH)


def _describe(run: Run) -> Iterator[str]:
    yield from _ASKED.describe(run)
    settings = difficulty_stage(run.recipe, run.parts[-1])
    yield f"{STAGE}: {settings.band.attempts} attempts of {model_title(run.recipe, settings.model)} at each variant"


VARIANTS = replace(_ASKED, describe=_describe)
