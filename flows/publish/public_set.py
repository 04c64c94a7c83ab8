"""Publish a set without the texts that `export.withhold` names, and restore them.

If this leaves anything out, or a problem fails its proof (`curation.scoring.checking`), DIR/public is sent instead of
DIR/curated.

Invariants: no table of DIR/public has a withheld text; rows whose text is not their source's, such as translations,
are left out; a restored text has the withheld one's digest, or stays empty and is reported.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from curation.config import Recipe
from curation.publish.withheld import (
    KEY,
    WITHHELD,
    is_withheld,
    restore_beside,
    restore_texts,
    sources_of_variants,
    with_own_meta,
    withhold_judging,
    withhold_tests,
    withhold_texts,
)
from curation.records import JUDGING, PROBLEM, TEST, SourceError
from curation.storage.stages import atomic_write, read_shard, read_table, write_parquet
from flows.publish.curated_set import published_folder, recipe_text
from flows.publish.mark import read_mark, renew_mark, require_unaltered
from flows.publish.receipts import renew_contents
from flows.publish.versions import newest_run
from flows.run.recipe import parse_recipe
from flows.run.run_folder import Run
from flows.run.stage import shard_counts
from flows.stages.base import JUDGING_TABLE, TESTS_TABLE
from flows.stages.sources import SOURCES, read_again

FOLDER, POINTERS, RECIPE = "public", "withheld/pointers.parquet", "withheld/recipe.toml"
TABLES = ("data", "dropped")
BESIDE = (TESTS_TABLE, JUDGING_TABLE)
_STATE = re.compile(r"(?m)^(  description: rows [0-9a-f]+)(?:, texts \w+)?$")
"""Of the card's header: what is in the files, by which `datasets` distinguishes states of a folder."""


@dataclass(frozen=True, slots=True)
class Restored:
    """The number of withheld texts, and rows without theirs, by source."""

    texts: int
    missing: Mapping[str, tuple[int, ...]]


def make_public(run: Run, failing: Mapping[str, str]) -> Path:
    """Write a new DIR/public from DIR/curated and return it.

    Args:
        failing: ids of left-out problems, with reasons.
    """
    curated, target, aside = run.folder / "curated", run.folder / FOLDER, run.folder / f".aside-{FOLDER}"
    shutil.rmtree(aside, ignore_errors=True)
    shutil.copytree(curated, aside)
    if failing:
        _leave_out(aside, failing)
    if run.recipe.export.withhold:
        _withhold(aside, run)
    renew_contents(aside)
    renew_mark(aside)
    shutil.rmtree(target, ignore_errors=True)
    aside.rename(target)
    return target


def _leave_out(aside: Path, failing: Mapping[str, str]) -> None:
    """Remove problems with their tests and disputes, and list them on the card."""
    for table, name in (("data", "id"), *((table, "problem") for table in BESIDE), ("disputed", "id")):
        for path in sorted((aside / table).glob("*.parquet")):
            rows = pl.read_parquet(path, glob=False).filter(~pl.col(name).is_in([*failing]))
            write_parquet(path, rows)
            if table == "disputed":
                rows.write_ndjson(path.with_name("disputed.jsonl"))
    card = aside / "README.md"
    named = "".join(f"\n- `{name}`: {why}" for name, why in failing.items())
    section = (
        f"\n## Rows Left Out\n\n{len(failing):,} problems fail their proof and are not here. The reference of a "
        f"problem must earn a reward; an empty answer and a near miss must not.\n{named}\n"
    )
    atomic_write(card, _other_state(card.read_text(encoding="utf-8"), failing) + section)


def _other_state(card: str, failing: Mapping[str, str]) -> str:
    """Return the card with a state hash that includes the failing ids."""

    def named(match: re.Match[str]) -> str:
        state = f"{match[2]} {sorted(failing)}"
        return f"{match[1]}{hashlib.blake2b(state.encode(), digest_size=8).hexdigest()}"

    return re.sub(r"(?m)^(  description: rows )([0-9a-f]+)", named, card, count=1)


def _withhold(aside: Path, run: Run) -> None:
    """Remove the texts that `export.withhold` names from a copied set."""
    sources = read_table(SOURCES.folder_in(run), "kept")
    hidden, is_code = _withheld_ids(aside, run.recipe.export.withhold), run.recipe.flow == "curate-code"
    notes, left_out = [WITHHELD.to_frame()], 0
    for table in TABLES:
        for path in sorted((aside / table).glob("*.parquet")):
            rows = pl.read_parquet(path, glob=False)
            named = sources_of_variants(rows, sources) if is_code else sources
            split = withhold_texts(table, rows, rows["id"].is_in(hidden), named)
            write_parquet(path, with_own_meta(split.rows, rows) if is_code else split.rows)
            notes.append(split.withheld)
            left_out += split.left_out
    if is_code:
        beside, tests_left_out = _withhold_beside(aside, run, hidden)
        notes += beside
    for path in sorted((aside / "disputed").glob("*.parquet")):
        queue = pl.read_parquet(path, glob=False).filter(~pl.col("id").is_in(hidden))
        write_parquet(path, queue)
        queue.write_ndjson(path.with_name("disputed.jsonl"))
    write_parquet(aside / POINTERS, pl.concat(notes))
    atomic_write(aside / RECIPE, recipe_text(run))
    _add_section(aside, pl.concat(notes), left_out, tests_left_out if is_code else None)


