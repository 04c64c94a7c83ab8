"""Raw rows of files: every format, every way of being broken, values by dotted path."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import zstandard

from curation.records import SourceError
from curation.sources.files import read_rows
from curation.sources.rows import parse_options, value_at
from tests.curation.tables import check_refused, check_table

ROWS = [{"q": "What is 2 + 3?", "a": 5}, {"q": "Größe? “x”\nline", "a": None}, {"q": "", "a": [1, {"b": "c"}]}]
LINES = "".join(json.dumps(row) + "\n" for row in ROWS).encode()


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("rows.v1.2.jsonl", b"\n" + LINES.replace(b"\n", b"\n\n \t\n") + b"\n"),
        ("rows.ndjson", LINES.rstrip(b"\n")),
        ("rows.jsonl.gz", gzip.compress(LINES[:40]) + gzip.compress(LINES[40:])),
        ("rows.jsonl.zst", zstandard.compress(LINES[:40]) + zstandard.compress(LINES[40:])),
    ],
    ids=["blank lines", "no last newline", "gz of two members", "zst of two frames"],
)
def test_json_lines_in_every_wrapping(tmp_path: Path, name: str, content: bytes) -> None:
    assert list(read_rows(written(tmp_path / name, content))) == ROWS


def test_csv_with_everything_that_csv_allows(tmp_path: Path) -> None:
    text = '\ufeffq,a,note\r\n"What is\n2 + 3?",5,"say ""five"""\r\n\r\nshort,,\r\n"",,\r\n"kept\r\nas it is", 7,'
    rows = [
        {"q": "What is\n2 + 3?", "a": "5", "note": 'say "five"'},
        {"q": "short", "a": None, "note": None},
        {"q": None, "a": None, "note": None},
        {"q": "kept\r\nas it is", "a": " 7", "note": None},
    ]
    for name, pack in (("x.csv", bytes), ("x.csv.gz", gzip.compress), ("x.csv.zst", zstandard.compress)):
        assert list(read_rows(written(tmp_path / name, pack(text.encode())))) == rows


@pytest.mark.parametrize("name", ["x", "x.xlsx"])
def test_another_kind_of_file_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(SourceError, match=r"not a \.jsonl, \.jsonl\.gz, \.jsonl\.zst, \.parquet or \.csv file"):
        list(read_rows(written(tmp_path / name, LINES)))


NESTED: dict[str, Any] = {
    "meta": {"level": 3, "none": None},
    "a.b": "dotted name",
    "a": {"b": "inside"},
    "messages": [{"content": "first"}, {"content": "last"}],
    "grid": [[1, 2], [3, 4]],
}


def test_a_value_by_its_dotted_path() -> None:
    check_table("value_at", lambda path: value_at(NESTED, path))


def test_options_in_their_shapes() -> None:
    check_table("parse_options", lambda value: parse_options(value, "here"))
    check_refused("no options", lambda value: parse_options(value, "here"), SourceError)
