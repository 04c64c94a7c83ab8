"""Raw rows of files: every format, every way of being broken, values by dotted path."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import zstandard

from curation.records import SourceError
from curation.sources.files import read_rows
from curation.sources.rows import last_boxed, parse_options, require_path, value_at

ROWS = [{"q": "What is 2 + 3?", "a": 5}, {"q": "Größe? “x”\nline", "a": None}, {"q": "", "a": [1, {"b": "c"}]}]
LINES = "".join(json.dumps(row) + "\n" for row in ROWS).encode()


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def zstd(content: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(content)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("rows.v1.2.jsonl", b"\n" + LINES.replace(b"\n", b"\n\n \t\n") + b"\n"),
        ("rows.ndjson", LINES.rstrip(b"\n")),
        ("rows.jsonl.gz", gzip.compress(LINES[:40]) + gzip.compress(LINES[40:])),
        ("rows.jsonl.zst", zstd(LINES[:40]) + zstd(LINES[40:])),
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
    assert list(read_rows(written(tmp_path / "x.csv", text.encode()))) == rows
    assert list(read_rows(written(tmp_path / "x.csv.gz", gzip.compress(text.encode())))) == rows
    assert list(read_rows(written(tmp_path / "x.csv.zst", zstd(text.encode())))) == rows


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


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("meta.level", 3),
        ("meta.absent", None),
        ("a.b", "dotted name"),
        ("messages.0.content", "first"),
        ("messages.-1.content", "last"),
        ("messages.content", None),
        ("grid.1.0", 3),
        ("", None),
    ],
)
def test_a_value_by_its_dotted_path(path: str, value: Any) -> None:
    assert value_at(NESTED, path) == value


def test_a_path_that_no_row_has_lists_what_there_is() -> None:
    rows = [{"q": 1, "meta": {"level": 1}}, {"q": 2, "turns": [{"text": "x"}]}]
    require_path(rows, "turns.0.text", "here")
    require_path([{"q": None}], "q", "here")
    require_path([], "anything", "here")
    with pytest.raises(SourceError) as caught:
        require_path(rows, "meta.grade", "source x (x.jsonl)")
    assert str(caught.value) == (
        "source x (x.jsonl): no row has `meta.grade`; there are: q, meta, meta.level, turns, turns.0.text."
    )


@pytest.mark.parametrize(
    ("value", "options"),
    [
        (None, None),
        ({"label": [], "text": []}, None),
        (["1", 2, 2.5], ["1", "2", "2.5"]),
        ({"A": "1", "B": 2, "C": None}, ["A) 1", "B) 2"]),
        ({"label": ["A", "B"], "text": ["one", "two"]}, ["A) one", "B) two"]),
    ],
)
def test_options_in_their_three_shapes(value: Any, options: list[str] | None) -> None:
    assert parse_options(value, "here") == options


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        (r"\boxed{1} then \boxed{ 2 }", "2"),
        (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        (r"\boxed{\left\{x^{2}\right\}} }", r"\left\{x^{2}\right\}"),
        (r"\boxed{1} or \fbox{3}", "3"),
        (r"\boxed{\begin{matrix}1\\{2}\end{matrix}}", r"\begin{matrix}1\\{2}\end{matrix}"),
        (r"\boxed{1", None),
        (r"\boxed{1} and \boxed{2", None),
        ("", None),
    ],
)
def test_the_last_box_with_its_braces(text: str, inside: str | None) -> None:
    assert last_boxed(text) == inside


@pytest.mark.parametrize(
    ("value", "options"),
    [
        ("a ) 38 , b ) 27.675 , c ) 30 , d ) too few , e ) none", ["38", "27.675", "30", "too few", "none"]),
        (["a ) 38 , b ) 27.675 , c ) 30"], ["38", "27.675", "30"]),
        ("a ) rs . 3,000 , b ) 4,000 ( c ) , c ) 1", ["rs . 3,000", "4,000 ( c )", "1"]),
        ("['a ) 38', 'b ) 27.675', 'c ) 30']", ["38", "27.675", "30"]),
        (["a ) 38", "b ) 27.675"], ["38", "27.675"]),
        ("(a) 1 (b) 2, (c) x ) 4", ["1", "2", "x ) 4"]),
        ("A. 1.5; B. 2\nC. 4", ["1.5", "2", "4"]),
        ("a ) 1 , 000 , b ) 2 , 000", ["1,000", "2,000"]),
        (["a ) 38"], ["a ) 38"]),
    ],
)  # fmt: skip
def test_options_in_one_text(value: Any, options: list[str]) -> None:
    assert parse_options(value, "here") == options


@pytest.mark.parametrize("value", ["38 , 27", "b ) 38 , c ) 27", "a ) 38", "[38"])
def test_a_text_that_is_no_list_of_options(value: str) -> None:
    with pytest.raises(SourceError, match="should be a list of options"):
        parse_options(value, "here")
