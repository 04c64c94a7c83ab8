"""Rows that a function of the user's yields: streamed, with its digest; a bad row is set aside, an error names it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from curation.config import Source
from curation.config.loading import parse_settings
from curation.records import ConfigError, SourceError
from curation.sources.problems import problem_rows
from curation.sources.reading import read_parts, read_source

ROWS = """
def rows():
    for number in range(5):
        yield {"question": f"What is {number} + 1, as a number?", "total": str(number + 1)}
"""


def own(**settings: Any) -> Source:
    columns = {"statement": "question", "answer": "total"}
    return parse_settings(Source, {"kind": "python", "path": "rows.py:rows", "columns": columns} | settings, "source")


def test_rows_are_read_as_those_of_a_file_are(tmp_path: Path) -> None:
    (tmp_path / "rows.py").write_text(ROWS)
    frames = list(read_source(own(), tmp_path, 2))
    assert [frame.height for frame in frames] == [2, 2, 1]
    assert [answer for frame in frames for answer in frame["answer"]] == ["1", "2", "3", "4", "5"]
    (even,) = read_source(own(where="total in ('2', '4')"), tmp_path, 10)
    assert even["answer"].to_list() == ["2", "4"]


def test_rows_are_streamed(tmp_path: Path) -> None:
    (tmp_path / "rows.py").write_text(ROWS.replace("range(5)", "iter(int, 1)"))
    assert next(read_source(own(limit=1000), tmp_path, 2)).height == 2


def test_what_is_no_row_is_set_aside_and_a_failure_names_file_line_and_row(tmp_path: Path) -> None:
    (tmp_path / "rows.py").write_text(ROWS + "    yield 7\n")
    source = own(bad_rows=1)
    parts = list(read_parts(source, tmp_path, 10, partial(problem_rows, source)))
    assert parts[0].quarantine["reason"].to_list() == ["'7' is no dictionary with names of columns"]
    assert parts[0].quarantine["file"].to_list() == ["rows.py"]
    (tmp_path / "rows.py").write_text(ROWS + "    1 / 0\n")
    with pytest.raises(SourceError, match=r"source rows: .*rows\.py:5: ZeroDivisionError: .* \(making row 6\)"):
        list(read_source(own(), tmp_path, 10))
    (tmp_path / "rows.py").write_text("rows = 3")
    with pytest.raises(ConfigError, match=r"source rows: rows\.py:rows is a int; it must be a function"):
        list(read_source(own(), tmp_path, 10))
