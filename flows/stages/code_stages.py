"""The code line's stages before any attempt, as bare functions: sources, the filter, the matrix, twins.

Each takes the run and the stages before it, and returns a `Done`; shards keep their numbers from the sources on, so
that a stage finds tests and solutions of its problems in the sources' shard of the same number. Making and deciding
tests is in `flows.stages.code_tests`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import polars as pl

from curation import code_filters, code_matrix, code_sources, sources, tests_agreement, twins
from curation.config import Source
from curation.kattis import Package, find_packages
from curation.records import SourceError
from curation.rows import Row
from curation.store import Shard, Stage, file_digest, read_shard
from curation.verify.code_extraction import CodeLang
from curation.verify.code_judging import Runner, Wanted, problem_of
from curation.verify.programs import CodeProblem
from curation.verify.programs_judge import VERSION as PROGRAMS
from flows.run.run_folder import Done, Run, drive, inputs, shard_counts
from flows.stages.base import shard_by_shard

Work = Callable[[], Shard]


def read_programs(run: Run) -> Done:
    """Problems of all sources with their tests, solutions and limits."""
    recipe = run.recipe
    digests = {source.name: source_digest(source, run.recipe_folder) for source in recipe.sources}
    settings = "-".join([*(source.digest() for source in recipe.sources), str(recipe.shard_rows)])
    stage = Stage(run.where("sources"), "sources", f"{sources.VERSION} {code_sources.VERSION}", settings, digests)

    def shards() -> Iterator[tuple[int, Work]]:
        for source in recipe.sources:
            if source.kind == "kattis":
                yield from _packages(source, run)
            else:
                yield from _rows(source, run)

    return drive(stage, shards(), total=None)


def source_digest(source: Source, folder: Path) -> str:
    """A hash of what a source holds; of packages, the hashes of all their files."""
    if source.kind != "kattis":
        return sources.source_digest(source, folder)
    found = folder / source.path
    if not found.is_dir():
        raise SourceError(f"source {source.name}: there is no folder {found}.")
    files = sorted(file for package in find_packages(found) for file in package.rglob("*") if file.is_file())
    digests = [f"{file.relative_to(found)} {file_digest(file)}" for file in files]
    return code_matrix.text_digest("\n".join(digests))


def check_source(source: Source, folder: Path) -> None:
    """Refuse a source that is not there or not as the recipe says, by reading its first rows."""
    if source.kind == "kattis":
        next(code_sources.read_packages(folder / source.path, f"source {source.name}", 1))
        return
    sources.check_source(source, folder)
    start, rows = next(sources.read_batches(source, folder, 1))
    _problems_of_rows(source, rows, start)


def _rows(source: Source, run: Run) -> Iterator[tuple[int, Work]]:
    for start, rows in sources.read_batches(source, run.recipe_folder, run.recipe.shard_rows):
        yield len(rows), partial(_problems_of_rows, source, rows, start)


def _problems_of_rows(source: Source, rows: list[Row], start: int) -> Shard:
    columns = source.code
    assert columns is not None
    place = f"source {source.name} ({source.path})"
    texts = sources.texts_of(source.columns.statement, rows, place, start)
    whole = [
        code_sources.whole_statement(text, row, columns, f"{place}, row {number}")
        for number, (text, row) in enumerate(zip(texts, rows, strict=True), start)
    ]
    frame = sources.problems_of(source, rows, start, whole)
    return _shard(frame, code_sources.code_tables(frame["id"].to_list(), rows, columns, place, start))


def _packages(source: Source, run: Run) -> Iterator[tuple[int, Work]]:
    start = 0
    place = f"source {source.name}"
    folder = run.recipe_folder / source.path
    for batch in code_sources.read_packages(folder, place, run.recipe.shard_rows, source.limit):
        yield len(batch), partial(_problems_of_packages, source, batch, start)
        start += len(batch)


def _problems_of_packages(source: Source, packages: list[Package], start: int) -> Shard:
    rows = [code_sources.package_row(package) for package in packages]
    statements = []
    for package, row in zip(packages, rows, strict=True):
        samples = code_sources.samples_of(package)
        statements.append(f"{row['statement']}\n\n{samples}".rstrip() if row["statement"] is not None else None)
    mapped = source.model_copy(
        update={"columns": source.columns.model_copy(update={"meta": ("name", "title", "source"), "answer": None})}
    )
    frame = sources.problems_of(mapped, rows, start, statements)
    licenses = pl.Series("license", [row["license"] or source.license for row in rows], pl.String)
    return _shard(frame.with_columns(licenses), code_sources.package_tables(frame["id"].to_list(), packages))


def _shard(frame: pl.DataFrame, tables: code_sources.CodeTables) -> Shard:
    notes = {"other_languages": sum(tables.other_languages.values()), "unreadable_tests": tables.unreadable}
    beside = {"tests": tables.tests, "solutions": tables.solutions, "judging": tables.judging}
    return Shard(frame.height, {"kept": frame, **beside}, notes=notes)


def filter_programs(run: Run, before: Done) -> Done:
    """Problems that cannot be asked as a program that reads and prints leave, as do those without solutions."""

    def work(index: int) -> Shard:
        frame = read_shard(before.folder, "kept", index)
        tables = [read_shard(before.folder, name, index) for name in ("tests", "solutions", "judging")]
        kept, dropped = code_filters.filter_programs(frame, *tables)
        return Shard(frame.height, {"kept": kept, "dropped": dropped})

    stage = Stage(run.where("programs"), "programs", code_filters.VERSION, "", inputs(before))
    return shard_by_shard(stage, before, work)


@dataclass(frozen=True, slots=True)
class Unit:
    """One problem with all that judging it takes. ``tests`` and ``solutions`` are its rows of the sources."""

    row: dict[str, Any]
    tests: pl.DataFrame
    beyond: int  # tests left aside because the problem has more than the recipe's most
    solutions: pl.DataFrame
    judging: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.row["id"])

    def problem(self, run: Run, time_s: float | None = None) -> CodeProblem:
        """The problem as the sandbox judges it; ``time_s`` is its measured limit where the source names none."""
        matrix = run.recipe.code.matrix
        judging = self.judging if time_s is None else {**self.judging, "time_limit_s": time_s}
        pairs = self.tests.select("input", "output").iter_rows()
        return problem_of(self.name, pairs, judging, matrix.time_s, matrix.memory_mb)

    def candidates(self, run: Run) -> list[code_matrix.Candidate]:
        """The solutions that are run."""
        rows = self.solutions.select("index", "lang", "code", "right").iter_rows()
        return code_matrix.draw_candidates(rows, run.recipe.code.matrix)


def units(run: Run, before: Done, index: int) -> Iterator[Unit]:
    """The problems of a shard, one at a time, with their tests up to the recipe's most."""
    folder = run.where("sources")
    frame = read_shard(before.folder, "kept", index)
    names = frame["id"].to_list()
    tests = read_shard(folder, "tests", index).filter(pl.col("problem").is_in(names))
    solutions = read_shard(folder, "solutions", index).filter(pl.col("problem").is_in(names))
    judging = {row["problem"]: row for row in read_shard(folder, "judging", index).iter_rows(named=True)}
    most = run.recipe.code.matrix.tests
    for row in frame.iter_rows(named=True):
        name = row["id"]
        own = tests.filter(pl.col("problem") == name).sort("index")
        yield Unit(
            row,
            own.head(most),
            max(0, own.height - most),
            solutions.filter(pl.col("problem") == name).sort("index"),
            judging[name],
        )


