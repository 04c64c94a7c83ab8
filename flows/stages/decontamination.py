"""Drop problems that overlap with benchmarks, and record every hit.

Problems that the embedder refuses are dropped as `sampling_failed`, and retried by later runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path

import polars as pl

from curation.config import EndpointModel, Recipe, Source
from curation.embeddings.base import Embedder
from curation.embeddings.endpoint import EmbeddingEndpoint
from curation.embeddings.kept import KeptVectors
from curation.embeddings.minilm import MiniLm
from curation.filters import decontamination
from curation.filters.decontamination.overlap import BenchmarkIndex, OverlapSettings
from curation.policies.failure_budget import FailureBudget
from curation.records import DropReason, RequestRefused
from curation.sources import reading as sources
from curation.storage.stages import Shard, StageFolder, read_optional_shard, read_shard
from flows.run import retries
from flows.run.benches import as_benchmarks
from flows.run.progress import warn
from flows.run.run_folder import Run
from flows.run.stage import REFUSAL_RETRIES, Stage, StageResult, StageRun, shard_counts
from flows.stages.base import require_not_written


def find_contamination(job: StageRun) -> StageResult:
    """Drop problems that overlap with the recipe's benchmarks."""
    settings, problems = job.recipe.decontamination, job.problems.folder
    digests = {
        f"benchmark {benchmark.name}": sources.source_digest(benchmark, home)
        for benchmark, home in benchmarks_of(job.run)
    }
    folder = job.open(decontamination.VERSION, settings.digest(), job.problems, digests=digests)
    overlap = overlap_settings(job.recipe)
    measuring = _Measuring(job, overlap, digests)

    def work(round_number: int, index: int) -> Shard:
        frame = read_shard(problems, "kept", index)
        scores = measuring.folder.folder
        hits = decontamination.classify_hits(read_shard(scores, "scores", index), overlap)
        refused = read_optional_shard(scores, "refused", index)
        kept, dropped = decontamination.drop_contaminated(
            frame, hits, with_templates=settings.templates == "drop", refused=refused
        )
        unread = dropped.filter(pl.col("reason") == DropReason.SAMPLING_FAILED.value).height
        notes = {
            "templates": decontamination.count_templates(hits),
            **retries.failure_notes(unread, round_number, retries.REFUSED),
        }
        tables = {"kept": kept, "dropped": dropped, "hits": decontamination.format_hits(frame, hits)}
        return Shard(frame.height, tables, notes=notes)

    def first() -> StageResult:
        if (result := job.finished(folder)) is not None:
            return result
        measuring.measure()
        return job.shard_by_shard(folder, partial(work, 0))

    @contextmanager
    def again(round_number: int) -> Iterator[Callable[[int], Shard]]:
        measuring.measure_again(retries.shards_before(folder.folder, round_number))
        yield partial(work, round_number)

    return retries.retry_failed(job, folder, first, again)


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
    return list(dict.fromkeys(filter(None, _benchmark_rows(run)["statement"])))


def _benchmark_rows(run: Run) -> pl.DataFrame:
    return pl.concat(
        frame.select("row", "statement", benchmark=pl.lit(benchmark.name))
        for benchmark, home in benchmarks_of(run)
        for frame in sources.read_source(benchmark, home, run.recipe.shard_rows)
    )


def overlap_settings(recipe: Recipe) -> OverlapSettings:
    """Return a recipe's settings for overlap."""
    settings = recipe.decontamination
    return OverlapSettings(settings.methods, settings.cosine, programs=recipe.flow == "curate-code")


def benchmark_index(run: Run, statements: pl.Series) -> BenchmarkIndex:
    """Return a run's benchmark index, with word rarity from these statements."""
    index = BenchmarkIndex(_benchmark_rows(run), overlap_settings(run.recipe), _embedder(run))
    index.count(statements)
    return index


