"""Publish a set without the texts that `export.withhold` names, and restore them.

If anything is left out, DIR/public is sent instead of DIR/curated.

Invariants: no table of DIR/public has a withheld text; rows whose text is not their source's, such as translations, are
left out.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import tomllib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from curation.config import Recipe
from curation.publish.withheld import MADE, PLACE, WITHHELD, is_withheld, restore_texts, source_texts, withhold_texts
from curation.records import PROBLEM, SourceError
from curation.storage.stages import atomic_write, read_shard, read_table, write_parquet
from flows.publish.curated_set import published_folder, recipe_text
from flows.publish.disputes import write_disputes
from flows.publish.mark import read_mark, renew_mark, require_unaltered
from flows.publish.receipts import renew_contents
from flows.publish.versions import newest_run
from flows.run.recipe import parse_recipe
from flows.run.run_folder import Run
from flows.run.stage import shard_counts
from flows.stages.base import JUDGING_TABLE, TESTS_TABLE
from flows.stages.sources import SOURCES, read_again

FOLDER, DIGESTS, RECIPE = "public", "withheld/digests.parquet", "withheld/recipe.toml"
TABLES = ("data", "dropped")
BESIDE = (TESTS_TABLE, JUDGING_TABLE)
_STATE = re.compile(r"(?m)^(  description: rows [0-9a-f]+)(?:, texts \w+)?$")
"""The card's state of the files, by which `datasets` distinguishes sets."""


@dataclass(frozen=True, slots=True)
class Restored:
    """The number of withheld texts, and rows without theirs, by source."""

    texts: int
    missing: Mapping[str, tuple[int, ...]]


def make_public(run: Run, failing: Mapping[str, str]) -> Path:
    """Write a new DIR/public, without failing problems, and return it."""
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
    for table, name in (("data", "id"), *((table, "problem") for table in BESIDE)):
        for path in sorted((aside / table).glob("*.parquet")):
            write_parquet(path, pl.read_parquet(path, glob=False).filter(~pl.col(name).is_in([*failing])))
    _leave_undisputed(aside, [*failing])
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


def _leave_undisputed(aside: Path, problems: Collection[str]) -> None:
    for path in sorted((aside / "disputed").glob("*.parquet")):
        queue = pl.read_parquet(path, glob=False)
        write_disputes(queue.filter(~pl.col("id").is_in(list(problems))), path.parent)


def _withhold(aside: Path, run: Run) -> None:
    hidden = _withheld_ids(aside, run.recipe.export.withhold)
    members, lost = (_places(aside, table).filter(pl.col("id").is_in(hidden)) for table in TABLES)
    named = pl.concat([members, lost]).select(PLACE).unique()
    sources = read_table(SOURCES.folder_in(run), "kept").join(named, on=PLACE, how="semi")
    given = [_given(run, table, sources["id"]) for table in BESIDE] if _is_code(run.recipe) else []
    texts = source_texts(sources, None if _is_code(run.recipe) else run.recipe.statements, given)
    notes, left_out = [WITHHELD.to_frame()], Counter[str]()
    for table, path in _files(aside):
        rows = pl.read_parquet(path, glob=False)
        if table in TABLES:
            split = withhold_texts(table, rows, rows["id"].is_in(hidden), texts)
        else:
            own = rows.rename({"problem": "id"}).join(members, on="id", how="left", maintain_order="left")
            is_given = pl.col("source").is_not_null() & (
                ~pl.col("origin").is_in(MADE) if table == TESTS_TABLE else True
            )
            split = withhold_texts(table, own, own.select(is_given).to_series(), texts)
        write_parquet(path, split.rows.rename({} if table in TABLES else {"id": "problem"}).select(rows.columns))
        notes.append(split.withheld)
        left_out[table] += split.left_out
    _leave_undisputed(aside, hidden)
    write_parquet(aside / DIGESTS, pl.concat(notes))
    atomic_write(aside / RECIPE, recipe_text(run))
    _add_section(aside, pl.concat(notes), left_out, is_code=_is_code(run.recipe))


