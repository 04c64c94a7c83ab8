"""`goldilocks diff` on real runs: two recipes, two versions, what cannot be compared."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from flows.cli import diff
from tests.flows.conftest import Tiny, goldilocks


def test_what_became_too_easy_is_retired(tiny_copy: Tiny, tiny_run: Tiny, tmp_path: Path) -> None:
    before = {str(name) for name in tiny_run.table("data")["id"]}
    tiny_copy.answer_all()
    assert tiny_copy.run().status == 0
    after = {str(name) for name in tiny_copy.table("data")["id"]}
    assert after < before
    dropped = tiny_copy.table("dropped").filter(pl.col("reason") == "too_easy")
    easy = before & {str(name) for name in dropped["id"]}
    assert easy
    out = tmp_path / "changes.parquet"
    told = json.loads(goldilocks("diff", tiny_run.folder, tiny_copy.folder, "--out", out, "--json").out)
    assert told["problems"] == {"old": len(before), "new": len(after)}
    changes = told["changes"]
    assert (changes["retired"], changes["kept"]) == (len(easy), len(after))
    assert sum(changes.values()) - changes["kept"] - changes["left_out"] == len(before - after)
    assert set(pl.read_parquet(out).filter(pl.col("change") == "retired")["problem"]) == easy
    text = goldilocks("diff", tiny_run.folder / "curated", tiny_copy.folder).out
    assert f"in both {len(after)}: the same contents" in text
    assert f"retired {len(easy)}" in text
    versions = goldilocks("diff", f"{tiny_copy.folder}@1", f"{tiny_copy.folder}@2").out
    assert f"retired {len(easy)}" in versions


def test_sets_of_any_size_are_told_alike(tiny_run: Tiny, tiny_copy: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    assert tiny_copy.run("stage1.band.max_pass_rate=0.5").status == 0
    places = tiny_run.folder, tiny_copy.folder
    whole = [goldilocks("diff", *places).out, goldilocks("diff", *places, "--json").out]
    monkeypatch.setattr(diff, "PART_ROWS", 5)
    assert [goldilocks("diff", *places).out, goldilocks("diff", *places, "--json").out] == whole


def test_what_is_no_set_is_one_sentence(tiny_run: Tiny, tmp_path: Path) -> None:
    for places, words in [
        ((tmp_path, tiny_run.folder), "no data/*.parquet"),
        ((f"{tiny_run.folder}@7", tiny_run.folder), "no such version; versions there: 1"),
        ((tiny_run.folder, tiny_run.folder, "--out", tmp_path / "x.csv"), "must end in .parquet or .jsonl"),
    ]:
        ended = goldilocks("diff", *places)
        assert ended.status == 1
        assert words in ended.err
        assert ended.err.count("\n") <= 1
