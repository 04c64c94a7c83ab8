"""Figures on broken translations: of a set's own files, in its receipt, and computed again from the set alone."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import polars as pl

from curation.planting import CORRUPTIONS
from curation.publish.receipts import read_receipt
from flows.publish.languages import DATA_FILE
from flows.publish.receipts import renew_contents
from flows.publish.translation_figures import SECTION, translation_figures
from tests.flows.conftest import Tiny
from tests.flows.publish.test_languages import IN, PROBLEMS, curated
from tests.flows.publish.test_receipts import verify

__all__ = ["curated"]


def translate(
    home: Path, rows: pl.DataFrame, texts: dict[tuple[str, str], str], reader: dict[str, object] | None = None
) -> None:
    """Write translations of a set's rows: by id of the original, and language."""
    record = {"reader": reader} if reader is not None else {}
    by_id = {row["id"]: row for row in rows.iter_rows(named=True)}
    made = [
        {
            **by_id[name],
            "id": f"{name}{lang}",
            "lang": lang,
            "statement": text,
            "meta": json.dumps({"translation": {"of": name, **record}}),
        }
        for (name, lang), text in texts.items()
    ]
    pl.DataFrame(made, schema=rows.schema).write_parquet(home / DATA_FILE)


def test_a_set_without_translations_has_no_such_figure(curated: Path) -> None:
    assert translation_figures(curated / "curated") == []


def test_what_is_found_of_each_kind(curated: Path) -> None:
    home = curated / "curated"
    rows = pl.read_parquet(home / "data" / "train-*.parquet")
    names = dict(zip(rows["statement"], rows["id"], strict=True))
    texts = {
        (names[text], lang): IN[lang].format(number)
        for number, text in enumerate(PROBLEMS, 20)
        for lang in ("de", "fr")
    }
    translate(home, rows, texts)
    figures = {figure.name: figure for figure in translation_figures(home)}
    assert set(figures) == {f"{SECTION}.{kind.replace(' ', '_')}" for kind in CORRUPTIONS}
    for kind in ("number_changed", "number_dropped", "wrong_language", "sentence_left", "answer_appended"):
        figure = figures[f"{SECTION}.{kind}"]
        assert (figure.value, figure.n) == (1.0, 24), figure
    changed = figures[f"{SECTION}.number_changed"].counts
    assert changed == {"numbers": 24}
    assert figures[f"{SECTION}.formula_dropped"].value is None  # there are none
    assert translation_figures(home) == list(figures.values())


def test_what_a_reader_overruled_is_not_broken(curated: Path) -> None:
    home = curated / "curated"
    rows = pl.read_parquet(home / "data" / "train-*.parquet")
    names = dict(zip(rows["statement"], rows["id"], strict=True))
    texts = {(names[text], "de"): IN["de"].format(number) for number, text in enumerate(PROBLEMS, 20)}
    translate(home, rows, texts, {"asked": 2, "same": 2, "different": 0, "decided": True})
    assert {figure.n for figure in translation_figures(home) if figure.name.endswith("number_changed")} == {12}
    translate(home, rows, texts, {"asked": 2, "same": 2, "different": 0, "decided": True, "overruled": ["order"]})
    assert translation_figures(home) == []


def test_the_receipt_has_them_and_the_set_alone_verifies(tiny_copy: Tiny, tmp_path: Path) -> None:
    home = tiny_copy.folder / "curated"
    rows = tiny_copy.table("data")
    row = rows.filter(pl.col("statement").str.contains(r"\d")).row(0, named=True)
    translate(home, rows, {(row["id"], "de"): row["statement"]})
    renew_contents(home)
    receipt, _ = read_receipt(home)
    own = [figure for figure in receipt.figures if figure.section == SECTION]
    assert len(own) == len(CORRUPTIONS)
    assert "## Broken Translations Found" in (home / "RECEIPT.md").read_text()
    alone = shutil.copytree(home, tmp_path / "set")
    said = verify(alone)
    assert (said.status, said.err) == (0, ""), said.out
    assert f"{len(CORRUPTIONS)} kinds of broken translations" in said.out
    edited = json.loads((alone / "receipt.json").read_text())
    figure = next(one for one in edited["figures"] if one["name"] == f"{SECTION}.number_changed")
    figure["n"] = 12345
    (alone / "receipt.json").write_text(json.dumps(edited, indent=1, ensure_ascii=False) + "\n")
    said = verify(alone)
    assert said.status == 1
    assert f"{SECTION}.number_changed" in said.out