MEASURED_LIMITS = pl.Schema(
    {
        "problem": pl.String(),
        "time_limit_s": pl.Float64(),  # the source's, or the measured one
        "judged": pl.Int32(),  # runs
        "broken": pl.Int32(),  # runs of which nothing is known
        "why": pl.String(),
    }
)


def run_matrix(run: Run, before: Done) -> Done:
    """Every solution of every problem on every test."""
    settings = run.recipe.code.matrix
    version = f"{code_matrix.VERSION} {PROGRAMS}"
    stage = Stage(run.where("matrix"), "matrix", version, settings.digest(), inputs(before))
    with Runner(run.recipe.workers) as runner:

        def work(index: int) -> Shard:
            runs, outputs, limits = [code_matrix.MEASURED.to_frame()], [code_matrix.OUTPUT.to_frame()], []
            count = beyond = 0
            for unit in units(run, before, index):
                count += 1
                beyond += unit.beyond
                given = unit.judging["time_limit_s"] is not None
                known = unit.tests["output"].is_not_null().to_list()
                made = code_matrix.run_matrix(
                    runner,
                    unit.name,
                    unit.problem(run),
                    unit.candidates(run),
                    settings,
                    time_given=given,
                    indices=unit.tests["index"].to_list(),
                    known=known,
                )
                runs.append(made.runs)
                outputs.append(made.outputs)
                limits.append((unit.name, made.time_limit_s, made.judged, made.broken, made.why))
            tables = {
                "runs": pl.concat(runs),
                "outputs": pl.concat(outputs),
                "limits": pl.DataFrame(limits, schema=MEASURED_LIMITS, orient="row"),
            }
            notes = {"judged": sum(row[2] for row in limits), "broken": sum(row[3] for row in limits)}
            notes["tests_beyond"] = beyond  # more than `code.matrix.tests` of a problem: not run, not kept
            return Shard(count, tables, kept_rows=count, notes=notes)

        return shard_by_shard(stage, before, work)


