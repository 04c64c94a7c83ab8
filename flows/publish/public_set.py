"""A published set that may leave the house: without the texts that `export.withhold` names, and those put back.

    DIR/public/                     what `goldilocks publish` sends in the place of DIR/curated
    DIR/public/withheld/parts.parquet   of each withheld text its digest, and where in its source's row it stands
    DIR/public/withheld/recipe.toml     the recipe, by which `goldilocks restore` reads the sources again

DIR/curated keeps all texts: training, reviews and refreshes on this machine read that one. Invariants: no withheld
text stands in DIR/public, whether a row is kept, dropped or disputed; a row whose text is mostly ours, such as a
translation, is left out there; what is restored has the digest of what was withheld, or stays empty and is named.
"""

from __future__ import annotations

import json
import shutil
import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from curation.publish import cards
from curation.publish.withheld import WITHHELD, is_withheld, restore_texts, withhold_texts
from curation.records import PROBLEM, SourceError
from curation.storage.stages import atomic_write, read_table, write_parquet
from flows.publish.curated_set import MARK, published_folder, recipe_text
from flows.publish.versions import newest_run
from flows.run.recipe import parse_recipe
from flows.run.run_folder import Run
from flows.stages.sources import SOURCES, read_again

FOLDER, PARTS, RECIPE = "public", "withheld/parts.parquet", "withheld/recipe.toml"
TABLES = ("data", "dropped")
_LEFT_BEHIND = ("translations",)  # replies and attempts hold texts, too


@dataclass(frozen=True, slots=True)
class Restored:
    """How many texts there are, and the places of those that could not be put back, by source."""

    texts: int
    missing: Mapping[str, tuple[int, ...]]


def make_public(run: Run) -> Path:
    """Write DIR/public from DIR/curated and return it; it is made anew each time."""
    curated, target, aside = run.folder / "curated", run.folder / FOLDER, run.folder / f".aside-{FOLDER}"
    shutil.rmtree(aside, ignore_errors=True)
    shutil.copytree(curated, aside, ignore=shutil.ignore_patterns(*_LEFT_BEHIND))
    sources, licenses = read_table(SOURCES.folder_in(run), "kept"), run.recipe.export.withhold
    hidden = _withheld_ids(curated, licenses)
    notes, left_out = [WITHHELD.to_frame()], 0
    for table in TABLES:
        for path in sorted((aside / table).glob("*.parquet")):
            rows = pl.read_parquet(path, glob=False)
            split = withhold_texts(table, rows, rows["id"].is_in(hidden), sources)
            write_parquet(path, split.rows)
            notes.append(split.withheld)
            left_out += split.left_out
    for path in sorted((aside / "disputed").glob("*.parquet")):
        queue = pl.read_parquet(path, glob=False).filter(~pl.col("id").is_in(hidden))
        write_parquet(path, queue)
        queue.write_ndjson(path.with_name("disputed.jsonl"))
    write_parquet(aside / PARTS, pl.concat(notes))
    atomic_write(aside / RECIPE, recipe_text(run))
    _say_so(aside, pl.concat(notes), left_out)
    cards.list_files_again(aside)
    _mark(aside)
    shutil.rmtree(target, ignore_errors=True)
    aside.rename(target)
    return target


def restore(folder: Path, home: Path, places: Mapping[str, str]) -> Restored:
    """Put the withheld texts of a set back, file by file; a command that was killed goes on when it is given again.

    Args:
        folder: of the set.
        home: what relative paths of its recipe are relative to.
        places: paths or hub names of sources in the place of the recipe's, by the source's name.

    Raises:
        SourceError: nothing is withheld there, a source is not named in it, or cannot be read.
    """
    if not (folder / PARTS).is_file():
        raise SourceError(f"{folder}: nothing is withheld there ({PARTS} is missing); the texts are in data/.")
    notes = pl.read_parquet(folder / PARTS)
    sources = _sources_again(folder, home, places, notes)
    absent = [WITHHELD.to_frame()]
    for table in TABLES:
        for path in sorted((folder / table).glob("*.parquet")):
            rows = pl.read_parquet(path, glob=False)
            own = notes.join(rows.select("source", "row", "id"), on=["source", "row", "id"], how="semi")
            filled, missing = restore_texts(table, rows, own, sources)
            write_parquet(path, filled)
            absent.append(missing)
    cards.list_files_again(folder)
    _mark(folder)
    gone = pl.concat(absent).select("source", "row").unique(maintain_order=True)
    by_source = gone.group_by("source", maintain_order=True).agg(pl.col("row").sort())
    return Restored(notes.height, {source: tuple(at) for source, at in by_source.iter_rows()})


