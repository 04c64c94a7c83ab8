"""Decontamination: problems that overlap with benchmarks leave; every hit is kept beside them."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from curation.config import Benchmark, ProblemColumns, Source
from curation.filters import decontamination
from curation.filters.decontamination.overlap import BenchmarkIndex, OverlapSettings
from curation.filters.dedup.embeddings import require_embeddings
from curation.sources import problems as sources
from curation.storage.stages import Shard, read_shard
from flows.run.run_folder import Run
from flows.run.stage import Stage, StageResult, StageRun


def find_contamination(job: StageRun) -> StageResult:
    """Drop problems that overlap with the recipe's benchmarks."""
    settings, home, problems = job.recipe.decontamination, job.run.recipe_folder, job.problems.folder
    benchmark_sources = [(benchmark, _as_source(benchmark)) for benchmark in settings.against]
    digests = {
        f"benchmark {benchmark.name}": sources.source_digest(source, home) for benchmark, source in benchmark_sources
    }
    folder = job.open(decontamination.VERSION, settings.digest(), job.problems, digests=digests)
    if (result := job.finished(folder)) is not None:
        return result
    benchmarks = pl.concat(
        frame.select("row", "statement", benchmark=pl.lit(benchmark.name))
        for benchmark, source in benchmark_sources
        for frame in sources.read_source(source, home, job.recipe.shard_rows)
    )
    overlap = OverlapSettings(settings.methods, settings.ngram, settings.whole, settings.similarity, settings.cosine)
    overlaps = BenchmarkIndex(benchmarks, overlap)

    def work(index: int) -> Shard:
        frame = read_shard(problems, "kept", index)
        hits = overlaps.hits(frame["statement"])
        kept, dropped = decontamination.drop_contaminated(frame, hits)
        return Shard(frame.height, {"kept": kept, "dropped": dropped, "hits": decontamination.format_hits(frame, hits)})

    return job.shard_by_shard(folder, work)


def _as_source(benchmark: Benchmark) -> Source:
    """Return a benchmark as a source of statements alone."""
    return Source(
        name=benchmark.name,
        kind=benchmark.kind,
        path=benchmark.path,
        subset=benchmark.subset,
        split=benchmark.split,
        revision=benchmark.revision,
        license=benchmark.license,
        columns=ProblemColumns(statement=benchmark.field),
    )


def _has_benchmarks(run: Run) -> bool:
    return bool(run.recipe.decontamination.against)


def _check(run: Run) -> None:
    for benchmark in run.recipe.decontamination.against:
        sources.check_source(_as_source(benchmark), run.recipe_folder)
    if "embedding" in run.recipe.decontamination.methods:
        require_embeddings()


def _describe(run: Run) -> Iterator[str]:
    for benchmark in run.recipe.decontamination.against:
        yield f"benchmark {benchmark.name}: {benchmark.kind} {benchmark.path}, licence {benchmark.license}"


DECONTAMINATION = Stage(
    name="decontamination",
    title="Decontamination",
    folder="stages/07-decontamination",
    work=find_contamination,
    enabled=_has_benchmarks,
    check=_check,
    describe=_describe,
)
