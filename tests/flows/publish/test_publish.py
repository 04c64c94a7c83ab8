"""The published folder: read by polars and by datasets as it is, and made again in the same bytes."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import tomllib
from pathlib import Path

import polars as pl
import pytest
import yaml

from curation.publish.cards.card import rows_digest
from curation.publish.export import CURATED
from curation.records import DROPPED
from curation.storage import sorted_parts
from flows.publish import curated_set
from flows.publish.versions import digest_of
from flows.run.recipe import parse_recipe
from flows.run.run_folder import new_run
from tests.benchmarks.bench_crash import write_recipe
from tests.flows.conftest import OPTIONAL, ROOT, STAGES, TINY, Tiny, goldilocks
from tests.flows.run.folders import card, contents, run


def test_polars_and_datasets_read_the_folder_as_it_is(tiny_run: Tiny, tmp_path: Path) -> None:
    import datasets

    data = tiny_run.table("data")
    assert data.schema == CURATED
    assert tiny_run.table("dropped").schema == DROPPED
    assert data["row"].is_sorted()
    assert pl.read_parquet(tiny_run.folder / "curated" / "data").equals(data)
    found = datasets.load_dataset(str(tiny_run.folder / "curated"), cache_dir=str(tmp_path))
    assert list(found) == ["train"]
    assert found["train"].column_names == CURATED.names()
    assert found["train"]["id"][:] == data["id"].to_list()
    for name, content in contents(tiny_run.folder / "curated").items():
        assert str(tiny_run.folder.parent).encode() not in content, name
    other = shutil.copytree(tiny_run.folder / "curated", tmp_path / "other" / "curated")
    table = data.head(2)  # another set in a folder of the same name
    (path,) = (other / "data").glob("*.parquet")
    table.write_parquet(path)
    text = (other / "README.md").read_text()
    was = yaml.safe_load(text.split("---\n")[1])["configs"][0]["description"]
    (other / "README.md").write_text(text.replace(was, f"rows {rows_digest(table.lazy())}"))
    assert datasets.load_dataset(str(other), cache_dir=str(tmp_path))["train"].num_rows == 2


def test_the_card_agrees_with_the_tables(tiny_run: Tiny) -> None:
    text = card(tiny_run.folder)
    assert yaml.safe_load(text.split("---\n")[1])["configs"][0]["data_files"]
    for name, title in ((stage.name, stage.title) for stage in STAGES.values()):
        if not name.endswith((".attempts", ".verdicts", ".label_trust")) and name not in OPTIONAL:
            assert f"| {title[0]}{title[1:]} |" in text
    for part in ("weak@1", "strong@1", "shard_rows = 3"):
        assert part in text
    for link in re.findall(r"\]\((?!https?:)([^)#]+)\)", text):
        assert (tiny_run.folder / "curated" / link).exists()


@pytest.mark.slow
def test_a_set_that_was_cut_short_or_damaged_is_published_again_in_the_same_bytes(tiny_copy: Tiny) -> None:
    curated, aside = tiny_copy.folder / "curated", tiny_copy.folder / ".aside-curated"
    before = contents(curated)
    curated.rename(aside)
    (aside / "data" / "left-over.parquet").write_bytes(b"half")
    (kept,) = (tiny_copy.folder / "stages").glob("*-export/kept/00000.parquet")
    assert "in the curated set" in goldilocks("explain", tiny_copy.folder, pl.read_parquet(kept)["id"][0]).out
    run(tiny_copy.recipe, tiny_copy.folder)
    assert contents(curated) == before
    assert not aside.exists()
    for names in (("data/*.parquet", "dropped/*.parquet", "README.md"), (".published.json",)):
        for name in names:
            (damaged,) = curated.glob(name)
            damaged.write_bytes(damaged.read_bytes()[:100])
        assert goldilocks("status", tiny_copy.folder).status == 0
        run(tiny_copy.recipe, tiny_copy.folder)
        assert contents(curated) == before


@pytest.mark.slow
def test_large_shards_and_small_ones_publish_the_same_rows(tiny_run: Tiny, tmp_path: Path) -> None:
    other = Tiny(tiny_run.recipe, tmp_path / "run")
    run(other.recipe, other.folder, "shard_rows=1000")
    for table in ("data", "dropped"):
        assert other.table(table).sort("row").equals(tiny_run.table(table).sort("row"))
    assert other.table("data").height + other.table("dropped").height == len(TINY)


def test_a_grader_in_the_run_folder_leaves_no_trace_of_it_in_the_card(tmp_path: Path) -> None:
    path = write_recipe(tmp_path / "inputs", problems=2)
    shipped = ROOT / "flows" / "recipes" / "train_demo_grader.toml"
    path.write_text(path.read_text().replace('"grader.toml"', json.dumps(str(shipped))))
    one, other = (new_run(path, [], tmp_path / name / "run") for name in ("a", "b"))
    assert one.recipe != other.recipe  # each has its own model in stage 2
    assert curated_set.recipe_text(one) == curated_set.recipe_text(other)
    assert curated_set.settled_digest(one.recipe) == curated_set.settled_digest(other.recipe)
    assert str(tmp_path) not in curated_set.recipe_text(one)
    again = parse_recipe(tomllib.loads(curated_set.recipe_text(one)), "the card")  # with one grader, and no stage 2
    assert again.grader is not None
    assert again.grader.recipe == "…/train_demo_grader.toml"


def test_a_digest_is_that_of_the_whole_table_however_few_rows_are_written_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = [(f"p{number % 4}{number}", None if number % 3 else 'a "b",\n', "today") for number in range(9)]
    table = pl.DataFrame(rows, ["problem", "reason", "measured_on"], orient="row")
    text = table.drop("measured_on").sort("problem").write_csv()
    monkeypatch.setattr(sorted_parts, "ROWS_AT_ONCE", 2)
    digest = digest_of(table.lazy())
    assert digest == hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
    empty = table.clear().drop("measured_on").write_csv()
    assert digest_of(table.clear().lazy()) == hashlib.blake2b(empty.encode(), digest_size=16).hexdigest()
    assert digest_of(table.reverse().lazy()) == digest != digest_of(table[1:].lazy())
