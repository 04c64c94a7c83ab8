"""Read rows of all sources as problems, with code's tests, solutions and limits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from curation.config import Recipe, Source
from curation.licenses import UNKNOWN, conflict
from curation.publish.withheld import is_withheld
from curation.records import SourceError
from curation.sources import code_problems, problems, reading, tables
from curation.sources.kattis import read_package
from curation.sources.reading import STEPS
from curation.sources.rows import BadRowError, MissingSourceError, Row, TableState
from curation.storage.remote import is_url
from curation.storage.stages import Shard, read_json, read_table, write_json
from flows.run.progress import warn
from flows.run.run_folder import Run
from flows.run.runner import Work
from flows.run.stage import JUDGING_TABLE, SOLUTIONS_TABLE, TESTS_TABLE, Stage, StageResult, StageRun


def read_sources(job: StageRun) -> StageResult:
    """Read the rows of all sources, in order."""
    recipe, run = job.recipe, job.run
    sources = recipe.read_sources
    states = {source.name: source_state(source, run.recipe_folder) for source in sources}
    settings = "-".join([*(source.digest() for source in sources), str(recipe.shard_rows)])
    of_code = any(source.domain == "code" for source in sources)
    version = f"{problems.VERSION} {code_problems.VERSION}" if of_code else problems.VERSION
    folder = job.open(version, settings, digests={name: state.digest for name, state in states.items()})
    counts = {source.name: Counter(dict.fromkeys(STEPS, 0)) for source in sources}
    parts = (part for source in sources for part in _parts(source, run, counts[source.name]))
    result = job.compute(folder, parts, total=None)
    if not result.reused:
        table = {name: {**asdict(state), **counts[name]} for name, state in states.items()}
        write_json(result.folder / STATES, table)
        for source in sources:
            if source.join is not None and not counts[source.name]["matched"]:
                path = source.join.path
                text = f"source {source.name}: no row of it has a match in {path}; check `on` and `key`"
                warn(run.folder, SOURCES.name, text)
    check_licenses(recipe, result.folder)
    return result


STATES = "sources.json"  # in the stage's folder: each source's commit, digest and row counts


def read_states(folder: Path) -> dict[str, dict[str, Any]]:
    """Return what is stored of each source; empty for older runs."""
    return read_json(folder / STATES, remedy=folder) or {}


def check_licenses(recipe: Recipe, folder: Path) -> None:
    """Refuse rows whose licence conflicts with the card's, except withheld ones.

    Raises:
        SourceError: there are such rows.
    """
    card = recipe.export.license
    if conflict(UNKNOWN, card) is None:
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
                f'{card}; leave them out, name another licence, or set `export.license = "other"`.'
            )


def read_again(source: Source, run: Run) -> Iterator[Mapping[str, pl.DataFrame]]:
    """Yield a source's tables by shard, as this stage would keep them.

    ``kept`` has `PROBLEM` rows; code also has tests and judging.
    """
    for _, work in _parts(source, run, Counter()):
        yield work().tables


def source_state(source: Source, folder: Path) -> TableState:
    """Return a source's digest and a hub set's commit."""
    with _naming_the_way_out(source):
        return tables.source_state(source, folder)


def require_source(source: Source, folder: Path) -> None:
    """Refuse a missing source, or one unlike the recipe, by reading its first rows."""
    with _naming_the_way_out(source):
        if source.kind == "kattis":
            source = source.model_copy(update={"limit": 1 + source.bad_rows})
        reading.check_source(source, folder, partial(_built, source))


def _parts(source: Source, run: Run, counts: Counter[str]) -> Iterator[tuple[int, Work]]:
    """Yield rows and work per shard of a source.

    All shards have the same tables: those of bad rows if any source allows some.
    """
    sets_aside = any(source.bad_rows for source in run.recipe.read_sources)
    with _naming_the_way_out(source):
        batches = reading.read_parts(source, run.recipe_folder, run.recipe.shard_rows, partial(_built, source), counts)
        for part in batches:
            aside = {"dropped": part.dropped, reading.TABLE: part.quarantine} if sets_aside else {}
            yield part.rows, partial(replace, part.built, rows_in=part.rows, tables={**part.built.tables, **aside})


@contextmanager
def _naming_the_way_out(source: Source) -> Iterator[None]:
    try:
        yield
    except MissingSourceError as error:
        way_out = f'To go on without it, set `left_out = ["{source.name}"]`; the card will state it.'
        raise SourceError(f"{error} {way_out}") from error


def _built(source: Source, rows: Sequence[Row], positions: Sequence[int]) -> Shard:
    if source.kind == "kattis":
        return _problems_of_packages(source, rows, positions)
    if source.code is None:
        return Shard(len(rows), {"kept": problems.problem_rows(source, rows, positions)})
    texts = problems.read_texts(source.columns.statement, rows)
    statements = [code_problems.whole_statement(text, row, source.code) for text, row in zip(texts, rows, strict=True)]
    frame = problems.problem_rows(source, rows, positions, statements)
    return _with_tables(frame, code_problems.code_tables(frame["id"].to_list(), rows, source.code, source.processes))


def _problems_of_packages(source: Source, rows: Sequence[Row], positions: Sequence[int]) -> Shard:
    try:
        packages = [read_package(row["package"]) for row in rows]
    except SourceError as error:
        raise BadRowError(str(error)) from error
    described = [code_problems.package_row(package) for package in packages]
    own = {"statement": "statement", "meta": ("name", "title", "source"), "answer": None}
    mapped = source.model_copy(update={"columns": source.columns.model_copy(update=own)})
    frame = problems.problem_rows(mapped, described, positions)
    licenses = pl.Series("license", [row["license"] or source.license for row in described], pl.String)
    code = code_problems.package_tables(frame["id"].to_list(), packages, source.processes)
    return _with_tables(frame.with_columns(licenses), code)


def _with_tables(frame: pl.DataFrame, code: code_problems.CodeTables) -> Shard:
    notes = {"other_languages": sum(code.other_languages.values()), "unreadable_tests": code.unreadable}
    code_tables = {TESTS_TABLE: code.tests, SOLUTIONS_TABLE: code.solutions, JUDGING_TABLE: code.judging}
    return Shard(frame.height, {"kept": frame, **code_tables}, notes=notes)


def _check(run: Run) -> None:
    for source in run.recipe.read_sources:
        require_source(source, run.recipe_folder)
        for table in (source, source.joined):
            if table is not None:
                require_not_written(run, table, run.recipe_folder)


def require_not_written(run: Run, source: Source, home: Path) -> None:
    """Refuse a table in the run's own stages or set.

    Raises:
        SourceError: it is there, or missing.
    """
    if is_url(source.path) or source.is_made or source.kind == "python":
        return
    is_folder = source.kind in ("dataset", "kattis")
    for path in [home / source.path] if is_folder else tables.table_files(source, home):
        if any(path.resolve().is_relative_to((run.folder / own).resolve()) for own in ("stages", "curated")):
            raise SourceError(f"{path} is written by this run and cannot be its source too; give another --out.")


def made_phrase(source: Source) -> str:
    """Return a procedural source's generator, levels and rows, in words."""
    levels = len(source.parameters)
    reserve = f" and {source.reserve_per_level:,} in reserve" if source.reserve_per_level else ""
    each = f"{source.rows_per_level:,} rows{reserve}"
    return f"`{source.generator}`, {levels:,} {'level' if levels == 1 else 'levels'} of {each}"


def _describe(run: Run) -> Iterator[str]:
    for source in run.recipe.sources:
        if source.name in run.recipe.left_out:
            yield f"source {source.name}: left out"
            continue
        of_which = f" where {source.where}" if source.where else ""
        joined = f", joined with {source.join.kind} {source.join.path}" if source.join else ""
        drawn = ", drawn by its quota" if source.quota else ""
        limit = f", at most {source.limit:,} rows" if source.limit else ""
        made = f" ({made_phrase(source)})" if source.is_made else ""
        which = f"{made}{of_which}{joined}{drawn}{limit}"
        yield f"source {source.name}: {source.kind}{'' if made else f' {source.path}'}{which}, licence {source.license}"


SOURCES = Stage(
    name="sources",
    title="Sources",
    folder="stages/01-sources",
    work=read_sources,
    check=_check,
    describe=_describe,
)
