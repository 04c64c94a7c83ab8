"""The sources of a run: which rows are taken, a source that is left out, and what the card says of both."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from curation.config import Source
from curation.records import SourceError
from curation.storage.stages import read_table
from flows.stages.sources import require_source
from tests.flows.conftest import goldilocks, published, recipe_with, refusal, write_jsonl

RECIPE = (
    recipe_with(
        'name="chosen"',
        "shard_rows=2000",
        "sources.0.where=\"valid = 'Yes'\"",
        "sources.0.quota=3",
        'sources.0.join={path="solutions.jsonl", on="uid", columns=["worked"], into="solutions"}',
        "stage1.band.attempts=2",
        'models.student.path="attempts.jsonl"',
    )
    + """
[[sources]]
name = "gone"
kind = "jsonl"
path = "gone.jsonl"
license = "MIT"
columns = { statement = "question", answer = "final" }
"""
)
BROKEN, ODD = '{"question": "What is 2?", "final": NaN}\n', '{"question": "What is 3?", "final": ["3"]}\n'
SUMS = {f"What is {number} plus {number} times 3?": 4 * number for number in range(11, 19)}


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    rows = [
        {"question": text, "final": str(value), "valid": "No" if at in (0, 5) else "Yes", "uid": at}
        for at, (text, value) in enumerate(SUMS.items())
    ]
    write_jsonl(tmp_path / "problems.jsonl", rows)
    write_jsonl(tmp_path / "solutions.jsonl", [{"uid": row["uid"], "worked": f"see {row['final']}"} for row in rows])
    tries = [{"question": text, "tries": [{"text": str(value)}, {"text": "1"}]} for text, value in SUMS.items()]
    write_jsonl(tmp_path / "attempts.jsonl", tries)
    (tmp_path / "chosen.toml").write_text(RECIPE)
    return tmp_path / "chosen.toml"


@pytest.mark.slow
def test_a_source_that_is_gone_is_a_sentence_and_may_be_left_out(recipe: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    said = refusal("run", recipe, "--out", run)
    assert "source gone: no file at" in said
    assert 'set `left_out = ["gone"]`; the card will state it' in said
    done = goldilocks("run", recipe, "--out", run, "--set", 'left_out=["gone"]')
    assert done.status == 0, done.err
    assert "source gone: left out" in goldilocks("run", recipe, "--out", run, "--set", 'left_out=["gone"]', "--dry").out
    card = (run / "curated" / "README.md").read_text()
    assert "| gone | MIT | left out: not read | 0 | 0 |" in card
    assert "The recipe names gone too; by `left_out` this run did not read it." in card
    state = json.loads((run / "stages" / "01-sources" / "sources.json").read_text())["school"]
    assert f"digest `{state['digest'][:16]}`" in card
    assert (state["rows"], state["where"], state["drawn"], state["joined"], state["commit"]) == (8, 6, 3, 3, None)
    steps = "where `valid = 'Yes'`, drawn by a quota, joined with solutions.jsonl (3 rows have a match)"
    assert f"Of school, 8 rows seen: {steps}." in card
    taken = published(run, "data")
    assert taken.height == 3
    assert not {0, 5} & set(taken["row"])


def test_names_that_are_no_sources_cannot_be_left_out(recipe: Path, tmp_path: Path) -> None:
    said = refusal("run", recipe, "--out", tmp_path / "run", "--set", 'left_out=["goon"]')
    assert "`left_out` names 'goon', which is no source; there are: school, gone" in said
    said = refusal("run", recipe, "--out", tmp_path / "run", "--set", 'left_out=["school", "gone"]')
    assert "nothing would be read" in said


def test_a_folder_without_packages_is_one_sentence(tmp_path: Path) -> None:
    source = Source(name="packages", kind="kattis", path="nothing")
    with pytest.raises(SourceError, match="there is no folder"):
        require_source(source, tmp_path)
    (tmp_path / "nothing").mkdir()
    with pytest.raises(SourceError, match="holds no problem package"):
        require_source(source, tmp_path)


@pytest.mark.slow
def test_bad_rows_are_set_aside_and_counted_next_to_a_source_with_none(recipe: Path, tmp_path: Path) -> None:
    write_jsonl(tmp_path / "gone.jsonl", [{"question": "What is 3 plus 3 plus 30?", "final": "36"}])
    with (tmp_path / "gone.jsonl").open("a") as handle:
        handle.write(BROKEN + ODD)
    tries = [{"question": text, "tries": [{"text": str(value)}, {"text": "1"}]} for text, value in SUMS.items()]
    more = [{"question": "What is 3 plus 3 plus 30?", "tries": [{"text": "36"}, {"text": "1"}]}]
    write_jsonl(tmp_path / "attempts.jsonl", tries + more)
    done = goldilocks("run", recipe, "--out", tmp_path / "run", "--set", "sources.1.bad_rows=100")
    assert done.status == 0, done.err
    aside = read_table(tmp_path / "run" / "stages" / "01-sources", "quarantine")
    assert aside.select("raw", "file", "line").rows() == [
        (BROKEN.encode(), "gone.jsonl", 2),
        (ODD.encode(), "gone.jsonl", 3),
    ]
    dropped = published(tmp_path / "run", "dropped").filter(reason="bad_row")
    assert dropped["row"].to_list() == [1, 2]
    assert dropped["evidence"][0].startswith("gone.jsonl, line 2: not JSON (")
    assert "bad_row" in goldilocks("status", tmp_path / "run").out
    assert set(published(tmp_path / "run", "data")["source"]) == {"school", "gone"}
