"""The stage that translates: what it adds to the set, what it asks again, and how it goes on after a kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from curation.difficulty import refresh
from flows.page.problem_page import translations_of
from flows.run.run_folder import open_run
from tests.flows.conftest import ROOT, Tiny, goldilocks, refusal, write_jsonl
from tests.flows.run.folders import card, contents, run
from tests.flows.translator import NEVER, Translator, numbers, recipe, statement, translation
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

SETTINGS = 'model = "strong"\nshare = 0.9\nlanguages = ["fr", "de"]'
STAGE = Path("stages") / "10-translation"
COUNT = 16


def written(folder: Path, url: str, settings: str = SETTINGS) -> Tiny:
    """A recipe of word problems that asks this server, not run yet."""
    folder.mkdir(parents=True)
    rows = [{"question": statement(number), "final": str(sum(numbers(number)))} for number in range(COUNT)]
    write_jsonl(folder / "problems.jsonl", rows)
    (folder / "apples.toml").write_text(recipe(url, settings))
    return Tiny(folder / "apples.toml", folder.parent / "run")


def finished_run(folder: Path, url: str, settings: str = SETTINGS) -> Tiny:
    made = written(folder, url, settings)
    run(made.recipe, made.folder)
    return made


@pytest.fixture(scope="module")
def server() -> Iterator[Translator]:
    with Translator() as server:
        yield server


@pytest.fixture(scope="module")
def finished(server: Translator, tmp_path_factory: pytest.TempPathFactory) -> Tiny:
    """A finished run; do not write into it."""
    return finished_run(tmp_path_factory.mktemp("apples") / "inputs", server.url)


def originals(made: Tiny) -> dict[str, dict[str, object]]:
    return {row["id"]: row for row in made.table("data").to_dicts() if row["translation_of"] is None}


def translations(made: Tiny) -> pl.DataFrame:
    return made.table("data").filter(pl.col("translation_of").is_not_null())


def number_of(text: object) -> int:
    return next(number for number in range(COUNT) if text == statement(number))


def test_the_set_has_the_translations_with_the_pass_rates_of_their_originals(finished: Tiny) -> None:
    names, rows = {"fr": "French", "de": "German"}, translations(finished)
    assert rows.height > 4
    for row in rows.to_dicts():
        original = originals(finished)[row["translation_of"]]
        assert row["statement"] == translation(names[row["lang"]], number_of(original["statement"]))
        assert row["id"] != original["id"]
        assert row["pass_rate_of"] == original["id"]
        same = ("group", "answer", "source", "row", "license", "pass_rate", "judged", "policy", "measured_on")
        assert {name: row[name] for name in same} == {name: original[name] for name in same}
        assert json.loads(row["meta"])["translation"]["of"] == original["id"]
    assert set(rows["lang"]) == {"fr", "de"}
    assert all(row["pass_rate_of"] is None for row in originals(finished).values())


def test_what_is_wrong_goes_back_to_the_translator_with_the_reason(server: Translator, finished: Tiny) -> None:
    refused = [prompt for prompt in server.prompts if "What was wrong with it" in prompt]
    assert any("reader: Anna sells apples instead of buying them" in prompt for prompt in refused)
    assert any("numbers: missing from the translation" in prompt for prompt in refused)
    dropped = pl.read_parquet(finished.folder / STAGE / "dropped" / "*.parquet")
    stays = [number_of(row["statement"]) for row in originals(finished).values()]
    assert [number_of(text) for text in dropped["statement"]] == ([NEVER] if NEVER in stays else [])
    assert {json.loads(meta)["translation"]["tries"] for meta in translations(finished)["meta"]} == {1, 2}


def test_the_funnel_the_card_the_page_and_explain_show_it(server: Translator, finished: Tiny) -> None:
    folder, rows, text = finished.folder, translations(finished), card(finished.folder)
    stages = {stage["name"]: stage for stage in json.loads(goldilocks("status", folder, "--json").out)["stages"]}
    stage = stages["translation"]
    assert stage["in"] == stage["kept"] + stage["dropped"]
    assert stage["kept"] == rows.height
    assert stages["export"]["kept"] == finished.table("data").height
    for part in ("## Translations", "a model read whether both texts ask the same", "| French |"):
        assert part in text
    row = rows.row(0, named=True)
    for name in (row["translation_of"], row["id"]):
        assert f"{row['lang']}: translated as {row['id']}" in goldilocks("explain", folder, name).out
    (pair,) = translations_of(open_run(folder), originals(finished)[row["translation_of"]])
    assert (pair["id"], pair["lang"], pair["statement"]) == (row["id"], row["lang"], row["statement"])
    assert goldilocks("verify", "receipt", folder, "--quick").status == 0
    plan = goldilocks("run", finished.recipe, "--dry").out
    assert "translation: 0.9 of the kept problems into fr, de by strong, up to 3 tries each, read by strong" in plan
    asked = len(server.prompts)
    run(finished.recipe, folder)
    assert (len(server.prompts), card(folder)) == (asked, text), "a second run asks nothing"


def test_translations_into_any_language_can_be_measured(server: Translator, tmp_path: Path) -> None:
    settings = SETTINGS.replace('"fr", "de"', '"pt", "ja"') + "\nmeasure = true"
    made = finished_run(tmp_path / "inputs", server.url, settings)
    rows = translations(made)
    assert rows["pass_rate_of"].null_count() == rows.height
    assert rows["judged"].to_list() == [4] * rows.height
    assert any(row["pass_rate"] != originals(made)[row["translation_of"]]["pass_rate"] for row in rows.to_dicts())
    assert set(rows["lang"]) == {"pt", "ja"}
    for part in ("Their pass rates were measured", "| Japanese |"):
        assert part in card(made.folder)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ('languages = ["xx"]', "no code of a language"),
        ('languages = ["en"]', "translated from"),
        ('reader = "nobody"', "there is no table [models.nobody]"),
    ],
)
def test_a_table_that_cannot_be_meant_is_refused(settings: str, message: str, tmp_path: Path) -> None:
    made = written(tmp_path / "inputs", "http://localhost:9/v1", f'model = "strong"\n{settings}')
    assert message in refusal("run", made.recipe, "--out", made.folder)


def test_a_run_killed_while_it_translates_ends_in_the_same_bytes(tmp_path: Path, finished: Tiny) -> None:
    with Translator(pause_s=0.3) as slow:
        made = written(tmp_path / "inputs", slow.url)
        text = made.recipe.read_text().replace('prompt = "plain"', 'prompt = "plain"\nin_flight = 2')
        made.recipe.write_text(text)
        command = [sys.executable, "-m", "flows.cli", "run", str(made.recipe), "--out", str(made.folder)]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(lambda: len(slow.prompts) > 4, process)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert not (made.folder / "curated").exists()
        assert not list((made.folder / STAGE).glob("shards/*"))
        before = slow.prompts[:2]
        slow.pause_s = 0.0
        run(made.recipe, made.folder)
        assert all(slow.prompts.count(prompt) == 1 for prompt in before)
    assert made.table("data").drop("measured_on").equals(finished.table("data").drop("measured_on"))
    assert contents(made.folder / STAGE, "*.parquet") == contents(finished.folder / STAGE, "*.parquet")


def test_a_refresh_carries_translations_along(
    server: Translator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refresh, "PROBE_SHARE", 1.0)
    monkeypatch.setattr(refresh, "RETRY_SHARE", 0.0)
    made = finished_run(tmp_path / "inputs", server.url)
    before, asked = translations(made), set(server.prompts)
    (tmp_path / "newer.toml").write_text(f"[models.newer]\n{server.table('other')}")
    refreshed = goldilocks("refresh", made.folder, "--policy", tmp_path / "newer.toml")
    assert refreshed.status == 0, refreshed.err
    assert "version 2" in refreshed.out
    after, stays = translations(made), set(originals(made))
    kept = before.filter(pl.col("translation_of").is_in(stays)).select("id", "translation_of", "statement", "lang")
    assert kept.height > 0
    assert set(after["translation_of"]) <= stays
    assert kept.join(after, on=kept.columns, how="anti").is_empty()
    again = [prompt for prompt in server.prompts if prompt not in asked]
    assert not any(text in prompt for prompt in again for text in kept["statement"])
