"""Publish a set without the texts that `export.withhold` names, and restore them.

If anything is left out, DIR/public is sent instead of DIR/curated.

Invariants: no table of DIR/public has a withheld text; rows whose text is not their source's, such as translations, are
left out.
"""

from __future__ import annotations

import re
import shutil
import tomllib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from curation.publish.cards.card import rows_digest
from curation.publish.pages import render_template
from curation.publish.withheld import MADE, PLACE, WITHHELD, is_withheld, restore_texts, source_texts, withhold_texts
from curation.records import PROBLEM, SourceError
from curation.storage.stages import atomic_write, read_table, write_parquet
from flows.publish.curated_set import published_folder, read_mark, recipe_text, renew_mark, require_unaltered
from flows.publish.disputes import write_disputes
from flows.publish.receipts import renew_contents
from flows.publish.versions import newest_run
from flows.run.recipe import parse_recipe
from flows.run.run_folder import Run
from flows.run.stage import JUDGING_TABLE, TESTS_TABLE
from flows.stages.sources import SOURCES, read_again

FOLDER, DIGESTS, RECIPE = "public", "withheld/digests.parquet", "withheld/recipe.toml"
TABLES = ("data", "dropped")
CODE_TABLES = (TESTS_TABLE, JUDGING_TABLE)
_STATE = re.compile(r"(?m)^(  description: rows ).+$")
"""The card's hash of the rows, by which `datasets` distinguishes sets."""


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
    for table, path in _files(aside):
        if table != "dropped":
            _write(table, path, _read(table, path).filter(~pl.col("id").is_in([*failing])))
    _leave_undisputed(aside, [*failing])
    named = "".join(f"\n- `{name}`: {why}" for name, why in failing.items())
    section = (
        f"\n## Rows Left Out\n\n{len(failing):,} problems fail their proof and are not here. The reference of a "
        f"problem must earn a reward; an empty answer and a near miss must not.\n{named}\n"
    )
    _write_card(aside, _card(aside) + section)


def _leave_undisputed(aside: Path, problems: Collection[str]) -> None:
    for path in sorted((aside / "disputed").glob("*.parquet")):
        queue = pl.read_parquet(path, glob=False)
        write_disputes(queue.filter(~pl.col("id").is_in(list(problems))), path.parent)


def _withhold(aside: Path, run: Run) -> None:
    hidden, is_code = _withheld_ids(aside, run.recipe.export.withhold), run.recipe.flow == "curate-code"
    places = {table: _scan(aside, table).select(*PLACE, "id").filter(pl.col("id").is_in(hidden)) for table in TABLES}
    members = places["data"].collect()
    named = pl.concat(places.values()).select(PLACE).unique().collect()
    sources = read_table(SOURCES.folder_in(run), "kept").join(named, on=PLACE, how="semi")
    is_of = pl.col("problem").is_in(sources["id"].implode())
    given = [read_table(SOURCES.folder_in(run), table, where=is_of) for table in CODE_TABLES] if is_code else []
    texts = source_texts(sources, None if is_code else run.recipe.statements, given)
    notes, left_out = [WITHHELD.to_frame()], Counter[str]()
    for table, path in _files(aside):
        rows = _read(table, path)
        own, is_hidden = rows, rows["id"].is_in(hidden)
        if table in CODE_TABLES:
            own = rows.join(members, on="id", how="left", maintain_order="left")
            is_made = pl.col("origin").is_in(MADE) if table == TESTS_TABLE else pl.lit(False)
            is_hidden = own.select(given=pl.col("source").is_not_null() & ~is_made)["given"]
        left, noted = withhold_texts(table, own, is_hidden, texts)
        _write(table, path, left.select(rows.columns))
        notes.append(noted)
        left_out[table] += rows.height - left.height
    _leave_undisputed(aside, hidden)
    write_parquet(aside / DIGESTS, pl.concat(notes))
    atomic_write(aside / RECIPE, recipe_text(run))
    _add_section(aside, pl.concat(notes), left_out, is_code=is_code)


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
    texts, missing_texts = _texts_again(folder, home, places, notes), [WITHHELD.to_frame()]
    for table, path in _files(folder):
        filled, missing = restore_texts(table, _read(table, path), notes, texts)
        _write(table, path, filled)
        missing_texts.append(missing)
    _write_card(folder, _card(folder))
    renew_contents(folder)
    renew_mark(folder)
    gone = pl.concat(missing_texts).select(PLACE).unique(maintain_order=True)
    by_source = gone.group_by("source", maintain_order=True).agg(pl.col("row").sort())
    return Restored(notes.height, {source: tuple(at) for source, at in by_source.iter_rows()})


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
    withheld, holds = (read_mark(folder) or {}).get("withhold"), ""
    if failing:
        name, why = next(iter(failing.items()))
        holds = f"problems that fail their proof ({len(failing):,}, the first is {name}: {why})"
    if withheld:
        rows = _scan(folder, "data").select("license", "also_from", "statement").collect()
        if (is_withheld(rows, withheld) & rows["statement"].is_not_null()).any():
            holds = "texts that `export.withhold` names"
    if not holds:
        return folder
    if folder.name != "curated" or not (folder.absolute().parent / "run.json").is_file():
        raise SourceError(
            f"{folder}: it holds {holds}, which only a run's folder can take out; give the folder of the run."
        )
    return make_public(newest_run(folder.absolute().parent), failing)


