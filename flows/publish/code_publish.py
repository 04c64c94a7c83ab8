"""Publish a code set's tests and judging rows, and the card's figures on tests.

Rows have the language variant's own id and time limits.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import polars as pl

from curation.programs import language_variants
from curation.programs.deciding import GIVEN_TESTS
from curation.programs.generation import MIN_VOTES_UNVALIDATED
from curation.publish.pages import render_template
from curation.records import JUDGING, TEST
from curation.storage.sorted_parts import write_files
from curation.storage.stages import read_manifest, read_shard, read_table
from flows.run.run_folder import Run
from flows.run.stage import JUDGING_TABLE, TESTS_TABLE, StageResult, shard_counts
from flows.stages.export import EXPORT
from flows.stages.tests import EXECUTION_MATRIX, TESTS, language_of

FILE_BYTES = 256 << 20
"""Bytes after which a file of tests is closed."""


def write_tables(run: Run, exported: StageResult, folder: Path) -> None:
    """Write the exported problems' ``tests/`` and ``judging/`` into the set's folder."""
    for name, schema, read in ((TESTS_TABLE, TEST, _tests), (JUDGING_TABLE, JUDGING, _judging)):
        frames = (read(run, exported, index) for index in range(len(shard_counts(exported.folder))))
        write_files(folder / name, name, frames, schema, FILE_BYTES, pl.DataFrame.estimated_size)


def _of_variants(run: Run, exported: StageResult, index: int, table: str) -> pl.DataFrame:
    """Return a table's rows per language variant of a shard, with its id and language."""
    rows = read_shard(exported.folder, "kept", index).select("id", "group", "meta").iter_rows()
    variants = [(name, group, language_of(meta)) for name, group, meta in rows]
    schema = {"variant": pl.String, "problem": pl.String, "language": pl.String}
    found = read_shard(TESTS.folder_in(run), table, index)
    joined = pl.DataFrame(variants, schema, orient="row").join(found, on="problem", maintain_order="left")
    return joined.drop("problem").rename({"variant": "problem"})


def _tests(run: Run, exported: StageResult, index: int) -> pl.DataFrame:
    tests = _of_variants(run, exported, index, TESTS_TABLE).select(TEST.names())
    return tests.with_columns(pl.int_range(pl.len(), dtype=pl.Int32).over("problem").alias("index"))


def _judging(run: Run, exported: StageResult, index: int) -> pl.DataFrame:
    judging, code = _of_variants(run, exported, index, JUDGING_TABLE), run.recipe.code
    factors = [language_variants.TIME_FACTORS[language] for language in judging["language"]]
    limits = pl.col("time_limit_s").fill_null(code.time_s) * pl.Series("factor", factors, pl.Float64)
    memory = pl.col("memory_mb").fill_null(code.memory_mb)
    return judging.with_columns(time_limit_s=limits, memory_mb=memory).select(JUDGING.names()).cast(JUDGING)


def tests_section(run: Run) -> str:
    """Return the card's section on tests."""
    tested, matrix = read_manifest(TESTS.folder_in(run)), read_manifest(EXECUTION_MATRIX.folder_in(run))
    assert tested is not None
    assert matrix is not None
    exported = read_table(EXPORT.folder_in(run), "kept", ["group", "meta"])
    groups = set(exported["group"]) if exported.height else set()
    tests = read_table(TESTS.folder_in(run), TESTS_TABLE, ["problem"])
    languages = Counter(map(language_of, exported["meta"] if exported.height else ()))
    return render_template(
        Path(__file__).with_name("tests.md.jinja"),
        notes=tested.notes,
        given=tested.notes[GIVEN_TESTS],
        in_set=tests.filter(pl.col("problem").is_in(list(groups))).height if tests.height else 0,
        runs=matrix.notes["judged"],
        languages=sorted(languages.items()),
        min_votes=MIN_VOTES_UNVALIDATED,
    ).rstrip("\n")
