"""Publish a code set's tests and judging rows, and the card's figures on tests.

Rows have the language variant's own id and time limits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import polars as pl

from curation.programs import language_variants
from curation.programs.deciding import GIVEN_TESTS
from curation.programs.generation import MIN_VOTES_UNVALIDATED
from curation.publish.cards.words import capital, count_phrase, share
from curation.publish.pages import Section, Table
from curation.records import JUDGING, TEST
from curation.storage.sorted_parts import write_files
from curation.storage.stages import read_manifest, read_shard, read_table
from curation.verify.programs.toolchain import STANDARDS
from flows.run.run_folder import Run
from flows.run.stage import JUDGING_TABLE, TESTS_TABLE, StageResult, shard_counts
from flows.stages.export import EXPORT
from flows.stages.tests import EXECUTION_MATRIX, TESTS, language_of

RUN_OF = ["problem", "solution", "standard"]
FILE_BYTES = 256 << 20
"""Bytes after which a file of tests is closed."""


def write_beside(run: Run, exported: StageResult, folder: Path) -> None:
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


def tests_section(run: Run) -> Section:
    """Return the card's section on tests."""
    tested, matrix = read_manifest(TESTS.folder_in(run)), read_manifest(EXECUTION_MATRIX.folder_in(run))
    assert tested is not None
    assert matrix is not None
    notes, exported = tested.notes, read_table(EXPORT.folder_in(run), "kept", ["group", "meta"])
    groups = set(exported["group"]) if exported.height else set()
    tests = read_table(TESTS.folder_in(run), TESTS_TABLE, ["problem"])
    counts = {
        "Read, of the problems that were run": notes[GIVEN_TESTS] - notes["power_made"],
        "Discarded": notes["tests_discarded"],
        "Of these, inputs that a validator refuses": notes["refused_given"] or None,
        "Given another expected output": notes["tests_corrected"],
        f"Generated and kept, of {notes['power_tried']:,} inputs tried": notes["power_made"],
        "Inputs made that a validator refused": notes["power_refused"] or None,
        "In the set": tests.filter(pl.col("problem").is_in(list(groups))).height if tests.height else 0,
        "Runs of solutions on tests": matrix.notes["judged"],
    }
    rows = [(name, f"{count:,}") for name, count in counts.items() if count is not None]
    languages = Counter(map(language_of, exported["meta"] if exported.height else ()))
    asked = ", ".join(f"{language}: {count:,}" for language, count in sorted(languages.items()))
    older = older_standards(read_table(TESTS.folder_in(run), "runs", RUN_OF), groups)
    variants = f"Asked for in {asked or 'no language'}. Language variants of a problem share their `group`."
    if older:
        accepted = ", ".join(f"{standard}: {count:,}" for standard, count in older.items())
        variants += f" Solutions in C++ that only an older standard accepts: {accepted}."
    return Section("Tests", [how_tested(notes), Table(("Tests", ""), rows, "lr"), _power(notes), variants])


def how_tested(notes: Mapping[str, int]) -> str:
    """Return the card's text on tests and validators."""
    sentences = [
        "Every solution was run on every test of its problem. A test on which the solutions do not agree, or whose "
        "input is not allowed, was discarded; if they agree on another output than the expected one, that output "
        "replaced it; problems with too few tests got new ones, on which all solutions that vote agree."
    ]
    package, model, none = (notes[f"vouched_{by}"] for by in ("package", "model", "none"))
    if package + model:
        sentences.append(
            f"A validator states which inputs are allowed for {count_phrase(package + model, 'problem')} "
            f"({package:,} by the package's own, {model:,} by one that a model wrote and that was checked on given and "
            "spoiled inputs)."
        )
    if none:
        sentences.append(
            f"For {count_phrase(none, 'problem')} there is none: a model's programs wrote the inputs of their "
            f"{count_phrase(notes['made_unvouched'], 'generated test')}, and at least {MIN_VOTES_UNVALIDATED} "
            "solutions, and two thirds of those not known to be wrong, agreed on each."
        )
    if notes["validators_aside"]:
        sentences.append(f"Validators of {count_phrase(notes['validators_aside'], 'problem')} were not believed.")
    return " ".join([*sentences, "`tests/` holds the tests, `judging/` the limits and checkers."])


def _power(notes: Mapping[str, int]) -> str | None:
    wrong = notes["power_wrong"]
    if not wrong:
        return None
    weak = count_phrase(notes["weakly_tested"], "problem")
    return (
        f"Of {count_phrase(wrong, 'solution')} known to be wrong, the tests of the sources that stayed catch "
        f"{share(notes['power_caught_given'], wrong)}; with the generated ones it is "
        f"{share(notes['power_caught'], wrong)}. {capital(weak)} with a known wrong solution that passes every test."
    )


def older_standards(runs: pl.DataFrame, problems: set[str]) -> dict[str, int]:
    """Count solutions that only an older C++ standard accepts, by standard."""
    if runs.is_empty():
        return {}
    older = runs.filter(pl.col("problem").is_in(list(problems)) & (pl.col("standard") != STANDARDS[0])).unique()
    return dict(older.group_by("standard").len().sort("standard", descending=True).iter_rows())