def holds_withheld_texts(folder: Path) -> bool:
    """Return whether texts of a set that are to be withheld stand in it: a run's own set, or one that was restored."""
    try:
        named = json.loads((folder / MARK).read_text(encoding="utf-8")).get("withhold")
    except (OSError, ValueError, AttributeError):
        return False
    if not named:
        return False
    files = sorted((folder / "data").glob("*.parquet"))
    rows = pl.concat([pl.read_parquet(file, glob=False).select("license", "also_from", "statement") for file in files])
    return bool((is_withheld(rows, named) & rows["statement"].is_not_null()).any())


def sendable(place: Path) -> Path:
    """Return the folder of a set as it may leave the house: its own, or DIR/public, which is made for it.

    Raises:
        SourceError: it holds texts that are to be withheld, and no run's folder is beside it to tell which.
    """
    folder = published_folder(place)
    if not holds_withheld_texts(folder):
        return folder
    if folder.name != "curated" or not (folder.absolute().parent / "run.json").is_file():
        raise SourceError(
            f"{folder}: it holds texts that `export.withhold` names, and no run's folder is there to take them out by; "
            "give the folder of the run."
        )
    return make_public(newest_run(folder.absolute().parent))


def _withheld_ids(curated: Path, licenses: tuple[str, ...]) -> list[str]:
    """Return the ids of all problems that have a row under one of the licences, kept or dropped."""
    ids: set[str] = set()
    for table in TABLES:
        for path in sorted((curated / table).glob("*.parquet")):
            has = pl.read_parquet_schema(path)
            names: list[str] = [name for name in ("id", "group", "license", "also_from") if name in has]
            rows = pl.read_parquet(path, columns=names, glob=False)
            hidden = rows.filter(is_withheld(rows, licenses))
            ids |= {*hidden["id"], *hidden["group"].drop_nulls()}
    return sorted(ids)


def _sources_again(folder: Path, home: Path, places: Mapping[str, str], notes: pl.DataFrame) -> pl.DataFrame:
    recipe = parse_recipe(tomllib.loads((folder / RECIPE).read_text(encoding="utf-8")), str(folder / RECIPE))
    named = [source.name for source in recipe.sources]
    if unknown := sorted(places.keys() - set(named)):
        raise SourceError(f"--source {unknown[0]}=…: the set has no such source; it has {', '.join(named)}.")
    frames = [PROBLEM.to_frame()]
    for source in recipe.sources:
        wanted = notes.filter(pl.col("source") == source.name).select("source", "row").unique()
        if wanted.is_empty():
            continue
        where = places.get(source.name, source.path)
        if where.startswith("…"):
            raise SourceError(
                f"source {source.name}: its path was one of another machine ({where}); "
                f"say where it lies here with --source {source.name}=PATH."
            )
        is_given = source.name in places and Path(where).exists()  # else the name of a hub's data set
        moved = source.model_copy(update={"path": str(Path(where).absolute()) if is_given else where})
        for frame in read_again(moved, Run(folder, recipe, home)):
            frames.append(frame.join(wanted, on=["source", "row"], how="semi"))
    return pl.concat(frames)


def _say_so(folder: Path, notes: pl.DataFrame, left_out: int) -> None:
    """Add to the card how many rows lack their texts, and how they come back."""
    rows = notes.select("table", "source", "row").unique()
    counts = Counter(rows["table"])
    left = f" {left_out:,} more, whose texts are mostly not the source's own, were left out." if left_out else ""
    said = (
        f"\n## Withheld Texts\n\nThe licences of some sources do not let their texts be handed on. {counts['data']:,} "
        f"problems and {counts['dropped']:,} dropped rows stand here with id, source, row, licence and measurements, "
        f"and without their texts and evidence.{left} `goldilocks restore DIR` reads the sources again by "
        f"`{RECIPE}`, puts the texts back, and checks each by its digest.\n"
    )
    card = folder / "README.md"
    atomic_write(card, _without_examples(card.read_text(encoding="utf-8")) + said)


def _without_examples(card: str) -> str:
    """Return a card without its section of examples, which show texts."""
    before, heading, rest = card.partition("\n## Examples\n")
    return before + "\n## " + rest.partition("\n## ")[2] if heading else card


def _mark(folder: Path) -> None:
    """Write the sizes of the files anew into the mark of a set."""
    path = folder / MARK
    mark = json.loads(path.read_text(encoding="utf-8"))
    files = sorted(file for file in folder.rglob("*") if file.is_file() and file != path)
    mark["files"] = {str(file.relative_to(folder)): file.stat().st_size for file in files}
    atomic_write(path, json.dumps(mark, indent=1) + "\n")