def _withheld_ids(curated: Path, licenses: tuple[str, ...]) -> list[str]:
    ids: set[str] = set()
    for table in TABLES:
        rows = _scan(curated, table).select("id", "group", "license", "^also_from$").collect()
        hidden = rows.filter(is_withheld(rows, licenses))
        ids |= {*hidden["id"], *hidden["group"].drop_nulls()}
    return sorted(ids)


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    for table in (*TABLES, *CODE_TABLES):
        for path in sorted((folder / table).glob("*.parquet")):
            yield table, path


def _scan(folder: Path, table: str) -> pl.LazyFrame:
    return pl.scan_parquet([path for name, path in _files(folder) if name == table], glob=False)


def _read(table: str, path: Path) -> pl.DataFrame:
    """Return a table's file, with the problem as ``id``."""
    return pl.read_parquet(path, glob=False).rename({"problem": "id"} if table in CODE_TABLES else {})


def _write(table: str, path: Path, rows: pl.DataFrame) -> None:
    write_parquet(path, rows.rename({"id": "problem"} if table in CODE_TABLES else {}))


def _texts_again(folder: Path, home: Path, places: Mapping[str, str], notes: pl.DataFrame) -> pl.DataFrame:
    recipe = parse_recipe(tomllib.loads((folder / RECIPE).read_text(encoding="utf-8")), str(folder / RECIPE))
    is_code, named = recipe.flow == "curate-code", [source.name for source in recipe.sources]
    if unknown := sorted(places.keys() - set(named)):
        raise SourceError(f"--source {unknown[0]}=…: the set has no such source; it has {', '.join(named)}.")
    found: dict[str, list[pl.DataFrame]] = {"kept": [PROBLEM.to_frame()], **{table: [] for table in CODE_TABLES}}
    for source in recipe.sources:
        wanted = notes.filter(source=source.name).select(PLACE).unique()
        if wanted.is_empty():
            continue
        where = places.get(source.name, source.path)
        if where.startswith("…"):
            raise SourceError(
                f"source {source.name}: its path is of another machine ({where}); "
                f"give its path here with --source {source.name}=PATH."
            )
        is_given = source.name in places and Path(where).exists()  # else the name of a hub's data set
        moved = source.model_copy(update={"path": str(Path(where).absolute()) if is_given else where})
        for tables in read_again(moved, Run(folder, recipe, home)):
            rows = tables["kept"].join(wanted, on=PLACE, how="semi")
            found["kept"].append(rows)
            for table in CODE_TABLES if is_code else ():
                found[table].append(tables[table].filter(pl.col("problem").is_in(rows["id"].implode())))
    kept, *code_tables = (pl.concat(frames) for frames in found.values() if frames)
    return source_texts(kept, None if is_code else recipe.statements, code_tables)


def _add_section(folder: Path, notes: pl.DataFrame, left_out: Mapping[str, int], *, is_code: bool) -> None:
    counts = Counter(notes.select("table", "source", "row").unique()["table"])
    section = render_template(
        Path(__file__).with_name("withheld.md.jinja"),
        problems=counts["data"],
        dropped=counts["dropped"],
        rows_left=sum(left_out[table] for table in TABLES),
        tests_left=left_out[TESTS_TABLE],
        is_code=is_code,
        recipe=RECIPE,
    )
    _write_card(folder, re.sub(r"(?s)\n## Examples\n.*?(?=\n## |\Z)", "", _card(folder), count=1) + section)


def _card(folder: Path) -> str:
    return (folder / "README.md").read_text(encoding="utf-8")


def _write_card(folder: Path, text: str) -> None:
    state = rf"\g<1>{rows_digest(_scan(folder, 'data'))}"
    atomic_write(folder / "README.md", _STATE.sub(state, text, count=1))