def make_twins(run: Run, before: Done) -> Done:
    """Each problem once for every language that it can be asked for in."""
    settings = run.recipe.code.twins

    def work(index: int) -> Shard:
        frame = read_shard(before.folder, "kept", index)
        runs = read_shard(before.folder, "runs", index)
        decisions = read_shard(before.folder, "decisions", index).filter(pl.col("decision") != "discard")
        aside = tests_agreement.set_aside(runs, run.recipe.code.agreement)
        voting = runs.join(aside, on=["problem", "solution"], how="anti")
        limits = read_shard(before.folder, "judging", index).select("problem", "time_limit_s")
        asked = twins.asked_for(voting, decisions.select("problem", "test", "output"), limits, settings)
        kept, dropped = twins.make_twins(frame, asked)
        return Shard(kept.height + dropped.height, {"kept": kept, "dropped": dropped, "asked": asked})

    stage = Stage(run.where("twins"), "twins", twins.VERSION, settings.digest(), inputs(before))
    counts = shard_counts(before.folder)
    return drive(stage, ((rows, partial(work, i)) for i, rows in enumerate(counts)), total=sum(counts))


class Programs:
    """What attempts at the twins are judged by, read shard by shard from what the tests stage made."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._shards: dict[str, tuple[int, str, str]] | None = None
        self._read = lru_cache(maxsize=4)(self._tables)

    def __reduce__(self) -> tuple[type[Programs], tuple[Run]]:
        """On another machine it is read there anew."""
        return Programs, (self._run,)

    def __call__(self, name: str) -> Wanted:
        """The problem of a twin under its limits, and its language."""
        if self._shards is None:
            self._shards = self._places()
        index, group, language = self._shards[name]
        tests, judging = self._read(index)
        settings = self._run.recipe.code
        factor = twins.factor_of(language, settings.twins)
        matrix = settings.matrix
        problem = problem_of(group, tests[group], judging[group], matrix.time_s, matrix.memory_mb, factor)
        return Wanted(problem, CodeLang(language))

    def _places(self) -> dict[str, tuple[int, str, str]]:
        folder = self._run.where("twins")
        found: dict[str, tuple[int, str, str]] = {}
        for index in range(len(shard_counts(folder))):
            rows = read_shard(folder, "kept", index).select("id", "group", "meta").iter_rows()
            found |= {name: (index, group, language_of(meta)) for name, group, meta in rows}
        return found

    def _tables(self, index: int) -> tuple[dict[str, list[tuple[str, str]]], dict[str, dict[str, Any]]]:
        folder = self._run.where("tests")
        tests: dict[str, list[tuple[str, str]]] = {}
        for name, given, wanted in read_shard(folder, "tests", index).select("problem", "input", "output").iter_rows():
            tests.setdefault(name, []).append((given, wanted))
        judging = {row["problem"]: row for row in read_shard(folder, "judging", index).iter_rows(named=True)}
        return tests, judging


def language_of(meta: str | None) -> str:
    """The language that a twin is asked for in."""
    import json

    return str(json.loads(meta or "{}").get(twins.LANGUAGE, "python"))
