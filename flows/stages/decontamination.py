"""Drop problems that overlap with benchmarks, and record every hit.

Problems that the embedder refuses are dropped as `sampling_failed`, and retried by later runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
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
        place, self._embedder = job.stage.folder_in(job.run), _embedder(job.run)
        self._job, self._overlap = job, overlap
        self._vectors = place.with_name(place.name + "-vectors")
        self.folder = StageFolder(
            scores_folder(job.run),
            "decontamination.scores",
            decontamination.VERSION,
            overlap.measured_with + (f" {self._embedder.name}" if self._embedder is not None else ""),
            {job.problems.name: job.problems.manifest.digest, **digests},
        )

    def measure(self) -> None:
        if self.folder.manifest() is None:
            self._job.shard_by_shard(self.folder, self._work(), title="Benchmark overlap")

    def measure_again(self, shards: Sequence[int]) -> None:
        self.measure()
        if shards:
            work = self._work(len(shards))
            self._job.remake(self.folder, [(shard, partial(work, shard)) for shard in shards])

    def _work(self, again: int = 0) -> Callable[[int], Shard]:
        """Return a function that measures a shard; stored refusals count unless ``again``."""
        job, problems = self._job, self._job.problems
        before = 0 if again else self.folder.note("refused")
        budget = FailureBudget(
            job.recipe.stage1.sampling.max_failed, problems.manifest.kept, "stage1.sampling.max_failed", before
        )
        index: BenchmarkIndex | None = None

        def work(shard: int) -> Shard:
            nonlocal index
            index = index or self._index()
            frame = read_shard(problems.folder, "kept", shard, ["id", "statement"])
            refused: list[tuple[int, RequestRefused]] = []
            note = _noting(refused, budget, lambda row: frame["id"][row])
            scores = index.scores(frame["statement"], note)
            tables = {"scores": scores}
            if refused:
                rows = sorted((row, why.kind, why.reason) for row, why in refused)
                tables["refused"] = pl.DataFrame(rows, decontamination.REFUSED, orient="row")
            return Shard(frame.height, tables, frame.height, {"refused": len(refused)} if refused else {})

        return work

    def _index(self) -> BenchmarkIndex:
        job, problems = self._job, self._job.problems.folder
        benchmarks = _benchmark_rows(job.run)
        refused: list[tuple[int, RequestRefused]] = []
        share, setting = job.recipe.stage1.sampling.max_failed, "stage1.sampling.max_failed"
        budget = FailureBudget(share, benchmarks.height, setting)
        note = _noting(refused, budget, lambda row: f"row {row} of the benchmarks")
        kept = KeptVectors(self._embedder, self._vectors) if self._embedder is not None else None
        index = BenchmarkIndex(benchmarks, self._overlap, self._embedder, kept, note)
        if refused:
            warn(job.run.folder, job.stage.name, _unread(len(refused), benchmarks.height, refused[-1][1]))
        for shard in range(len(shard_counts(problems))):
            index.count(read_shard(problems, "kept", shard, ["statement"])["statement"])
        return index


def _noting(
    refused: list[tuple[int, RequestRefused]], budget: FailureBudget, named: Callable[[int], str]
) -> Callable[[int, RequestRefused | None], None]:

    def note(row: int, why: RequestRefused | None) -> None:
        if why is None:
            budget.count_answer()
            return
        refused.append((row, why))
        budget.count_refusal(named(row), why)

    return note


def _unread(count: int, rows: int, last: RequestRefused) -> str:
    return (
        f"{count:,} of {rows:,} rows of benchmarks were refused by the embedder's servers and have no vector, so that "
        f"no paraphrase of them is found; the last: {last.reason}"
    )


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


def _has_benchmarks(run: Run) -> bool:
    return bool(run.recipe.decontamination.against or run.recipe.decontamination.benches)


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
    enabled=_has_benchmarks,
    check=_check,
    describe=_describe,
    retries=REFUSAL_RETRIES,
)
