"""The stages of questions (`curation.questions`), with what each reads apart from problems."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache

import polars as pl

from curation.config import Recipe
from curation.filters.decontamination.overlap import HIT
from curation.filters.statements import filtering as statements
from curation.questions import QUESTIONS, overlaps
from curation.questions.rewriting import ambiguous_ids
from curation.questions.variants import STAGE, VariantChecks
from curation.records import Domain
from curation.sources.reading import source_digest
from curation.storage.stages import read_shard, read_table
from flows.run.pipeline import read_result
from flows.run.policies import model_title
from flows.run.policy_session import PolicySession, failure_budget
from flows.run.run_folder import Run, difficulty_stage
from flows.run.stage import Kind, Stage, StageRun
from flows.stages.attempts import attempts_of, measure_rows, part_title
from flows.stages.decontamination import (
    DECONTAMINATION,
    benchmark_index,
    benchmark_rows,
    benchmarks_of,
    overlap_settings,
    scores_folder,
)
from flows.stages.judging import open_judge
from flows.stages.question import Inputs, question_line, question_stage
from flows.stages.statements import DOUBTFUL_ROWS
from flows.stages.tests import TEST_PROGRAMS

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
        index = cache(lambda: benchmark_index(job.run, [problems["statement"]]))

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


_ASKED = question_stage(STAGE, "stages/10-variants", _checks, kind=Kind.ADDITION)


def _describe(run: Run) -> Iterator[str]:
    yield from _ASKED.describe(run)
    settings = difficulty_stage(run.recipe, run.parts[-1])
    yield f"{STAGE}: {settings.band.attempts} attempts of {model_title(run.recipe, settings.model)} at each variant"


VARIANTS = replace(_ASKED, describe=_describe)


@contextmanager
def _rewriting(job: StageRun) -> Iterator[Inputs]:
    recipe = job.recipe
    rows = read_table(job.problems.folder, "kept", ["id", "answer"])
    ambiguous = ambiguous_ids(rows) if rows.height else frozenset[str]()
    settings = f"{recipe.statements.digest()} {recipe.verify.digest()}"
    with open_judge(job.run) as judge:
        version = f"{statements.VERSION} {judge.version}"
        yield Inputs(lambda _: (recipe.statements, ambiguous), version=version, settings=settings, tool=judge)


@contextmanager
def _overlaps(job: StageRun) -> Iterator[Inputs]:
    run, kept, scores = job.run, job.problems.folder, scores_folder(job.run)
    filters, settings = job.results.filters, overlap_settings(job.recipe)
    at = next(place for place, result in enumerate(filters) if result.name == DECONTAMINATION.name)
    scored = filters[at - 1].folder

    texts = cache(lambda: benchmark_rows(run).select("benchmark", pl.col("row").cast(pl.Int64), "statement"))

    def tables(index: int) -> tuple[pl.DataFrame, dict[tuple[str, int], str]]:
        pairs = overlaps.near_pairs(read_shard(scores, "scores", index), settings, overlaps.ASK_FROM, overlaps.NEAREST)
        places = read_shard(scored, "kept", index, ["source", "row"]).with_row_index("at")
        rows = read_shard(kept, "kept", index, ["source", "row"]).with_row_index("now")
        place = rows.join(places, on=["source", "row"]).select("now", row=pl.col("at").cast(pl.Int64))
        pairs = pairs.join(place, on="row", maintain_order="left").with_columns(row=pl.col("now").cast(pl.Int64))
        pairs = pairs.drop("now").sort("row", maintain_order=True)
        wanted = pairs.select("benchmark", row="benchmark_row")
        named = texts().join(wanted, on=["benchmark", "row"], how="semi").iter_rows() if pairs.height else ()
        return pairs, {(name, row): text for name, row, text in named}

    yield Inputs(tables, settings=str(settings))


@contextmanager
def _doubtful_verdicts(job: StageRun) -> Iterator[Inputs]:
    judged = job.results[attempts_of(job.stage.part)]

    def tables(index: int) -> tuple[pl.DataFrame, ...]:
        return tuple(read_shard(judged.folder, table, index) for table in ("verdicts", "stopped"))

    yield Inputs(tables, (judged,), verifier=judged.folder.name)


@cache
def doubtful_verdicts_of(part: str) -> Stage:
    """Return the stage of a model's votes on a difficulty stage's doubtful verdicts.

    If enabled, sampling counts doubtful verdicts as open.
    """
    return question_stage(
        "doubtful_verdicts",
        f"doubtful_verdicts/{part}",
        _doubtful_verdicts,
        kind=Kind.MEASURE,
        part=part,
        title=f"{part_title(part)}: doubtful verdicts by votes",
    )


def final_verdicts(run: Run, part: str) -> Stage:
    """Return the stage with deciding verdicts: the model's votes if enabled, else the verifier's."""
    stage = doubtful_verdicts_of(part)
    return stage if stage.enabled(run) else attempts_of(part)


REWRITING = question_stage("rewriting", "stages/02-rewriting", _rewriting)

OVERLAPS = question_stage("overlaps", "stages/07-overlaps", _overlaps, enabled=DECONTAMINATION.enabled)

PREMISES = question_stage("premises", "stages/07-premises")


_WIRED = frozenset(
    {"rewriting", "doubtful_rows", "overlaps", "premises", "doubtful_verdicts", "test_programs", "variants"}
)
"""Questions with their own place in pipelines; others are about rows, after the overlaps."""


@cache
def row_question(name: str) -> Stage:
    """Return the stage of a question about rows."""
    title = "" if name in QUESTIONS else name.replace("_", " ").capitalize()
    return question_stage(name, f"stages/07-own-{name}", title=title)


def row_questions(recipe: Recipe) -> list[Stage]:
    """Return the stages of further questions about rows: the registry's, then the user's."""
    return [row_question(name) for name in dict.fromkeys([*QUESTIONS, *recipe.questions]) if name not in _WIRED]


def question_stages(run: Run) -> list[Stage]:
    """Return the stages of all possible questions, in order."""
    verdicts = [doubtful_verdicts_of(part) for part in run.parts]
    near = [OVERLAPS] if DECONTAMINATION.enabled(run) else []
    if run.recipe.flow == "curate-code":
        return [*near, *row_questions(run.recipe), TEST_PROGRAMS]
    return [REWRITING, DOUBTFUL_ROWS, *near, *row_questions(run.recipe), PREMISES, *verdicts, VARIANTS]


def question_lines(run: Run, verifier: str) -> Iterator[str]:
    """Yield each question's results, those not asked, and the number of doubtful verdicts."""
    stages = question_stages(run)
    for stage in stages:
        result = read_result(stage, run, verifier) if stage.enabled(run) else None
        if result is not None and (line := question_line(result)) is not None:
            yield line
    skipped = dict.fromkeys(
        stage.asks.split(".")[1] for stage in stages if not (stage.enabled(run) or stage is VARIANTS)
    )
    if skipped:
        yield f"Not asked of a model: {', '.join(skipped).replace('_', ' ')}"
    if run.recipe.asks("doubtful_verdicts"):
        return
    for part in run.parts:
        judged = read_result(attempts_of(part), run, verifier)
        if judged is not None and (doubtful := judged.manifest.notes.get("doubtful", 0)):
            yield (
                f"{part_title(part)}: {doubtful:,} of {judged.manifest.notes['counted']:,} verdicts are doubtful (the "
                "answer was read in part, or not at all) and count as wrong; `[questions.doubtful_verdicts]` with a "
                "model has it vote on them"
            )
