"""Versions of a set on disk: their digests, and their change log in parts."""

from __future__ import annotations

import hashlib
import json
import random
from dataclasses import asdict
from pathlib import Path

import polars as pl
import pytest

from curation.publish import versions as changes
from curation.storage import sorted_parts
from curation.storage.stages import atomic_write, write_parquet
from flows.publish.versions import ABOUT, Version, changelog, changes_of, digest_of, version_folder


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


def test_a_change_log_in_parts_is_that_of_two_versions_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(0)
    tables = [_decisions(draw), _decisions(draw)]
    for number, table in enumerate(tables, 1):
        about = Version(number, "2026-05-04", "run", "m@1", "goldilocks@4", "", "", {})
        write_parquet(version_folder(tmp_path, number) / "decisions.parquet", table)
        atomic_write(version_folder(tmp_path, number) / ABOUT, json.dumps(asdict(about)))
    monkeypatch.setattr(sorted_parts, "ROWS_AT_ONCE", 7)
    told = changelog(tmp_path)
    for number in (1, 2):
        table = changes_of(tmp_path, number)
        assert changes.changelog(number, "2026-05-04", "m@1", changes.counts(table), table) in told
    assert all(words in told for words in ("### Removed", "### Promoted", " more\n"))


def _decisions(draw: random.Random) -> pl.DataFrame:
    """Return decisions on most of 120 problems, in a random order."""
    rows = []
    for name in draw.sample(range(120), 90):
        reason = draw.choice([None, "too_easy", "never_solved"])
        kept = {"keep": reason is None, "published": reason is None, "reason": reason}
        row = {"problem": f"{name % 11}x{name}", "policy": "m@1", "judged": 16, "pass_rate": 0.5, **kept}
        rows.append({**dict.fromkeys(changes.KEPT), **row})
    return pl.DataFrame(rows, schema=changes.KEPT)
