"""What catalogues read of a set: every file with its hash, every column with its type, the same bytes again."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import polars as pl

from curation.publish.cards.croissant import list_files_again, write_croissant
from curation.publish.cards.words import COLUMN_WORDS
from curation.publish.export import CURATED
from tests.curation.publish.cards.test_card import facts


def written(folder: Path) -> Path:
    """A set of four problems in two files, a dropped row, and a test that holds a record."""
    for table in ("data", "dropped", "tests"):
        (folder / table).mkdir(parents=True)
    card = facts(2)
    for number in range(2):
        card.curated.slice(2 * number, 2).collect().write_parquet(folder / "data" / f"train-0000{number}.parquet")
    pl.DataFrame({"id": ["x"], "choices": [["A", "B"]], "reason": ["proof"]}).write_parquet(
        folder / "dropped" / "d.parquet"
    )
    pl.DataFrame({"problem": ["x"], "index": [0], "call": [{"args": [1]}]}).write_parquet(
        folder / "tests" / "t.parquet"
    )
    return write_croissant(card, "2026-05-04", folder)


def test_every_file_stands_there_with_its_size_and_hash(tmp_path: Path) -> None:
    about = json.loads(written(tmp_path).read_text(encoding="utf-8"))
    objects = {one["contentUrl"]: one for one in about["distribution"] if one["@type"] == "cr:FileObject"}
    assert sorted(objects) == sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.parquet"))
    for name, one in objects.items():
        content = (tmp_path / name).read_bytes()
        assert one["sha256"] == hashlib.sha256(content).hexdigest()
        assert one["contentSize"] == f"{len(content)} B"
    assert (about["name"], about["version"], about["datePublished"]) == ("small-set", "1.0.0", "2026-05-04")
    assert about["isBasedOn"] == ["https://example.org/sheet"]


def test_every_plain_column_has_its_type_and_its_words(tmp_path: Path) -> None:
    about = json.loads(written(tmp_path).read_text(encoding="utf-8"))
    tables = {one["@id"]: {field["name"]: field for field in one["field"]} for one in about["recordSet"]}
    assert list(tables) == ["problems", "dropped_rows", "tests"]
    assert list(tables["problems"]) == [name for name in CURATED.names() if name != "also_from"]  # records of its own
    assert all(field["description"] == COLUMN_WORDS[name] for name, field in tables["problems"].items())
    kinds = {name: field["dataType"] for name, field in tables["problems"].items()}
    assert (kinds["statement"], kinds["row"], kinds["pass_rate"]) == ("sc:Text", "sc:Integer", "sc:Float")
    assert (tables["dropped_rows"]["choices"]["dataType"], tables["dropped_rows"]["choices"]["repeated"]) == (
        "sc:Text",
        True,
    )
    assert list(tables["tests"]) == ["problem", "index"]  # a column of records is left to parquet
    parts = [*about["distribution"], *about["recordSet"]]
    assert len({one["@id"] for one in parts}) == len(parts)
    sets = {one["@id"] for one in about["distribution"] if one["@type"] == "cr:FileSet"}
    assert {field["source"]["fileSet"]["@id"] for one in tables.values() for field in one.values()} == sets


def test_the_same_set_gives_the_same_bytes(tmp_path: Path) -> None:
    assert written(tmp_path / "a").read_bytes() == written(tmp_path / "b").read_bytes()


def test_a_file_that_came_later_is_listed_and_no_file_is_made_for_another_set(tmp_path: Path) -> None:
    path = written(tmp_path / "set")
    facts(2).curated.collect().write_parquet(tmp_path / "set" / "data" / "translated-00000.parquet")
    list_files_again(tmp_path / "set")
    about = json.loads(path.read_text(encoding="utf-8"))
    assert about["name"] == "small-set"
    names = [one["@id"] for one in about["distribution"]]
    assert names[:3] == ["data/train-00000.parquet", "data/train-00001.parquet", "data/translated-00000.parquet"]
    list_files_again(tmp_path)
    assert not (tmp_path / "croissant.json").exists()
