"""Versions of a set on disk: also those that were published before columns were renamed."""

from __future__ import annotations

import hashlib
from pathlib import Path

import polars as pl
import pytest

from curation.publish import versions as changes
from curation.records import OLD_COLUMNS
from flows.publish import versions
from flows.publish.versions import decisions_of, digest_of, version_folder


def test_decisions_of_before_a_renaming_are_read_under_todays_names(tmp_path: Path) -> None:
    frame = changes.KEPT.to_frame()
    assert set(OLD_COLUMNS.values()) <= set(frame.columns)
    folder = version_folder(tmp_path, 1)
    folder.mkdir(parents=True)
    frame.rename({new: old for old, new in OLD_COLUMNS.items()}).write_parquet(folder / "decisions.parquet")
    assert decisions_of(tmp_path, 1).schema == frame.schema


def test_a_digest_is_that_of_the_whole_table_however_few_rows_are_written_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = [(f"p{number % 4}{number}", None if number % 3 else 'a "b",\n', "today") for number in range(9)]
    table = pl.DataFrame(rows, ["problem", "reason", "measured_on"], orient="row")
    text = table.drop("measured_on").sort("problem").write_csv()
    monkeypatch.setattr(versions, "ROWS_AT_ONCE", 2)
    assert digest_of(table) == hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
    assert digest_of(table.reverse()) == digest_of(table) != digest_of(table[1:])