class _Measuring:
    """Scores, in their own folder so that a new threshold measures nothing again."""

    def __init__(self, job: StageRun, overlap: OverlapSettings, digests: Mapping[str, str]) -> None:
        self._job, self._overlap, self._embedder = job, overlap, _embedder(job.run)
        self.folder = StageFolder(
            scores_folder(job.run),
            "decontamination.scores",
            decontamination.VERSION,
            overlap.measured_with + (f" {self._embedder.name}" if self._embedder is not None else ""),
            {job.problems.name: job.problems.manifest.digest, **digests},
        )

    def measure(self) -> None:
        if self.folder.manifest() is None:
            work = self._work(self._budget(self._job.problems.manifest.kept, self.folder.note("refused")))
            self._job.shard_by_shard(self.folder, work, title="Benchmark overlap")

    def measure_again(self, shards: Sequence[int]) -> None:
        self.measure()
        if shards:
            work = self._work(self._budget(self._job.problems.manifest.kept))
            self._job.remake(self.folder, [(shard, partial(work, shard)) for shard in shards])

    def _budget(self, rows: int, refused: int = 0) -> FailureBudget:
        share = self._job.recipe.stage1.sampling.max_failed
        return FailureBudget(share, rows, "stage1.sampling.max_failed", refused)

    def _work(self, budget: FailureBudget) -> Callable[[int], Shard]:
        problems, index = self._job.problems.folder, cache(self._index)

        def work(shard: int) -> Shard:
            frame = read_shard(problems, "kept", shard, ["id", "statement"])
            refused: list[tuple[int, RequestRefused]] = []
            scores = index().scores(frame["statement"], _noting(refused, budget, lambda row: frame["id"][row]))
            tables = {"scores": scores}
            if refused:
                rows = sorted((row, why.kind, why.reason) for row, why in refused)
                tables["refused"] = pl.DataFrame(rows, decontamination.REFUSED, orient="row")
            return Shard(frame.height, tables, frame.height, {"refused": len(refused)} if refused else {})

        return work

    def _index(self) -> BenchmarkIndex:
        job, place = self._job, self._job.stage.folder_in(self._job.run)
        benchmarks, refused = _benchmark_rows(job.run), list[tuple[int, RequestRefused]]()
        note = _noting(refused, self._budget(benchmarks.height), lambda row: f"row {row} of the benchmarks")
        vectors = place.with_name(place.name + "-vectors")
        kept = KeptVectors(self._embedder, vectors) if self._embedder is not None else None
        index = BenchmarkIndex(benchmarks, self._overlap, self._embedder, kept, note)
        if refused:
            text = (
                f"{len(refused):,} of {benchmarks.height:,} rows of benchmarks were refused by the embedder's servers "
                f"and have no vector, so that no paraphrase of them is found; the last: {refused[-1][1].reason}"
            )
            warn(job.run.folder, job.stage.name, text)
        for shard in range(len(shard_counts(job.problems.folder))):
            index.count(read_shard(job.problems.folder, "kept", shard, ["statement"])["statement"])
        return index


def _noting(
    refused: list[tuple[int, RequestRefused]], budget: FailureBudget, named: Callable[[int], str]
) -> Callable[[int, RequestRefused | None], None]:

    def note(row: int, why: RequestRefused | None) -> None:
        if why is None:
            budget.count_answer()
        else:
            refused.append((row, why))
            budget.count_refusal(named(row), why)

    return note


def _embedder(run: Run) -> Embedder | None:
    settings = run.recipe.decontamination
    if "embedding" not in settings.methods:
        return None
    model = run.recipe.models[settings.embedder] if settings.embedder is not None else None
    return EmbeddingEndpoint(model) if isinstance(model, EndpointModel) else MiniLm()


def scores_folder(run: Run) -> Path:
    """Return the scores' folder, next to the stage's."""
    place = DECONTAMINATION.folder_in(run)
    return place.with_name(place.name + "-scores")


def _check(run: Run) -> None:
    for benchmark, home in benchmarks_of(run):
        sources.check_source(benchmark, home)
        require_not_written(run, benchmark, home)
    _embedder(run)


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
    retries=REFUSAL_RETRIES,
)
