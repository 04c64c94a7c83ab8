"""Define a stage, which reads earlier stages' tables and writes its own by shard.

Invariants: a `curation.storage.stages.StageFolder`'s fingerprint covers its inputs; shards keep their numbers from
the sources on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from curation.config import Recipe
from curation.publish.cards.facts import FunnelRow
from curation.records import DROPPED, StoreError
from curation.storage.stages import Manifest, Shard, StageFolder, damaged, finished_shards, read_shard, table_files
from flows.run import retries
from flows.run.policies import is_offline
from flows.run.progress import bar
from flows.run.run_folder import Run
from flows.run.runner import Work, current_runner

TESTS_TABLE, SOLUTIONS_TABLE, JUDGING_TABLE = "tests", "solutions", "judging"
"""Of code problems: tests, solutions, and limits with checkers."""


class Kind(StrEnum):
    """What a stage does to the problems."""

    FILTER = "filter"  # what it keeps is what later stages read
    MEASURE = "measure"  # drops none; the funnel leaves it out, the status shows it while it runs
    DECISION = "decision"  # decides by one policy's attempts; the next difficulty stage reads all problems again
    ADDITION = "addition"  # adds rows to what the last decision keeps
    EXPORT = "curated set"  # what is published


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One stage of a pipeline.

    Example: ``Stage(name="review", title="Review by people", folder="stages/03-review", work=apply_reviews)``
    """

    name: str  # in fingerprints: a new name makes later stages run again
    title: str  # in the funnel, card, progress bar and Prefect
    folder: str  # within the run folder
    work: Callable[[StageRun], StageResult]
    kind: Kind = Kind.FILTER
    enabled: Callable[[Run], bool] = lambda _run: True  # whether a run has it
    asks: str = ""  # the setting of its model, such as `questions.premises.model`
    check: Callable[[Run], None] = lambda _run: None  # refuses wrong inputs before anything runs
    describe: Callable[[Run], Iterable[str]] = lambda _run: ()  # lines of `goldilocks run --dry`
    # further lines of `goldilocks explain`, from stage folder and problem id
    explain: Callable[[Run, Path, str], Iterable[str]] = lambda _run, _folder, _problem: ()
    is_planned: bool = True  # whether `goldilocks plan` runs it before its pilot
    runs_anywhere: bool = False  # whether other machines may compute its shards
    by_verifier: bool = False  # whether it has a folder per verifier version
    comes_later: bool = False  # whether a finished run may lack it, as people enable it later
    part: str = ""  # a difficulty stage's table: stage1 or stage2

    def folder_in(self, run: Run, verifier: str = "") -> Path:
        """Return the stage's folder in a run or refreshed version."""
        place = run.folder / self.folder
        is_refreshed = self.kind in (Kind.ADDITION, Kind.EXPORT) or self.part == run.parts[-1]
        if run.version_folder is not None and is_refreshed:
            place = run.version_folder / self.name.rpartition(".")[2]
        return place / verifier if self.by_verifier else place


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Work between stages; it has no stage folder."""

    name: str
    work: Callable[[Run, Results], None]
    enabled: Callable[[Run], bool] = lambda _run: True
    check: Callable[[Run], None] = lambda _run: None


@dataclass(frozen=True, slots=True)
class StageResult:
    """A finished stage; ``reused`` if nothing was computed."""

    stage: Stage
    folder: Path
    manifest: Manifest
    reused: bool = False

    @property
    def name(self) -> str:
        """Return the stage's name."""
        return self.stage.name

    @property
    def funnel_row(self) -> FunnelRow:
        """Return rows in, kept, and dropped by reason."""
        manifest = self.manifest
        return FunnelRow(self.name, self.stage.title, manifest.rows_in, manifest.kept, dict(manifest.reasons))


