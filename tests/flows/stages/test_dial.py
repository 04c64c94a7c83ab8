"""The dial in a run of the embedded model: rows accounted for, the same bytes after a kill, nothing where it is off."""

from __future__ import annotations

import json
import shutil
from itertools import islice
from pathlib import Path

import polars as pl
import pytest

from curation.dial.cutting import Question, answer_start
from curation.prompts import PLAIN
from curation.publish.export import CURATED, PREFIX, PREFIXED
from curation.publish.export_formats.writing import PREFIX_NEED, export_set
from curation.records import DropReason, SourceError
from curation.storage.stages import read_manifest, read_table
from flows.pipelines.refresh import _measured_bare
from flows.publish.versions import decisions_of
from flows.stages.dial import DIAL, PREFIXES
from tests.curation.dial.test_cutting import verifier
from tests.embedded_model.solutions import worked_solution
from tests.flows.conftest import goldilocks, published, refusal
from training.embedded_model.problems import Split, generate_exercises
from training.engines.verl.data import write_verl_set
from training.recipe import CuratedData
from training.rollouts.tasks import load_tasks

RECIPE = """
name = "dialled"
shard_rows = 6
workers = 1
[[sources]]
name = "sums"
kind = "jsonl"
path = "problems.jsonl"
license = "Apache-2.0"
columns = { statement = "problem", answer = "answer", lang = "lang", solution = "solution" }
[near_dedup]
enabled = false
[stage1]
band = { attempts = 8, min_correct = 2, max_pass_rate = 0.99, wrong_label_share = 1.0 }
[stage1.policy]
kind = "torch"
model = "embedded"
prompt = "plain"
decoding = { temperature = 1.0, max_tokens = 112 }
"""
TURNED = ["--set", 'dial.traces=["attempts", "solutions"]']


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dial")
    hard = (item for item in generate_exercises(5, Split.TRAIN) if item.level in (3, 4))
    rows = [
        {"problem": item.statement, "answer": str(item.answer), "lang": item.lang, "solution": worked_solution(item)}
        for item in islice(hard, 14)
    ]
    (folder / "problems.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "recipe.toml").write_text(RECIPE)
    return folder / "recipe.toml"


@pytest.fixture(scope="module")
def turned(recipe: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run with the dial on; do not write into it."""
    out = tmp_path_factory.mktemp("turned") / "run"
    said = goldilocks("run", recipe, "--out", out, *TURNED)
    assert said.status == 0, said.err
    return out


def dial_folder(run: Path) -> Path:
    return next((run / "decisions" / "dial").iterdir())


def last_folder(run: Path) -> Path:
    return next((run / "decisions" / "stage1").iterdir())


def test_every_row_is_kept_or_dropped_and_some_come_back(turned: Path) -> None:
    before, after = read_manifest(last_folder(turned)), read_manifest(dial_folder(turned))
    assert before is not None
    assert after is not None
    assert after.rows_in == before.rows_in == after.kept + after.dropped
    table = read_table(dial_folder(turned), PREFIXES)
    never = read_table(last_folder(turned), "dropped").filter(reason=DropReason.NEVER_SOLVED.value)
    assert sorted(table["problem"]) == sorted(never["id"])
    found = table.filter(pl.col("prefix").is_not_null())
    assert 0 < found.height == after.kept - before.kept == after.notes["dialled"]
    assert (table["attempts"].sum(), table["tokens"].sum()) == (after.notes["attempts"], after.notes["tokens"])
    assert (found["outcome"] == "dialled").all()
    stay = read_table(dial_folder(turned), "dropped")
    assert stay.filter(pl.col("evidence").str.contains("; dial: "))["id"].n_unique() == table.height - found.height


def test_the_set_has_prefixes_that_hold_no_answer_and_rates_in_the_band(turned: Path) -> None:
    rows = published(turned, "data")
    assert rows.schema == PREFIXED
    begun = rows.filter(pl.col("prefix").is_not_null())
    assert begun.height > 0
    for row in begun.iter_rows(named=True):
        question = Question(row["statement"], row["answer"], row["lang"])
        assert row["prefix"].startswith("<think>")
        assert answer_start(row["prefix"].removeprefix("<think>"), question, verifier) is None
        assert 0 < row["prefix_share"] <= 0.75
        assert 0 < row["pass_rate"] <= 1
    bare = rows.filter(pl.col("prefix").is_null())
    assert bare.select(*PREFIX.names()).null_count().row(0) == (bare.height,) * 3
    card = (turned / "curated" / "README.md").read_text()
    assert "never solved without it" in card
    assert "| Too hard, with a prefix |" in card
    told = goldilocks("explain", turned, begun["id"][0]).out
    assert "dial       dialled (" in told
    assert "prefix     " in told


def test_attempts_begin_with_the_prefix_and_are_no_attempts_at_the_bare_problem(turned: Path) -> None:
    table = read_table(dial_folder(turned), PREFIXES).filter(pl.col("prefix").is_not_null())
    keys = {path.parent: json.loads(path.read_text()) for path in (turned / "attempts").glob("*/key.json")}
    (place,) = [folder for folder, key in keys.items() if key["prompt"].startswith("dial ")]
    attempts = pl.concat([pl.read_parquet(part) for part in sorted(place.glob("part-*.parquet"))])
    assert set(attempts["problem"].str.split("~").list.first()) <= set(read_table(last_folder(turned), "dropped")["id"])
    for problem, prefix in table.select("problem", "prefix").iter_rows():
        theirs = attempts.filter(pl.col("problem").str.starts_with(f"{problem}~"))
        assert theirs.filter(pl.col("text").str.starts_with(prefix)).height >= 2
    assert attempts["problem"].str.contains("~").all()


def test_a_run_that_lost_the_stage_asks_nothing_twice_and_writes_the_same_bytes(
    turned: Path, recipe: Path, tmp_path: Path
) -> None:
    again = tmp_path / "run"
    shutil.copytree(turned, again)
    shutil.rmtree(again / "decisions" / "dial")
    shutil.rmtree(again / "stages" / "10-export")
    stores = sorted((again / "attempts").glob("*/part-*.parquet"))
    said = goldilocks("run", recipe, "--out", again, *TURNED)
    assert said.status == 0, said.err
    assert sorted((again / "attempts").glob("*/part-*.parquet")) == stores
    names = [path.relative_to(dial_folder(turned)) for path in dial_folder(turned).rglob("*.parquet")]
    assert names
    for name in names:
        assert (dial_folder(again) / name).read_bytes() == (dial_folder(turned) / name).read_bytes(), name
    assert published(again, "data").equals(published(turned, "data"))


def test_it_is_off_by_default_and_leaves_no_trace(recipe: Path, tmp_path: Path) -> None:
    said = goldilocks("run", recipe, "--out", tmp_path / "run")
    assert said.status == 0, said.err
    assert not (tmp_path / "run" / "decisions" / "dial").exists()
    assert published(tmp_path / "run", "data").schema == CURATED
    assert "dial" not in json.loads((tmp_path / "run" / "run.json").read_text())["recipe"]


def test_a_dry_run_says_it(recipe: Path, tmp_path: Path) -> None:
    dry = goldilocks("run", recipe, "--dry", "--out", tmp_path / "run", *TURNED).out
    assert "dial: never-solved problems go on from a prefix of a correct attempt (from attempts, solutions)" in dry


def test_recorded_attempts_cannot_go_on(tiny_recipe: Path, tmp_path: Path) -> None:
    text = refusal("run", tiny_recipe, "--out", tmp_path / "run", "--set", 'dial.traces=["solutions"]')
    assert "recorded attempts cannot go on from a prefix" in text


def test_a_refresh_leaves_them_as_they_are(turned: Path) -> None:
    decided = decisions_of(turned, 1)
    assert decided.filter(stage=DIAL.name).height == published(turned, "data")["prefix"].count()
    assert set(_measured_bare(decided)["stage"]) == {"stage1"}


def test_exports_carry_prefixes_or_leave_the_rows_out(turned: Path, tmp_path: Path) -> None:
    rows = published(turned, "data")
    begun = rows["prefix"].count()
    carried = export_set(turned / "curated", "art", tmp_path / "art")
    lines = [json.loads(line) for line in carried.file.read_text().splitlines()]
    assert (carried.rows, sum("prefix" in line for line in lines)) == (rows.height, begun)
    other = export_set(turned / "curated", "trl", tmp_path / "trl")
    assert (other.rows, other.left_out) == (rows.height - begun, {PREFIX_NEED: begun})


def test_training_reads_them_and_verl_refuses(turned: Path, tmp_path: Path) -> None:
    data = CuratedData(kind="curated", folders=(str(turned / "curated"),))
    tasks = load_tasks(data, Split.TRAIN, tmp_path)
    rows = published(turned, "data")
    prefixes = {name: prefix or "" for name, prefix in rows.select("id", "prefix").iter_rows()}
    assert {name: task.request.prefix for name, task in tasks.items()} == prefixes
    held_out = load_tasks(data, Split.HELD_OUT, tmp_path)
    assert not any(task.request.prefix for task in held_out.values())
    with pytest.raises(
        SourceError, match="have a prefix that responses begin with, which verl's messages cannot carry"
    ):
        write_verl_set(tasks.values(), PLAIN, tmp_path / "train.parquet")