def restore(folder: Path, home: Path, places: Mapping[str, str]) -> Restored:
    """Restore a set's withheld texts; may be repeated after a kill.

    Args:
        home: base of the recipe's relative paths.
        places: paths or hub names that replace sources, by name.

    Raises:
        SourceError: nothing is withheld, or a source is unknown or unreadable.
    """
    if not (folder / DIGESTS).is_file():
        raise SourceError(f"{folder}: nothing is withheld there ({DIGESTS} is missing); the texts are in data/.")
    notes = pl.read_parquet(folder / DIGESTS)
    texts, absent = _texts_again(folder, home, places, notes), [WITHHELD.to_frame()]
    for table, path in _files(folder):
        rows = pl.read_parquet(path, glob=False)
        filled, missing = restore_texts(table, rows.rename({"problem": "id"} if table in BESIDE else {}), notes, texts)
        write_parquet(path, filled.rename({"id": "problem"} if table in BESIDE else {}))
        absent.append(missing)
    card = folder / "README.md"
    atomic_write(card, _STATE.sub(r"\1, texts restored", card.read_text(encoding="utf-8"), count=1))
    renew_contents(folder)
    renew_mark(folder)
    gone = pl.concat(absent).select(PLACE).unique(maintain_order=True)
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
    ids: set[str] = set()
    for path in (path for table, path in _files(curated) if table in TABLES):
        has = pl.read_parquet_schema(path)
        names: list[str] = [name for name in ("id", "group", "license", "also_from") if name in has]
        rows = pl.read_parquet(path, columns=names, glob=False)
        hidden = rows.filter(is_withheld(rows, licenses))
        ids |= {*hidden["id"], *hidden["group"].drop_nulls()}
    return sorted(ids)


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    for table in (*TABLES, *BESIDE):
        for path in sorted((folder / table).glob("*.parquet")):
            yield table, path


def _places(folder: Path, table: str) -> pl.DataFrame:
    files = sorted((folder / table).glob("*.parquet"))
    return pl.concat(pl.read_parquet(path, columns=[*PLACE, "id"], glob=False) for path in files)


def _is_code(recipe: Recipe) -> bool:
    return recipe.flow == "curate-code"


def _given(run: Run, table: str, problems: pl.Series) -> pl.DataFrame:
    folder = SOURCES.folder_in(run)
    wanted = pl.col("problem").is_in(problems.implode())
    return pl.concat(read_shard(folder, table, index).filter(wanted) for index in range(len(shard_counts(folder))))


def _texts_again(folder: Path, home: Path, places: Mapping[str, str], notes: pl.DataFrame) -> pl.DataFrame:
    recipe = parse_recipe(tomllib.loads((folder / RECIPE).read_text(encoding="utf-8")), str(folder / RECIPE))
    named = [source.name for source in recipe.sources]
    if unknown := sorted(places.keys() - set(named)):
        raise SourceError(f"--source {unknown[0]}=…: the set has no such source; it has {', '.join(named)}.")
    beside = (*BESIDE,) if _is_code(recipe) else ()
    found = {"kept": [PROBLEM.to_frame()], **{table: list[pl.DataFrame]() for table in beside}}
    for source in recipe.sources:
        wanted = notes.filter(source=source.name).select(PLACE).unique()
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
            rows = tables["kept"].join(wanted, on=PLACE, how="semi")
            found["kept"].append(rows)
            for table in beside:
                found[table].append(tables[table].filter(pl.col("problem").is_in(rows["id"].implode())))
    settings = None if _is_code(recipe) else recipe.statements
    return source_texts(
        pl.concat(found["kept"]), settings, [pl.concat(found[table]) for table in beside if found[table]]
    )


def _add_section(folder: Path, notes: pl.DataFrame, left_out: Mapping[str, int], *, is_code: bool) -> None:
    counts = Counter(notes.select("table", "source", "row").unique()["table"])
    rows_left = sum(left_out[table] for table in TABLES)
    left = f" {rows_left:,} more, whose statement or answer is not their source's, were left out." if rows_left else ""
    if is_code:
        left += " Their given tests and checkers are withheld, too; tests that were made for the set are here."
        left += f" {left_out[TESTS_TABLE]:,} given tests that are not in their source as they are were left out."
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
    before, heading, rest = card.partition("\n## Examples\n")
    return before + "\n## " + rest.partition("\n## ")[2] if heading else card
