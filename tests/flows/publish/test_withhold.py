"""Texts whose licence does not let them be handed on: not sent, put back from the source, and checked."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from curation.records import SourceError
from flows.pipelines.evaluate import trained_sets
from flows.run.recipe import load_recipe
from tests.flows.conftest import ROOT, goldilocks, published, refusal, write_jsonl
from tests.flows.run.folders import run as finish
from training.embedded_model.problems import Split
from training.recipe import CuratedData
from training.rollouts.tasks import load_tasks

RECIPE = Path(__file__).with_name("withheld.toml").read_text(encoding="utf-8")
NUMBERS = range(11, 19)
SECRET = ("1. What is 12 plus 12 times 3?", "What is 14 plus 14 times 3?", "What is 16 plus 16 times 3?")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run, and its inputs next to it; they are not to be changed."""
    home = tmp_path_factory.mktemp("withheld")
    problems, attempts = [], []
    for number in NUMBERS:
        text = f"{'1. ' if number == 12 else ''}What is {number} plus {number} times 3?"
        value = str(4 * number)
        terms = "unknown" if text in SECRET else "MIT"
        solution = f"Because of {number} it is {value}, see page 9."
        problems.append({"question": text, "final": value, "why": solution, "level": number, "terms": terms})
        tried = value if number != 16 else "7"  # never solved: it leaves, and its text must not
        attempts.append({"question": text, "tries": [{"text": tried}, {"text": "1"}]})
    copy = {**problems[4], "terms": "unknown"}  # of number 15, whose own licence is MIT
    write_jsonl(home / "problems.jsonl", [*problems, copy])
    write_jsonl(home / "attempts.jsonl", attempts)
    (home / "withheld.toml").write_text(RECIPE)
    finish(home / "withheld.toml", home / "run")
    return home


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    """The folder of a copy of the run."""
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    return tmp_path / "run"


def rows(folder: Path, table: str) -> pl.DataFrame:
    return pl.concat([pl.read_parquet(path) for path in sorted((folder / table).glob("*.parquet"))])


def texts(folder: Path) -> Iterator[str]:
    """The text of each file of a set."""
    for path in filter(Path.is_file, folder.rglob("*")):
        is_table = path.suffix == ".parquet"
        yield pl.read_parquet(path).write_ndjson() if is_table else path.read_bytes().decode("utf-8", "replace")


def send(run: Path) -> Path:
    sent = goldilocks("publish", run, "--to", "me/withheld")
    assert sent.status == 0, sent.err
    assert sent.out.startswith(f"{run / 'public'} → me/withheld, tag v1")
    return run / "public"


def restore(public: Path, *options: str | Path) -> None:
    restored = goldilocks("publish", "--restore", public, *options)
    assert restored.status == 0, restored.err


@pytest.mark.slow
def test_what_is_sent_has_no_withheld_text_in_any_file(run: Path) -> None:
    public = send(run)
    sent = rows(public, "data").sort("row")
    assert sent["row"].to_list() == [0, 1, 2, 3, 4, 6, 7]
    hidden = sent.filter(pl.col("statement").is_null())
    assert hidden["row"].to_list() == [1, 3, 4]  # the last for the sake of its copy
    assert hidden["answer"].null_count() == hidden["solution"].null_count() == hidden["meta"].null_count() == 3
    assert hidden["pass_rate"].to_list() == [0.5, 0.5, 0.5]
    assert hidden["source"].to_list() == ["school"] * 3
    dropped = rows(public, "dropped").sort("row")
    assert dropped.select("row", "reason").rows() == [(5, "never_solved"), (8, "duplicate")]
    assert dropped["statement"].null_count() == 2
    for text in texts(public):
        for number in (12, 14, 15, 16):
            assert f"What is {number} plus" not in text
            assert f"Because of {number}" not in text
    assert "3 problems and 2 dropped rows are here" in (public / "README.md").read_text()
    assert published(run, "data")["statement"].null_count() == 0