def restore(folder: Path, home: Path, places: Mapping[str, str]) -> Restored:
    """Restore a set's withheld texts; may be repeated after a kill.

    Args:
        home: base of the recipe's relative paths.
        places: paths or hub names that replace sources, by name.

    Raises:
        SourceError: nothing is withheld, or a source is unknown or unreadable.
    """
    if not (folder / POINTERS).is_file():
        raise SourceError(f"{folder}: nothing is withheld there ({POINTERS} is missing); the texts are in data/.")
    notes = pl.read_parquet(folder / POINTERS)
    recipe = _recipe_of(folder)
    given, is_code = _sources_again(folder, recipe, home, places, notes), recipe.flow == "curate-code"
    absent, members = [WITHHELD.to_frame()], list[pl.DataFrame]()
    for table in TABLES:
        for path in sorted((folder / table).glob("*.parquet")):
            rows = pl.read_parquet(path, glob=False)
            own = notes.join(rows, on=KEY, how="semi")
            sources = sources_of_variants(rows, given["kept"]) if is_code else given["kept"]
            filled, missing = restore_texts(table, rows, own, sources)
            write_parquet(path, filled)
            absent.append(missing)
            members.append(rows.select(*KEY, "group"))
    for table in BESIDE if is_code else ():
        for path in sorted((folder / table).glob("*.parquet")):
            rows = pl.read_parquet(path, glob=False)
            filled, missing = restore_beside(table, rows, notes, pl.concat(members), given[table])
            write_parquet(path, filled)
            absent.append(missing)
    card = folder / "README.md"
    atomic_write(card, _STATE.sub(r"\1, texts restored", card.read_text(encoding="utf-8"), count=1))
    renew_contents(folder)
    renew_mark(folder)
    gone = pl.concat(absent).select("source", "row").unique(maintain_order=True)
    by_source = gone.group_by("source", maintain_order=True).agg(pl.col("row").sort())
    return Restored(notes.height, {source: tuple(at) for source, at in by_source.iter_rows()})


def holds_withheld_texts(folder: Path) -> bool:
    """Return whether a set still holds texts that `export.withhold` names."""
    named = (read_mark(folder) or {}).get("withhold")
    if not named:
        return False
    files = sorted((folder / "data").glob("*.parquet"))
    rows = pl.concat([pl.read_parquet(file, glob=False).select("license", "also_from", "statement") for file in files])
    return bool((is_withheld(rows, named) & rows["statement"].is_not_null()).any())


def lacks_texts(folder: Path) -> bool:
    """Return whether any statement is withheld in this folder."""
    files = (folder / "data").glob("*.parquet")
    return any(pl.read_parquet(file, columns=["statement"], glob=False)["statement"].has_nulls() for file in files)


def sendable(place: Path, failing: Mapping[str, str]) -> Path:
    """Return the folder to publish: the set's own, or DIR/public, newly made.

    Args:
        failing: ids of left-out problems, with reasons.

    Raises:
        SourceError: rows or texts must be left out, without a run's folder.
        StoreError: a file of the set has changed.
    """
    folder = published_folder(place)
    require_unaltered(folder)
    withholds = holds_withheld_texts(folder)
    if not withholds and not failing:
        return folder
    if folder.name != "curated" or not (folder.absolute().parent / "run.json").is_file():
        holds = (
            "texts that `export.withhold` names" if withholds else f"problems that fail their proof ({_first(failing)})"
        )
        raise SourceError(
            f"{folder}: it holds {holds}, and no run's folder is there to take them out by; give the folder of the run."
        )
    return make_public(newest_run(folder.absolute().parent), failing)


def _first(failing: Mapping[str, str]) -> str:
    name, why = next(iter(failing.items()))
    return f"{len(failing):,}, the first is {name}: {why}"


def _withheld_ids(curated: Path, licenses: tuple[str, ...]) -> list[str]:
    """Return the ids and groups of all rows under these licences."""
    ids: set[str] = set()
    for table in TABLES:
        for path in sorted((curated / table).glob("*.parquet")):
            has = pl.read_parquet_schema(path)
            names: list[str] = [name for name in ("id", "group", "license", "also_from") if name in has]
            rows = pl.read_parquet(path, columns=names, glob=False)
            hidden = rows.filter(is_withheld(rows, licenses))
            ids |= {*hidden["id"], *hidden["group"].drop_nulls()}
    return sorted(ids)


