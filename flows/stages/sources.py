"""The first stage of every pipeline: rows of all sources as Problems, of code with tests, solutions and limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from curation.config import Recipe, Source
from curation.licenses import UNKNOWN, conflict
from curation.programs import execution_matrix
from curation.publish.withheld import is_withheld
from curation.records import DROPPED, SourceError
from curation.sources import code_problems, problems, quarantine
from curation.sources.kattis import Package, find_packages
from curation.sources.places import MissingSourceError, joined_place, place_of
from curation.sources.rows import BadRowError, Row
from curation.sources.selection import SelectionCounts
from curation.sources.streams import CUT
from curation.sources.tables import TableState
from curation.storage.stages import Shard, file_digest, read_json, read_table, write_json
from flows.run.progress import warn
from flows.run.run_folder import Run
from flows.run.runner import Work
from flows.run.stage import Stage, StageResult, StageRun
from flows.stages.base import JUDGING_TABLE, SOLUTIONS_TABLE, TESTS_TABLE, require_not_written


def read_sources(job: StageRun) -> StageResult:
    """Read the rows of all sources, in order."""
    recipe, run = job.recipe, job.run
    sources = recipe.read_sources
    states = {source.name: source_state(source, run.recipe_folder) for source in sources}
    settings = "-".join([*(source.digest() for source in sources), str(recipe.shard_rows)])
    of_code = any(source.domain == "code" for source in sources)
    version = f"{problems.VERSION} {code_problems.VERSION}" if of_code else problems.VERSION
    folder = job.open(version, settings, digests={name: state.digest for name, state in states.items()})
    counts = {source.name: SelectionCounts() for source in sources}
    parts = (part for source in sources for part in _parts(source, run, counts[source.name]))
    if any(source.bad_rows for source in sources):
        parts = ((rows, partial(_with_bad_rows, work)) for rows, work in parts)
    result = job.compute(folder, parts, total=None)
    if not result.reused:
        write_states(result.folder, states, counts)
        for source in sources:
            if source.join is not None and not counts[source.name].matched:
                told = f"source {source.name}: no row of it has a match in {source.join.path}; look at `on` and `key`"
                warn(run.folder, SOURCES.name, told)
            if (bad := counts[source.name].joined_bad) and source.join is not None:
                of = f"{bad:,} {'row' if bad == 1 else 'rows'} of {source.join.path}, joined with source {source.name}"
                told = f"{of}, cannot be read and {'is' if bad == 1 else 'are'} set aside: {quarantine.TABLE}"
                warn(run.folder, SOURCES.name, told)
        if any(source.bad_rows for source in sources):
            _warn_of_damage(run, result.folder)
    check_licenses(recipe, result.folder)
    return result


def _warn_of_damage(run: Run, folder: Path) -> None:
    """Say which files ended too early: their last row alone is set aside, and a checksum comes behind all rows."""
    aside = read_table(folder, quarantine.TABLE, ["source", "file", "reason"])
    damaged = aside.filter(pl.col("reason").str.starts_with(CUT)).unique(maintain_order=True)
    for source, file, reason in damaged.iter_rows():
        told = f"source {source}: {file}: {reason}; rows before may be altered, those behind are missing"
        warn(run.folder, SOURCES.name, told)


STATES = "sources.json"
"""In the stage's folder: what each source held when it was read, and how many of its rows were taken."""


def write_states(folder: Path, states: Mapping[str, TableState], counts: Mapping[str, SelectionCounts]) -> None:
    """Write, for each source, its commit and digest, and its rows behind each step of the selection."""
    table = {name: {**asdict(state), **asdict(counts[name])} for name, state in states.items()}
    write_json(folder / STATES, table)


def read_states(folder: Path) -> dict[str, dict[str, Any]]:
    """Return what `write_states` wrote, by source; empty for a run of before it was written."""
    return read_json(folder / STATES, remedy=folder) or {}


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
            rows_of = "row" if count == 1 else "rows"
            raise SourceError(
                f"source {source}: {count:,} {rows_of} ({named}) under {license}, which {why}, and `export.license` is "
                f"{card}; leave them out, name another licence, or set `export.mixed_licenses = true`."
            )


def read_again(source: Source, run: Run) -> Iterator[Mapping[str, pl.DataFrame]]:
    """Yield a source's tables as the first stage keeps them, shard by shard; no stage is made of them.

    ``kept`` has the rows in the `PROBLEM` schema; of code there are tests and judging, too.
    """
    for _, work in _parts(source, run, SelectionCounts()):
        yield work().tables


def source_state(source: Source, folder: Path) -> TableState:
    """Return the digest of a source's content, of packages that of all their files, and a hub set's commit.

    Raises:
        SourceError: there is no folder of packages.
    """
    if source.kind != "kattis":
        with _naming_the_way_out(source):
            return problems.source_state(source, folder)
    root = folder / source.path
    if not root.is_dir():
        raise SourceError(f"source {source.name}: there is no folder {root}.")
    files = sorted(file for package in find_packages(root) for file in package.rglob("*") if file.is_file())
    digests = [f"{file.relative_to(root)} {file_digest(file)}" for file in files]
    return TableState(execution_matrix.text_digest("\n".join(digests)))


def require_source(source: Source, folder: Path) -> None:
    """Refuse a source that is not there or not as the recipe says, by reading its first rows."""
    if source.kind == "kattis":
        refused: list[code_problems.RefusedPackage] | None = [] if source.bad_rows else None
        next(code_problems.read_packages(folder / source.path, f"source {source.name}", 1, refused=refused), None)
    elif source.bad_rows:
        with _naming_the_way_out(source):
            next(_parts_with_quarantine(source, folder, problems.FIRST_ROWS, SelectionCounts()))
    else:
        with _naming_the_way_out(source):
            problems.check_source(source, folder)
            if source.domain == "code":
                positions, rows = next(problems.read_batches(source, folder, 1))
                _problems_of_rows(source, rows, positions)


