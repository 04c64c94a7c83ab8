"""The stage that translates: what it adds to the set, what it asks again, and how it goes on after a kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest

from curation.difficulty import refresh
from flows.page.problem_page import translations_of
from flows.run.run_folder import open_run
from tests.flows.conftest import ROOT, Said, goldilocks, published, refusal, write_jsonl
from tests.flows.translator import NEVER, Translator, numbers, recipe, statement, translation
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

SETTINGS = 'model = "strong"\nshare = 0.9\nlanguages = ["fr", "de"]'
COUNT = 16


@dataclass(frozen=True, slots=True)
class Translated:
    """A recipe and the folder of its run."""

    recipe: Path
    folder: Path

    def run(self) -> Said:
        return goldilocks("run", self.recipe, "--out", self.folder)

    @property
    def data(self) -> pl.DataFrame:
        return published(self.folder, "data")

    @property
    def rows(self) -> pl.DataFrame:
        return self.data.filter(pl.col("translation_of").is_not_null())

    @property
    def card(self) -> str:
        return (self.folder / "curated" / "README.md").read_text()


def write(folder: Path, url: str, settings: str = SETTINGS) -> Translated:
    folder.mkdir(parents=True)
    rows = [{"question": statement(number), "final": str(sum(numbers(number)))} for number in range(COUNT)]
    write_jsonl(folder / "problems.jsonl", rows)
    (folder / "apples.toml").write_text(recipe(url, settings))
    return Translated(folder / "apples.toml", folder.parent / "run")


@pytest.fixture(scope="module")
def server() -> Iterator[Translator]:
    with Translator() as server:
        yield server


@pytest.fixture(scope="module")
def finished(server: Translator, tmp_path_factory: pytest.TempPathFactory) -> Translated:
    """A finished run; do not write into it."""
    made = write(tmp_path_factory.mktemp("apples") / "inputs", server.url)
    said = made.run()
    assert said.status == 0, said.err
    return made


def number_of(text: str) -> int:
    return next(number for number in range(COUNT) if text == statement(number))


def test_the_set_has_the_translations_with_the_pass_rates_of_their_originals(finished: Translated) -> None:
    originals = {row["id"]: row for row in finished.data.filter(pl.col("translation_of").is_null()).to_dicts()}
    names = {"fr": "French", "de": "German"}
    assert finished.rows.height > 4
    for row in finished.rows.to_dicts():
        original = originals[row["translation_of"]]
        assert row["statement"] == translation(names[row["lang"]], number_of(original["statement"]))
        assert row["id"] != original["id"]
        assert row["pass_rate_of"] == original["id"]
        same = ("group", "answer", "source", "row", "license", "pass_rate", "judged", "policy", "measured_on")
        assert {name: row[name] for name in same} == {name: original[name] for name in same}
        assert json.loads(row["meta"])["translation"]["of"] == original["id"]
    assert set(finished.rows["lang"]) == {"fr", "de"}
    assert all(originals[name]["pass_rate_of"] is None for name in originals)


def test_what_is_wrong_goes_back_to_the_translator_with_the_reason(server: Translator, finished: Translated) -> None:
    refused = [prompt for prompt in server.prompts if "What was wrong with it" in prompt]
    assert any("reader: Anna sells apples instead of buying them" in prompt for prompt in refused)
    assert any("numbers: missing from the translation" in prompt for prompt in refused)
    dropped = pl.read_parquet(finished.folder / "stages" / "10-translation" / "dropped" / "*.parquet")
    stays = [number_of(text) for text in finished.data.filter(pl.col("translation_of").is_null())["statement"]]
    assert [number_of(text) for text in dropped["statement"]] == ([NEVER] if NEVER in stays else [])
    tries = {json.loads(meta)["translation"]["tries"] for meta in finished.rows["meta"]}
    assert tries == {1, 2}


def test_the_funnel_the_card_the_page_and_explain_show_it(server: Translator, finished: Translated) -> None:
    stages = {
        stage["name"]: stage for stage in json.loads(goldilocks("status", finished.folder, "--json").out)["stages"]
    }
    stage, exported = stages["translation"], stages["export"]
    assert stage["in"] == stage["kept"] + stage["dropped"]
    assert stage["kept"] == finished.rows.height
    assert exported["kept"] == finished.data.height
    assert "## Translations" in finished.card
    assert "a model read whether both texts ask the same" in finished.card
    assert "| French |" in finished.card
    row = finished.rows.row(0, named=True)
    for name in (row["translation_of"], row["id"]):
        assert f"{row['lang']}: translated as {row['id']}" in goldilocks("explain", finished.folder, name).out
    original = finished.data.row(by_predicate=pl.col("id") == row["translation_of"], named=True)
    (pair,) = translations_of(open_run(finished.folder), original)
    assert (pair["id"], pair["lang"], pair["statement"]) == (row["id"], row["lang"], row["statement"])
    assert goldilocks("verify", "receipt", finished.folder, "--quick").status == 0
    said = goldilocks("run", finished.recipe, "--dry").out
    assert "translation: 0.9 of the kept problems into fr, de by strong, up to 3 tries each, read by strong" in said
    asked, before = len(server.prompts), finished.card
    assert finished.run().status == 0
    assert (len(server.prompts), finished.card) == (asked, before), "a second run asks nothing"


def test_translations_can_be_measured(server: Translator, tmp_path: Path) -> None:
    """And other languages need their code alone."""
    made = write(tmp_path / "inputs", server.url, SETTINGS.replace('"fr", "de"', '"pt", "ja"') + "\nmeasure = true")
    said = made.run()
    assert said.status == 0, said.err
    assert made.rows["pass_rate_of"].null_count() == made.rows.height
    rates = made.data.select("id", original="pass_rate")
    both = made.rows.join(rates, left_on="translation_of", right_on="id")
    assert both["judged"].to_list() == [4] * both.height
    assert (both["pass_rate"] != both["original"]).any()
    assert "Their pass rates were measured" in made.card
    assert set(made.rows["lang"]) == {"pt", "ja"}
    assert "| Japanese |" in made.card


REFUSED = {
    'languages = ["xx"]': "no code of a language",
    'languages = ["en"]': "translated from",
    'reader = "nobody"': "there is no table [models.nobody]",
}


def test_a_table_that_cannot_be_meant_is_refused(tmp_path: Path) -> None:
    for number, (settings, said) in enumerate(REFUSED.items()):
        made = write(tmp_path / str(number) / "inputs", "http://localhost:9/v1", 'model = "strong"\n' + settings)
        assert said in refusal("run", made.recipe, "--out", made.folder)


def test_a_run_killed_while_it_translates_ends_in_the_same_bytes(tmp_path: Path, finished: Translated) -> None:
    with Translator(pause_s=0.3) as slow:
        made = write(tmp_path / "inputs", slow.url)
        text = made.recipe.read_text().replace('prompt = "plain"', 'prompt = "plain"\nin_flight = 2')
        made.recipe.write_text(text)
        command = [sys.executable, "-m", "flows.cli", "run", str(made.recipe), "--out", str(made.folder)]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(lambda: len(slow.prompts) > 4, process)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert not (made.folder / "curated").exists()
        assert not list((made.folder / "stages" / "10-translation").glob("shards/*"))
        before = slow.prompts[:2]
        slow.pause_s = 0.0
        assert made.run().status == 0
        assert all(slow.prompts.count(prompt) == 1 for prompt in before)
    assert made.data.drop("measured_on").equals(finished.data.drop("measured_on"))
    stages = "stages/10-translation"
    assert _bytes(made.folder / stages) == _bytes(finished.folder / stages)


def _bytes(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*.parquet"))}


def test_a_refresh_carries_translations_along(
    server: Translator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refresh, "PROBE_SHARE", 1.0)
    monkeypatch.setattr(refresh, "RETRY_SHARE", 0.0)
    made = write(tmp_path / "inputs", server.url)
    assert made.run().status == 0
    before, asked = made.rows, set(server.prompts)
    newer = tmp_path / "newer.toml"
    newer.write_text(f"[models.newer]\n{server.table('other')}")
    said = goldilocks("refresh", made.folder, "--policy", newer)
    assert said.status == 0, said.err
    after = made.rows
    assert "version 2" in said.out
    stays = set(made.data.filter(pl.col("translation_of").is_null())["id"])
    kept = before.filter(pl.col("translation_of").is_in(list(stays)))
    assert kept.height > 0
    assert set(after["translation_of"]) <= stays
    same = ["id", "translation_of", "statement", "lang"]
    assert (
        kept.select(same)
        .sort("id")
        .equals(after.filter(pl.col("id").is_in(kept["id"].implode())).select(same).sort("id"))
    )
    texts = {row["statement"] for row in kept.to_dicts()}
    again = [prompt for prompt in server.prompts if prompt not in asked]
    assert not any(text in prompt for prompt in again for text in texts)
