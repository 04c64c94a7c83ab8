"""Versions of a set on disk: their digests."""

from __future__ import annotations

import hashlib

import polars as pl
import pytest

from curation.storage import sorted_parts
from flows.publish.versions import digest_of


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