@dataclass(frozen=True, slots=True)
class Results:
    """A pipeline's results so far, in order."""

    stage_results: tuple[StageResult, ...] = ()

    def __iter__(self) -> Iterator[StageResult]:
        return iter(self.stage_results)

    def __getitem__(self, stage: Stage) -> StageResult:
        """Return a stage's result; raise `StoreError` if it is not finished."""
        result = self.get(stage)
        if result is None:
            raise StoreError(f"stage {stage.name} is not finished; finish the run with `goldilocks run`.")
        return result

    def get(self, stage: Stage) -> StageResult | None:
        """Return a stage's result, or None."""
        return next((result for result in self.stage_results if result.name == stage.name), None)

    def plus(self, *results: StageResult) -> Results:
        """Return these results and some more."""
        return Results((*self.stage_results, *results))

    @property
    def problems(self) -> StageResult:
        """Return the last filter's result."""
        return self.filters[-1]

    @property
    def filters(self) -> tuple[StageResult, ...]:
        """Return the results of filter stages."""
        return self._of(Kind.FILTER)

    @property
    def decisions(self) -> tuple[StageResult, ...]:
        """Return the difficulty stages' decisions."""
        return self._of(Kind.DECISION)

    @property
    def funnel(self) -> list[FunnelRow]:
        """Return the funnel's rows, without measuring stages."""
        return [result.funnel_row for result in self.stage_results if result.stage.kind is not Kind.MEASURE]

    def _of(self, kind: Kind) -> tuple[StageResult, ...]:
        return tuple(result for result in self.stage_results if result.stage.kind is kind)


_COMPUTED: ContextVar[Collection[str] | None] = ContextVar("computed", default=None)


@contextmanager
def computing_only(names: Collection[str]) -> Iterator[None]:
    """Compute only these stages within the block; raise `StoreError` for another one that is not finished."""
    token = _COMPUTED.set(names)
    try:
        yield
    finally:
        _COMPUTED.reset(token)


def _each(works: Sequence[Work]) -> list[Shard]:
    return [work() for work in works]


