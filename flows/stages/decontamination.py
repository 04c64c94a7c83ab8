"""Decontamination: problems that overlap with benchmarks leave; every hit is kept beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import polars as pl

from curation.config import Benchmark, ProblemColumns, Recipe, Source
from curation.embeddings.base import Embedder
from curation.embeddings.kept import KeptVectors
from curation.filters import decontamination
from curation.filters.decontamination.overlap import BenchmarkIndex, OverlapSettings
from curation.sources import problems as sources
from curation.storage.stages import Shard, StageFolder, read_shard
from flows.run.benches import as_benchmarks
from flows.run.embedders import open_embedder
from flows.run.run_folder import Run
from flows.run.stage import Stage, StageResult, StageRun, shard_counts


def find_contamination(job: StageRun) -> StageResult:
    """Drop problems that overlap with the recipe's benchmarks."""
    settings, problems = job.recipe.decontamination, job.problems.folder
    digests = {
        f"benchmark {benchmark.name}": sources.source_digest(_as_source(benchmark), home)
        for benchmark, home in benchmarks_of(job.run)
    }
    folder = job.open(decontamination.VERSION, settings.digest(), job.problems, digests=digests)
    if (result := job.finished(folder)) is not None:
        return result
    overlap = overlap_settings(job.recipe)
    scores = _measure(job, overlap, digests)

    def work(index: int) -> Shard:
        frame = read_shard(problems, "kept", index)
        hits = decontamination.classify_hits(read_shard(scores, "scores", index), overlap)
        kept, dropped = decontamination.drop_contaminated(frame, hits, with_templates=settings.templates == "drop")
        notes = {"templates": decontamination.count_templates(hits)}
        tables = {"kept": kept, "dropped": dropped, "hits": decontamination.format_hits(frame, hits)}
        return Shard(frame.height, tables, notes=notes)

    return job.shard_by_shard(folder, work)


def benchmarks_of(run: Run) -> list[tuple[Benchmark, Path]]:
    """Return the benchmarks of a run, those of its benches too, each with the folder that its path refers to.

    Raises:
        ConfigError: there is no such bench.
    """
    settings = run.recipe.decontamination
    given = [(benchmark, run.recipe_folder) for benchmark in settings.against]
    return given + [found for name in settings.benches for found in as_benchmarks(name, run.recipe_folder)]


def overlap_settings(recipe: Recipe) -> OverlapSettings:
    """Return how overlap is measured in a run of the recipe."""
    settings = recipe.decontamination
    of_programs = recipe.flow == "curate-code"
    return OverlapSettings(
        methods=settings.methods,
        ngram=settings.ngram,
        whole=settings.whole,
        coverage=settings.coverage,
        words=settings.words,
        cosine=settings.program_cosine if of_programs else settings.cosine,
        programs=of_programs,
        candidates=settings.candidates,
        figures=0.0 if of_programs else settings.figures,
        formulas=0.0 if of_programs else settings.formulas,
        template=settings.template,
    )


def _measure(job: StageRun, overlap: OverlapSettings, digests: Mapping[str, str]) -> Path:
    """Return the folder of all scores that could count, measured now or in an earlier run with other thresholds."""
    place, problems = job.stage.folder_in(job.run), job.problems.folder
    embedder = _embedder(job.run)
    made_from = {job.problems.name: job.problems.manifest.digest, **digests}
    folder = StageFolder(
        place.with_name(place.name + "-scores"),
        "decontamination.scores",
        decontamination.VERSION,
        overlap.measured_with + (f" {embedder.name}" if embedder is not None else ""),
        made_from,
    )
    if folder.manifest() is not None:
        return folder.folder
    benchmarks = pl.concat(
        frame.select("row", "statement", benchmark=pl.lit(benchmark.name))
        for benchmark, home in benchmarks_of(job.run)
        for frame in sources.read_source(_as_source(benchmark), home, job.recipe.shard_rows)
    )
    kept = KeptVectors(embedder, place.with_name(place.name + "-vectors")) if embedder is not None else None
    index = BenchmarkIndex(benchmarks, overlap, embedder, kept)
    for shard in range(len(shard_counts(problems))):
        index.count(read_shard(problems, "kept", shard, ["statement"])["statement"])

    def work(shard: int) -> Shard:
        frame = read_shard(problems, "kept", shard, ["statement"])
        return Shard(frame.height, {"scores": index.scores(frame["statement"])}, kept_rows=frame.height)

    return job.shard_by_shard(folder, work).folder


def _embedder(run: Run) -> Embedder | None:
    """Return who computes vectors in a run; None where none are asked for."""
    settings = run.recipe.decontamination
    return open_embedder(settings.embedder, run.recipe_folder) if "embedding" in settings.methods else None


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
    return bool(run.recipe.decontamination.against or run.recipe.decontamination.benches)


def _check(run: Run) -> None:
    for benchmark, home in benchmarks_of(run):
        sources.check_source(_as_source(benchmark), home)
    _embedder(run)


def _describe(run: Run) -> Iterator[str]:
    for benchmark, _ in benchmarks_of(run):
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