@pytest.mark.slow
def test_what_was_withheld_comes_back_as_it_was(run: Path, tmp_path: Path) -> None:
    public, elsewhere = send(run), tmp_path / "elsewhere.jsonl"
    refused = refusal("export", public, "--format", "trl", "--out", tmp_path / "trl")
    assert "has no statement; withheld texts are put back by `goldilocks publish DIR --restore`" in refused
    (tmp_path / "problems.jsonl").rename(elsewhere)
    for _ in range(2):  # again, nothing changes
        restore(public, "--source", f"school={elsewhere}")
        assert rows(public, "data").equals(published(run, "data"))
    dropped = published(run, "dropped")
    assert rows(public, "dropped").drop("evidence").equals(dropped.drop("evidence"))
    for options, message in (
        ((public, "--to", "me/withheld"), "give the folder of the run"),
        (("--restore", run / "curated"), "nothing is withheld there"),
        (("--restore", public, "--source", "web=x"), "the set has no such source; it has school"),
        (("--restore", public, "--source", "school"), "--source school: write NAME=PATH"),
    ):
        assert message in refusal("publish", *options)


def test_a_source_that_changed_is_named_and_its_texts_stay_away(run: Path, tmp_path: Path) -> None:
    public, source = send(run), tmp_path / "problems.jsonl"
    source.write_text(source.read_text().replace('"Because of 14', '"As 14'))
    ended = goldilocks("publish", "--restore", public, "--from", tmp_path)
    assert ended.status == 1
    assert "the texts of 1 rows are not what the set was made from" in ended.err
    assert "source school: row 3" in ended.err
    restored = rows(public, "data").filter(row=3)
    assert (restored["statement"].null_count(), restored["solution"].null_count()) == (0, 1)


@pytest.mark.slow
def test_a_code_set_is_sent_without_statements_and_given_tests_and_restored_whole(tmp_path: Path) -> None:
    """A few of the demo's programs, whose licence is withheld."""
    folder, public, recipes = tmp_path / "run", tmp_path / "run" / "public", ROOT / "flows" / "recipes"
    few = ("sources.0.limit=4", 'export.withhold=["Apache-2.0"]', "code.make_tests=false")
    finish(recipes / "demo_code.toml", folder, *few)
    send(folder)
    whole = published(folder, "data")
    assert not any(json.dumps(whole["raw_statement"][0])[1:60] in text for text in texts(public))
    assert rows(public, "data")["statement"].null_count() == whole.height
    given = rows(public, "tests").filter(origin="given")
    assert given["input"].null_count() == given.height > 0
    assert "Their given tests and checkers are withheld, too" in (public / "README.md").read_text()
    data = CuratedData(kind="curated", folders=(str(public),))
    with pytest.raises(SourceError, match="has no statement; withheld texts are put back by"):
        load_tasks(data, Split.TRAIN, tmp_path)
    assert "has no statement; withheld texts" in refusal("export", public, "--format", "verl", "--out", tmp_path / "v")
    with pytest.raises(SourceError, match="has no statement; withheld texts"):
        trained_sets(load_recipe(recipes / "demo_code.toml").models["coder"], tmp_path, [public])
    restore(public, "--from", recipes)
    assert rows(public, "data").equals(whole)
    for table in ("tests", "judging"):
        assert rows(public, table).equals(rows(folder / "curated", table))
    assert len(load_tasks(data, Split.TRAIN, tmp_path)) == whole.height


def test_training_never_passes_over_what_is_withheld(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("training.rollouts.tasks.LATENT_REASONS", ("never_solved",))
    public, kept = send(run), tmp_path / "kept"
    shutil.copytree(public, tmp_path / "public")
    shutil.copytree(run / "curated", kept)
    shutil.copytree(public / "dropped", kept / "dropped", dirs_exist_ok=True)
    (kept / ".published.json").unlink()  # a set that was put together by hand
    for data in (
        CuratedData(kind="curated", folders=("public",)),
        CuratedData(kind="curated", folders=("kept",), hard=True),
        CuratedData(kind="latent", folders=("public",)),
    ):
        with pytest.raises(SourceError, match="has no statement; withheld texts are put back by"):
            load_tasks(data, Split.TRAIN, tmp_path)