@dataclass(frozen=True, slots=True)
class StageRun:
    """A stage in a run, with earlier results."""

    stage: Stage
    run: Run
    results: Results

    @property
    def recipe(self) -> Recipe:
        """Return the run's recipe."""
        return self.run.recipe

    @property
    def problems(self) -> StageResult:
        """Return the last filter's result, or for an addition the last decision's."""
        return self.results.decisions[-1] if self.stage.kind is Kind.ADDITION else self.results.problems

    def open(
        self,
        version: str,
        settings: str,
        *read: StageResult,
        verifier: str = "",
        digests: Mapping[str, str] | None = None,
    ) -> StageFolder:
        """Return the stage's folder, with the fingerprint of its inputs.

        Args:
            version: of the deciding code.
            settings: all that the tables depend on.
            digests: of other inputs, by name.
        """
        made_from = {**{result.name: result.manifest.digest for result in read}, **(digests or {})}
        return StageFolder(self.stage.folder_in(self.run, verifier), self.stage.name, version, settings, made_from)

    def finished(self, folder: StageFolder) -> StageResult | None:
        """Return the result if finished with this fingerprint and no retry is due, else prepare the folder."""
        manifest, names = folder.manifest(), _COMPUTED.get()
        must_be_finished = names is not None and self.stage.name not in names
        pending = 0 if is_offline() or must_be_finished else retries.pending_round(folder.folder)
        if manifest is not None and not pending:
            return StageResult(self.stage, folder.folder, manifest, reused=True)
        if must_be_finished:
            raise StoreError(
                f"--only: stage {self.stage.name} is not finished with these settings, which include --limit and "
                "--set; run without --only."
            )
        retries.prepare(folder, pending)
        return None

    def shard_by_shard(
        self, folder: StageFolder, work: Callable[[int], Shard], title: str = "", *, is_whole: bool = True
    ) -> StageResult:
        """Compute a stage with the problems' shards.

        Args:
            is_whole: it reads all problems and no other rows, so their total is checked.
        """
        counts = shard_counts(self.problems.folder)
        shards = ((rows, partial(work, index)) for index, rows in enumerate(counts))
        rows_in = self.problems.manifest.kept if is_whole else None
        return self.compute(folder, shards, total=sum(counts), rows_in=rows_in, title=title)

    def filter(
        self, folder: StageFolder, split: Callable[[pl.DataFrame, int], tuple[pl.DataFrame, pl.DataFrame]]
    ) -> StageResult:
        """Split each shard's rows, with its number, into kept and dropped ones."""
        problems = self.problems.folder

        def work(index: int) -> Shard:
            frame = read_shard(problems, "kept", index)
            kept, dropped = split(frame, index)
            return Shard(frame.height, {"kept": kept, "dropped": dropped})

        return self.shard_by_shard(folder, work)

    def compute(
        self,
        folder: StageFolder,
        shards: Iterable[tuple[int, Any]],
        work: Callable[[Sequence[Any]], Sequence[Shard]] = _each,
        *,
        total: int | None,
        rows_in: int | None = None,
        group_rows: int = 0,
        title: str = "",
    ) -> StageResult:
        """Compute unfinished shards in order and write them, then the manifest.

        Args:
            shards: (rows, item) per shard; by default the item is called.
            work: makes the shards of a group's items.
            rows_in: expected rows.
            group_rows: min rows of a group; a killed run loses one group.
        """
        if (result := self.finished(folder)) is not None:
            return result
        row_counts: list[int] = []
        with bar(title or self.stage.title, total) as advance:

            def groups() -> Iterator[tuple[list[int], Callable[[], Sequence[Shard]]]]:
                indices: list[int] = []
                items: list[Any] = []
                for index, (rows, item) in enumerate(shards):
                    row_counts.append(rows)
                    if folder.is_finished(index):
                        advance(rows)
                        continue
                    indices, items = [*indices, index], [*items, item]
                    if sum(row_counts[member] for member in indices) >= group_rows:
                        yield indices, partial(work, items)
                        indices, items = [], []
                if indices:
                    yield indices, partial(work, items)

            for indices, made in current_runner(self.stage.runs_anywhere).map(groups()):
                for index, shard in zip(indices, made, strict=True):
                    folder.write(index, shard)
                    advance(row_counts[index])
        return StageResult(self.stage, folder.folder, folder.close(len(row_counts), rows_in))


def shard_counts(folder: Path, table: str = "kept") -> list[int]:
    """Return each shard's row count in a finished table."""
    return [mark["tables"][table]["rows"] for mark in finished_shards(folder)]


def rows_of(folder: Path, table: str, problem: str, *columns: str) -> pl.DataFrame:
    """Return a problem's rows in a table, by any of these columns, by default ``id``."""
    columns = columns or ("id",)
    files = sorted((folder / table).glob("*.parquet"))
    try:
        is_own = pl.any_horizontal(pl.col(*columns) == problem)
        parts = [pl.scan_parquet(file, glob=False).filter(is_own).collect() for file in files]
        return pl.concat(parts) if parts else pl.DataFrame(schema=dict.fromkeys(columns, pl.String()))
    except pl.exceptions.PolarsError as error:
        table_files(folder, table)  # raises if a file's hash differs
        raise damaged(folder / table, str(error).partition("\n")[0]) from error


def split_rows(
    problems: pl.DataFrame, stage: str, reasons: Sequence[str | None], evidence: Sequence[str]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Split rows into kept and dropped ones; None as reason keeps a row."""
    judged = problems.with_columns(
        pl.lit(stage).alias("stage"),
        pl.Series("reason", reasons, pl.String),
        pl.Series("evidence", evidence, pl.String),
    )
    kept = judged.filter(pl.col("reason").is_null()).select(problems.columns)
    return kept, judged.filter(pl.col("reason").is_not_null()).select(DROPPED.names())
