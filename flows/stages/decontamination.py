"""Drop problems that overlap with benchmarks, and record every hit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import polars as pl

from curation.config import Recipe, Source
from curation.embeddings import KeptVectors, MiniLm, require_embeddings
from curation.filters.decontamination import overlap as decontamination
from curation.filters.decontamination.overlap import BenchmarkIndex, OverlapSettings
from curation.sources import reading as sources
from curation.storage.stages import Shard, StageFolder, read_shard
from flows.run.benches import as_benchmarks
from flows.run.run_folder import Run
from flows.run.stage import Stage, StageResult, StageRun, shard_counts
from flows.stages.sources import require_not_written


def find_contamination(job: StageRun) -> StageResult:
    """Drop problems that overlap with the recipe's benchmarks."""
    settings, problems = job.recipe.decontamination, job.problems.folder
    digests = {
        f"benchmark {benchmark.name}": sources.source_digest(benchmark, home)
        for benchmark, home in benchmarks_of(job.run)
    }
    folder = job.open(decontamination.VERSION, settings.digest(), job.problems, digests=digests)
    overlap = overlap_settings(job.recipe)
    scores = StageFolder(
        scores_folder(job.run),
        "decontamination.scores",
        decontamination.VERSION,
        overlap.measured_with + (f" {MiniLm.name}" if _embeds(job.run) else ""),
        {job.problems.name: job.problems.manifest.digest, **digests},
    )

    def statements(index: int) -> pl.Series:
        return read_shard(problems, "kept", index, ["statement"])["statement"]

    benchmarks = cache(lambda: benchmark_index(job.run, map(statements, range(len(shard_counts(problems))))))

    def measure(index: int) -> Shard:
        rows = statements(index)
        return Shard(len(rows), {"scores": benchmarks().scores(rows)}, len(rows))

    def work(index: int) -> Shard:
        frame = read_shard(problems, "kept", index)
        hits = decontamination.classify_hits(read_shard(scores.folder, "scores", index), overlap)
        kept, dropped = decontamination.drop_contaminated(frame, hits, with_templates=settings.templates == "drop")
        notes = {"templates": decontamination.count_templates(hits)}
        tables = {"kept": kept, "dropped": dropped, "hits": decontamination.format_hits(frame, hits)}
        return Shard(frame.height, tables, notes=notes)

    if (result := job.finished(folder)) is not None:
        return result
    if scores.manifest() is None:  # in a folder of their own, so that a new threshold measures nothing again
        job.shard_by_shard(scores, measure, title="Benchmark overlap")
    return job.shard_by_shard(folder, work)


def benchmarks_of(run: Run) -> list[tuple[Source, Path]]:
    """Return a run's benchmarks, also from benches, each with its base folder.

    Raises:
        ConfigError: there is no such bench.
    """
    settings = run.recipe.decontamination
    given = [(benchmark, run.recipe_folder) for benchmark in settings.against]
    return given + [found for name in settings.benches for found in as_benchmarks(name, run.recipe_folder)]


def benchmark_statements(run: Run) -> list[str]:
    """Return the distinct statements of a run's benchmarks, in order."""
    return list(dict.fromkeys(filter(None, benchmark_rows(run)["statement"])))


def benchmark_rows(run: Run) -> pl.DataFrame:
    """Return the rows of a run's benchmarks."""
    return pl.concat(
        frame.select("row", "statement", benchmark=pl.lit(benchmark.name))
        for benchmark, home in benchmarks_of(run)
        for frame in sources.read_source(benchmark, home, run.recipe.shard_rows)
    )


def overlap_settings(recipe: Recipe) -> OverlapSettings:
    """Return a recipe's settings for overlap."""
    settings = recipe.decontamination
    return OverlapSettings(settings.methods, programs=recipe.flow == "curate-code")


def benchmark_index(run: Run, statements: Iterable[pl.Series]) -> BenchmarkIndex:
    """Return a run's benchmark index, with word rarity from these statements."""
    embedder = MiniLm() if _embeds(run) else None
    kept = KeptVectors(embedder, _next_to_stage(run, "vectors")) if embedder is not None else None
    index = BenchmarkIndex(benchmark_rows(run), overlap_settings(run.recipe), embedder, kept)
    for rows in statements:
        index.count(rows)
    return index


def _embeds(run: Run) -> bool:
    return "embedding" in run.recipe.decontamination.methods


def scores_folder(run: Run) -> Path:
    """Return the scores' folder, next to the stage's."""
    return _next_to_stage(run, "scores")


def _next_to_stage(run: Run, name: str) -> Path:
    place = DECONTAMINATION.folder_in(run)
    return place.with_name(f"{place.name}-{name}")


def _check(run: Run) -> None:
    for benchmark, home in benchmarks_of(run):
        sources.check_source(benchmark, home)
        require_not_written(run, benchmark, home)
    if _embeds(run):
        require_embeddings()


def _describe(run: Run) -> Iterator[str]:
    for benchmark, _ in benchmarks_of(run):
        yield f"benchmark {benchmark.name}: {benchmark.kind} {benchmark.path}, licence {benchmark.license}"


DECONTAMINATION = Stage(
    name="decontamination",
    title="Decontamination",
    folder="stages/07-decontamination",
    work=find_contamination,
    enabled=lambda run: bool(run.recipe.decontamination.against or run.recipe.decontamination.benches),
    check=_check,
    describe=_describe,
)