def _parts(source: Source, run: Run, counts: SelectionCounts) -> Iterator[tuple[int, Work]]:
    """Yield rows and work per shard of a source."""
    if source.kind == "kattis":
        yield from _packages(source, run)
    elif source.bad_rows:
        yield from _parts_with_quarantine(source, run.recipe_folder, run.recipe.shard_rows, counts)
    elif source.domain == "code":
        with _naming_the_way_out(source):
            for positions, rows in problems.read_batches(source, run.recipe_folder, run.recipe.shard_rows, counts):
                yield len(rows), partial(_problems_of_rows, source, rows, positions)
    else:
        with _naming_the_way_out(source):
            for positions, rows in problems.read_batches(source, run.recipe_folder, run.recipe.shard_rows, counts):
                yield len(rows), partial(_all_kept, problems.problem_rows(source, rows, positions))


def _with_bad_rows(work: Work) -> Shard:
    """Return a shard with tables of bad rows, empty where its source has none: all shards of a run have the same."""
    shard = work()
    empty = {"dropped": pl.DataFrame(schema=DROPPED), quarantine.TABLE: pl.DataFrame(schema=quarantine.QUARANTINE)}
    return replace(shard, tables={**empty, **shard.tables})


@contextmanager
def _naming_the_way_out(source: Source) -> Iterator[None]:
    """Add to the error of a row that cannot be read, or of a source that is gone, how a run goes on without it."""
    try:
        yield
    except BadRowError as error:
        way_out = f"Mend it, or set `bad_rows = 100` for source {source.name}, and up to 100 such rows are set aside."
        raise SourceError(f"{error} {way_out}") from error
    except MissingSourceError as error:
        way_out = f'To go on without it, set `left_out = ["{source.name}"]`; the card will say so.'
        raise SourceError(f"{error} {way_out}") from error


def _parts_with_quarantine(
    source: Source, folder: Path, batch_rows: int, counts: SelectionCounts
) -> Iterator[tuple[int, Work]]:
    """Yield rows and work per shard of a source whose bad rows are set aside; they are found before any work."""

    def build(rows: list[Row], positions: Sequence[int]) -> Shard:
        if source.domain == "code":
            return _problems_of_rows(source, rows, positions)
        return _all_kept(problems.problem_rows(source, rows, positions))

    for part in quarantine.read_parts(source, folder, batch_rows, build, counts):
        tables = {**part.built.tables, "dropped": part.dropped, quarantine.TABLE: part.quarantine}
        yield part.rows, partial(Shard, part.rows, tables, notes=part.built.notes)


def _all_kept(frame: pl.DataFrame) -> Shard:
    return Shard(frame.height, {"kept": frame})


def _problems_of_rows(source: Source, rows: list[Row], positions: Sequence[int]) -> Shard:
    columns = source.code
    assert columns is not None
    place = f"source {source.name} ({source.path})"
    texts = problems.read_texts(source.columns.statement, rows, place, positions)
    statements = [
        code_problems.whole_statement(text, row, columns, f"{place}, row {number}")
        for number, text, row in zip(positions, texts, rows, strict=True)
    ]
    frame = problems.problem_rows(source, rows, positions, statements)
    given = frame["id"].to_list(), rows, columns, place, positions, source.processes
    return _with_tables(frame, code_problems.code_tables(*given))


def _packages(source: Source, run: Run) -> Iterator[tuple[int, Work]]:
    start = 0
    place = f"source {source.name}"
    folder = run.recipe_folder / source.path
    refused: list[code_problems.RefusedPackage] | None = [] if source.bad_rows else None
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
    frame = problems.problem_rows(mapped, rows, range(start, start + len(rows)), statements)
    licenses = pl.Series("license", [row["license"] or source.license for row in rows], pl.String)
    tables = code_problems.package_tables(frame["id"].to_list(), packages, source.processes)
    return _with_tables(frame.with_columns(licenses), tables)


def _with_tables(frame: pl.DataFrame, tables: code_problems.CodeTables) -> Shard:
    notes = {"other_languages": sum(tables.other_languages.values()), "unreadable_tests": tables.unreadable}
    code_tables = {TESTS_TABLE: tables.tests, SOLUTIONS_TABLE: tables.solutions, JUDGING_TABLE: tables.judging}
    return Shard(frame.height, {"kept": frame, **code_tables}, notes=notes)


def _check(run: Run) -> None:
    for source in run.recipe.read_sources:
        require_source(source, run.recipe_folder)
        for place in (place_of(source), joined_place(source)):
            if place is not None:
                require_not_written(run, place, run.recipe_folder)


def _describe(run: Run) -> Iterator[str]:
    for source in run.recipe.sources:
        if source.name in run.recipe.left_out:
            yield f"source {source.name}: left out"
            continue
        of_which = f" where {source.where}" if source.where else ""
        joined = f", joined with {source.join.kind} {source.join.path}" if source.join else ""
        drawn = ", drawn by its quota" if source.quota else ""
        limit = f", at most {source.limit:,} rows" if source.limit else ""
        which = f"{of_which}{joined}{drawn}{limit}"
        yield f"source {source.name}: {source.kind} {source.path}{which}, licence {source.license}"


SOURCES = Stage(
    name="sources",
    title="Sources",
    folder="stages/01-sources",
    work=read_sources,
    check=_check,
    describe=_describe,
)