def _withhold_beside(aside: Path, run: Run, hidden: list[str]) -> tuple[list[pl.DataFrame], int]:
    """Withhold hidden problems' tests and checkers; return pointers and the number of left-out tests."""
    names = [*KEY, "group"]
    frames = [pl.read_parquet(path, columns=names, glob=False) for path in (aside / "data").glob("*.parquet")]
    rows = pl.concat(frames).filter(pl.col("id").is_in(hidden))
    notes, left_out = [], 0
    for table, withhold in ((TESTS_TABLE, withhold_tests), (JUDGING_TABLE, withhold_judging)):
        for path in sorted((aside / table).glob("*.parquet")):
            beside = pl.read_parquet(path, glob=False)
            own = rows.filter(pl.col("id").is_in(beside["problem"].unique().to_list()))
            if own.height:
                split = withhold(beside, own, _given(run, table, own["group"].unique().to_list()))
                write_parquet(path, split.rows)
                notes.append(split.withheld)
                left_out += split.left_out
    return notes, left_out


def _given(run: Run, table: str, problems: list[str]) -> pl.DataFrame:
    """Return the source's tests or judging rows of some problems."""
    folder = SOURCES.folder_in(run)
    wanted = pl.col("problem").is_in(problems)
    return pl.concat(read_shard(folder, table, index).filter(wanted) for index in range(len(shard_counts(folder))))


def _recipe_of(folder: Path) -> Recipe:
    return parse_recipe(tomllib.loads((folder / RECIPE).read_text(encoding="utf-8")), str(folder / RECIPE))


def _sources_again(
    folder: Path, recipe: Recipe, home: Path, places: Mapping[str, str], notes: pl.DataFrame
) -> dict[str, pl.DataFrame]:
    """Read the withheld rows again, for code with tests and judging rows."""
    named = [source.name for source in recipe.sources]
    if unknown := sorted(places.keys() - set(named)):
        raise SourceError(f"--source {unknown[0]}=…: the set has no such source; it has {', '.join(named)}.")
    found = {"kept": [PROBLEM.to_frame()], TESTS_TABLE: [TEST.to_frame()], JUDGING_TABLE: [JUDGING.to_frame()]}
    for source in recipe.sources:
        wanted = notes.filter(pl.col("source") == source.name).select("source", "row").unique()
        if wanted.is_empty():
            continue
        where = places.get(source.name, source.path)
        if where.startswith("…"):
            raise SourceError(
                f"source {source.name}: its path was one of another machine ({where}); "
                f"give its path here with --source {source.name}=PATH."
            )
        is_given = source.name in places and Path(where).exists()  # else the name of a hub's data set
        moved = source.model_copy(update={"path": str(Path(where).absolute()) if is_given else where})
        for tables in read_again(moved, Run(folder, recipe, home)):
            rows = tables["kept"].join(wanted, on=["source", "row"], how="semi")
            found["kept"].append(rows)
            for table in BESIDE if recipe.flow == "curate-code" else ():
                found[table].append(tables[table].filter(pl.col("problem").is_in(rows["id"].to_list())))
    return {table: pl.concat(frames) for table, frames in found.items()}


def _add_section(folder: Path, notes: pl.DataFrame, left_out: int, tests_left_out: int | None) -> None:
    """Add the card's section on withheld texts and their restoration."""
    rows = notes.select("table", "source", "row").unique()
    counts = Counter(rows["table"])
    left = f" {left_out:,} more, whose statement or answer is not their source's, were left out." if left_out else ""
    if tests_left_out is not None:
        left += " Their given tests and checkers are withheld, too; tests that were made for the set are here."
        left += f" {tests_left_out:,} given tests that are not in their source as they are were left out."
    section = (
        f"\n## Withheld Texts\n\nThe licences of some sources forbid publishing their texts. {counts['data']:,} "
        f"problems and {counts['dropped']:,} dropped rows are here with id, source, row, licence and measurements, "
        f"and without their texts and evidence.{left} `goldilocks publish DIR --restore` reads the sources again by "
        f"`{RECIPE}`, restores the texts, and checks each by its digest.\n"
    )
    card = folder / "README.md"
    text = card.read_text(encoding="utf-8")
    atomic_write(card, _STATE.sub(r"\1, texts withheld", _without_examples(text), count=1) + section)


def _without_examples(card: str) -> str:
    """Return a card without its section of examples."""
    before, heading, rest = card.partition("\n## Examples\n")
    return before + "\n## " + rest.partition("\n## ")[2] if heading else card
