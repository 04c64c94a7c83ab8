"""Rows of a joined table that cannot be read: set aside beside those of the source, or the reading stops."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from curation.config import Source
from curation.records import DROPPED, SourceError
from curation.sources.reading import QUARANTINE, Part, read_parts
from curation.sources.selection import SelectionCounts

COLUMNS = {"statement": "problem", "answer": "answers.0.value"}


def joined_source(folder: Path, bad: int, **changes: Any) -> Source:
    """Write a source of ten rows and the table beside it, of whose lines the last ``bad`` are broken."""
    rows = [json.dumps({"n": n, "problem": f"What is {n} + {n}?"}) for n in range(10)]
    beside = [json.dumps({"n": n, "value": str(2 * n)}) for n in range(10)]
    beside[10 - bad :] = [line[:-4] for line in beside[10 - bad :]]
    (folder / "x.jsonl").write_text("\n".join(rows) + "\n")
    (folder / "y.jsonl").write_text("\n".join(beside) + "\n")
    join = {"path": "y.jsonl", "on": "n", "into": "answers"}
    settings = {"name": "s", "kind": "jsonl", "path": "x.jsonl", "columns": COLUMNS, "bad_rows": 100}
    return Source.model_validate({**settings, "join": join, **changes})


def parts(source: Source, folder: Path, batch_rows: int = 4) -> tuple[list[Part[int]], SelectionCounts]:
    counts = SelectionCounts()
    return list(read_parts(source, folder, batch_rows, lambda rows, _: len(rows), counts)), counts


def test_a_bad_row_of_a_joined_table_is_set_aside_and_is_no_row_of_the_source(tmp_path: Path) -> None:
    found, counts = parts(joined_source(tmp_path, 2), tmp_path)
    assert [part.rows for part in found] == [4, 4, 2]
    assert (counts.matched, counts.joined_bad) == (8, 2)
    assert [part.quarantine.height for part in found] == [2, 0, 0]
    assert all(part.dropped.is_empty() and part.dropped.schema == DROPPED for part in found)
    assert found[0].quarantine.schema == QUARANTINE
    assert found[0].quarantine.select("source", "row", "file", "line").rows() == [
        ("s", None, "y.jsonl", 9),
        ("s", None, "y.jsonl", 10),
    ]
    assert found[0].quarantine["raw"][0] == b'{"n": 8, "value": "\n'
    assert "not JSON" in found[0].quarantine["reason"][0]


def test_its_bad_rows_count_among_those_that_the_source_may_have(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"more than 1 rows cannot be read \(the last one: .*y\.jsonl, line 10"):
        parts(joined_source(tmp_path, 2, bad_rows=1), tmp_path)
    source = joined_source(tmp_path, 2, bad_rows=2)
    (tmp_path / "x.jsonl").write_text((tmp_path / "x.jsonl").read_text() + "{\n")
    with pytest.raises(SourceError, match=r"more than 2 rows cannot be read \(the last one: .*x\.jsonl, line 11"):
        parts(source, tmp_path)


def test_a_joined_table_of_bad_rows_alone_ends_the_run(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="it has no rows with a key"):
        parts(joined_source(tmp_path, 10), tmp_path)


def test_without_a_budget_the_first_one_stops_the_reading(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"y\.jsonl, line 9: .*set `bad_rows = 100` for source s"):
        parts(joined_source(tmp_path, 2, bad_rows=0), tmp_path)
