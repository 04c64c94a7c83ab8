"""The first stage of every pipeline: rows of all sources as Problems, of code with tests, solutions and limits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import polars as pl

from curation.config import Recipe, Source
from curation.licenses import UNKNOWN, conflict
from curation.programs import execution_matrix
from curation.publish.withheld import is_withheld
from curation.records import SourceError
from curation.sources import code_problems, problems, quarantine
from curation.sources.kattis import Package, find_packages
from curation.sources.rows import BadRowError, Row
from curation.storage.stages import Shard, file_digest, read_table
from flows.run.run_folder import Run
from flows.run.runner import Work
from flows.run.stage import Stage, StageResult, StageRun
from flows.stages.base import JUDGING_TABLE, SOLUTIONS_TABLE, TESTS_TABLE


def read_sources(job: StageRun) -> StageResult:
    """Read the rows of all sources, in order."""
    recipe, run = job.recipe, job.run
    digests = {source.name: source_digest(source, run.recipe_folder) for source in recipe.sources}
    settings = "-".join([*(source.digest() for source in recipe.sources), str(recipe.shard_rows)])
    of_code = any(source.domain == "code" for source in recipe.sources)
    version = f"{problems.VERSION} {code_problems.VERSION}" if of_code else problems.VERSION
    folder = job.open(version, settings, digests=digests)
    result = job.compute(folder, (part for source in recipe.sources for part in _parts(source, run)), total=None)
    check_licenses(recipe, result.folder)
    return result


def check_licenses(recipe: Recipe, folder: Path) -> None:
    """Refuse rows whose licence forbids the one that the card is to name; texts that are withheld promise nothing.

    Raises:
        SourceError: there are some; the message names their source, how many they are, and the first ones.
    """
    card = recipe.export.license
    if recipe.export.mixed_licenses or conflict(UNKNOWN, card) is None:
        return
    rows = read_table(folder, "kept", ["source", "row", "license"])
    if rows.is_empty():
        return
    rows = rows.filter(~is_withheld(rows, recipe.export.withhold))
    for source, license, count, first in (
        rows.group_by("source", "license", maintain_order=True)
        .agg(pl.len(), pl.col("row").head(5).alias("first"))
        .iter_rows()
    ):
        if (why := conflict(license or UNKNOWN, card)) is not None:
            named = ", ".join(map(str, first)) + (" …" if count > len(first) else "")
            raise SourceError(
                f"source {source}: {count:,} rows ({named}) are under {license}, which {why}, and `export.license` is "
                f"{card}; leave them out, name another licence, or set `export.mixed_licenses = true`."
            )


def read_again(source: Source, run: Run) -> Iterator[pl.DataFrame]:
    """Yield the rows of a source as the first stage keeps them, in the `PROBLEM` schema; no stage is made of them."""
    for _, work in _parts(source, run):
        yield work().tables["kept"]


def source_digest(source: Source, folder: Path) -> str:
    """Return the digest of a source's content; of packages, that of all their files.

    Raises:
        SourceError: there is no folder of packages.
    """
    if source.kind != "kattis":
        return problems.source_digest(source, folder)
    root = folder / source.path
    if not root.is_dir():
        raise SourceError(f"source {source.name}: there is no folder {root}.")
    files = sorted(file for package in find_packages(root) for file in package.rglob("*") if file.is_file())
    digests = [f"{file.relative_to(root)} {file_digest(file)}" for file in files]
    return execution_matrix.text_digest("\n".join(digests))


def require_source(source: Source, folder: Path) -> None:
    """Refuse a source that is not there or not as the recipe says, by reading its first rows."""
    if source.kind == "kattis":
        refused: list[code_problems.RefusedPackage] | None = [] if source.on_bad_row == "quarantine" else None
        next(code_problems.read_packages(folder / source.path, f"source {source.name}", 1, refused=refused), None)
    elif source.on_bad_row == "quarantine":
        next(_parts_with_quarantine(source, folder, problems.FIRST_ROWS))
    else:
        with _naming_the_way_out(source):
            problems.check_source(source, folder)
            if source.domain == "code":
                start, rows = next(problems.read_batches(source, folder, 1))
                _problems_of_rows(source, rows, start)


def _parts(source: Source, run: Run) -> Iterator[tuple[int, Work]]:
    """Yield rows and work per shard of a source."""
    if source.kind == "kattis":
        yield from _packages(source, run)
    elif source.on_bad_row == "quarantine":
        yield from _parts_with_quarantine(source, run.recipe_folder, run.recipe.shard_rows)
    elif source.domain == "code":
        with _naming_the_way_out(source):
            for start, rows in problems.read_batches(source, run.recipe_folder, run.recipe.shard_rows):
                yield len(rows), partial(_problems_of_rows, source, rows, start)
    else:
        with _naming_the_way_out(source):
            for frame in problems.read_source(source, run.recipe_folder, run.recipe.shard_rows):
                yield frame.height, partial(_all_kept, frame)


@contextmanager
def _naming_the_way_out(source: Source) -> Iterator[None]:
    """Add to the error of a row that cannot be read how a run goes on without it."""
    try:
        yield
    except BadRowError as error:
        way_out = f'Mend it, or set `on_bad_row = "quarantine"` for source {source.name}, and such rows are set aside.'
        raise SourceError(f"{error} {way_out}") from error


def _parts_with_quarantine(source: Source, folder: Path, batch_rows: int) -> Iterator[tuple[int, Work]]:
    """Yield rows and work per shard of a source whose bad rows are set aside; they are found before any work."""

    def build(rows: list[Row], start: int) -> Shard:
        if source.domain == "code":
            return _problems_of_rows(source, rows, start)
        return _all_kept(problems.problem_rows(source, rows, start))

    for part in quarantine.read_parts(source, folder, batch_rows, build):
        kept = part.built.tables["kept"].with_columns(pl.Series("row", part.positions, pl.Int64))
        tables = {**part.built.tables, "kept": kept, "dropped": part.dropped, quarantine.TABLE: part.quarantine}
        yield part.rows, partial(Shard, part.rows, tables, notes=part.built.notes)


def _all_kept(frame: pl.DataFrame) -> Shard:
    return Shard(frame.height, {"kept": frame})


def _problems_of_rows(source: Source, rows: list[Row], start: int) -> Shard:
    columns = source.code
    assert columns is not None
    place = f"source {source.name} ({source.path})"
    texts = problems.read_texts(source.columns.statement, rows, place, start)
    statements = [
        code_problems.whole_statement(text, row, columns, f"{place}, row {number}")
        for number, (text, row) in enumerate(zip(texts, rows, strict=True), start)
    ]
    frame = problems.problem_rows(source, rows, start, statements)
    return _with_tables(frame, code_problems.code_tables(frame["id"].to_list(), rows, columns, place, start))


def _packages(source: Source, run: Run) -> Iterator[tuple[int, Work]]:
    start = 0
    place = f"source {source.name}"
    folder = run.recipe_folder / source.path
    refused: list[code_problems.RefusedPackage] | None = [] if source.on_bad_row == "quarantine" else None
    for batch in code_problems.read_packages(folder, place, run.recipe.shard_rows, source.limit, refused):
        yield len(batch), partial(_problems_of_packages, source, batch, start)
        start += len(batch)
    if refused:
        dropped, table = quarantine.refused_packages(source, run.recipe_folder, refused, start)
        empty = _problems_of_packages(source, [], start)
        tables = {**empty.tables, "dropped": dropped, quarantine.TABLE: table}
        yield len(refused), partial(Shard, len(refused), tables)


def _problems_of_packages(source: Source, packages: list[Package], start: int) -> Shard:
    rows = [code_problems.package_row(package) for package in packages]
    statements = []
    for package, row in zip(packages, rows, strict=True):
        samples = code_problems.format_samples(package)
        statements.append(f"{row['statement']}\n\n{samples}".rstrip() if row["statement"] is not None else None)
    mapped = source.model_copy(
        update={"columns": source.columns.model_copy(update={"meta": ("name", "title", "source"), "answer": None})}
    )
    frame = problems.problem_rows(mapped, rows, start, statements)
    licenses = pl.Series("license", [row["license"] or source.license for row in rows], pl.String)
    return _with_tables(frame.with_columns(licenses), code_problems.package_tables(frame["id"].to_list(), packages))


def _with_tables(frame: pl.DataFrame, tables: code_problems.CodeTables) -> Shard:
    notes = {"other_languages": sum(tables.other_languages.values()), "unreadable_tests": tables.unreadable}
    code_tables = {TESTS_TABLE: tables.tests, SOLUTIONS_TABLE: tables.solutions, JUDGING_TABLE: tables.judging}
    return Shard(frame.height, {"kept": frame, **code_tables}, notes=notes)


def _check(run: Run) -> None:
    for source in run.recipe.sources:
        require_source(source, run.recipe_folder)
        if source.kind not in ("dataset", "kattis"):
            _require_not_written(run, problems.source_files(source, run.recipe_folder))


def _require_not_written(run: Run, files: list[Path]) -> None:
    """Refuse a source that the run itself would write: its stages and its set."""
    for file in files:
        for place in (run.folder / "stages", run.folder / "curated"):
            if file.resolve().is_relative_to(place.resolve()):
                raise SourceError(f"{file} is written by this run and cannot be its source too; give another --out.")


def _describe(run: Run) -> Iterator[str]:
    for source in run.recipe.sources:
        limit = f", at most {source.limit:,} rows" if source.limit else ""
        yield f"source {source.name}: {source.kind} {source.path}{limit}, licence {source.license}"


SOURCES = Stage(
    name="sources",
    title="Sources",
    folder="stages/01-sources",
    work=read_sources,
    check=_check,
    describe=_describe,
)
