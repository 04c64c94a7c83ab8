"""Rows of JSON lines, CSV and parquet files, compressed or not.

Invariants: rows are streamed in order; an unreadable line is a `RawRow` without a row, an unreadable file one
`SourceError`.
"""

from __future__ import annotations

import csv
import io
import json
import lzma
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, Literal, cast

import orjson

from curation.records import SourceError
from curation.sources.rows import RawRow, Row
from curation.storage.remote import COMPRESSED, first_line
from curation.storage.remote import kind_of as by_ending

MAX_BYTES = 1 << 28
"""Max bytes of a line, or of a list's file."""
MAX_DEPTH = 300
"""Max nesting; Python's own tools fail at about 1,000."""
_LONG_INTEGER = re.compile(rb"\d{19}")
_JSON = re.compile(r"\.json(?:\.(?:gz|zst|bz2|xz))?$", re.IGNORECASE)
"""The ending of a file that may be a list."""
_BOM = b"\xef\xbb\xbf"


def raw_rows(path: Path, kind: str, batch_rows: int = 10_000, url: str = "") -> Iterator[RawRow]:
    """Yield a ``jsonl``, ``csv`` or ``parquet`` file's rows, even unreadable ones.

    Args:
        url: the URL that the file was copied from, for rows and messages.

    Raises:
        SourceError: the file is missing or damaged.
    """
    name = url or path
    try:
        if kind == "parquet":
            from pyarrow.parquet import ParquetFile

            with ParquetFile(path) as table:
                yield from arrow_rows(name, table.iter_batches(batch_size=batch_rows))
            return
        with _opened(path) as file:
            is_json = _JSON.search(path.name) is not None
            yield from _csv_rows(name, file) if kind == "csv" else _json_rows(name, file, is_json=is_json)
    except FileNotFoundError as error:
        raise SourceError(f"{name}: there is no such file.") from error
    except PermissionError as error:
        raise SourceError(f"{name}: cannot be opened ({error.strerror}).") from error
    except _read_errors() as error:
        reason = first_line(error) or type(error).__name__
        raise SourceError(
            f"{name}: not a readable {kind} file, or a damaged one ({reason}); fetch it again."
        ) from error


def _opened(path: Path) -> IO[bytes]:
    """Open a file, decompressed by its ending."""
    if path.suffix == ".xz":
        return lzma.open(path)
    if path.suffix not in (*COMPRESSED, ".lz4"):
        return path.open("rb")
    import pyarrow

    return cast(IO[bytes], io.BufferedReader(pyarrow.input_stream(str(path)), 1 << 20))


def _read_errors() -> tuple[type[Exception], ...]:
    """Return the errors of damaged files; pyarrow, which takes 30 MB, is not imported for its own."""
    pyarrow = sys.modules.get("pyarrow")
    return (EOFError, OSError, lzma.LZMAError, *([] if pyarrow is None else [pyarrow.ArrowException]))


def read_rows(path: Path) -> Iterator[Row]:
    """Return an iterator over a file's rows."""
    return (raw.read() for raw in raw_rows(path, kind_of(path)))


def numbered_jsonl(path: Path) -> Iterator[tuple[int, Row]]:
    """Yield rows of JSON lines with line numbers from 1."""
    return ((raw.line, raw.read()) for raw in raw_rows(path, "jsonl"))


def kind_of(path: Path) -> Literal["jsonl", "csv", "parquet"]:
    """Return a file's ``kind`` by its ending.

    Raises:
        SourceError: the ending is unknown.
    """
    if (kind := by_ending(str(path))) == "dataset":
        raise SourceError(f"{path}: not a .jsonl, .jsonl.gz, .jsonl.zst, .parquet or .csv file.")
    return kind


def _json_rows(name: Path | str, file: IO[bytes], *, is_json: bool) -> Iterator[RawRow]:
    for number, line in enumerate(iter(lambda: file.readline(MAX_BYTES), b""), 1):
        line = line.removeprefix(_BOM) if number == 1 else line
        if is_json and line.lstrip()[:1] == b"[":
            yield from _listed_rows(name, line + file.read(MAX_BYTES))
            return
        if len(line) == MAX_BYTES:
            raise SourceError(f"{name}, line {number}: more than {MAX_BYTES:,} bytes; write an object a line.")
        if not line.isspace():
            row, reason = _parsed(line)
            yield RawRow(name, number, line, row, reason)


def _parsed(line: bytes) -> tuple[Row | None, str]:
    try:
        row = orjson.loads(line)
    except ValueError as error:
        return None, f"not JSON ({error})"
    if not isinstance(row, dict):
        return None, "expected a JSON object"
    if line.count(b"[") + line.count(b"{") > MAX_DEPTH and _is_deep(row):
        return None, f"nested more than {MAX_DEPTH} deep"
    if _LONG_INTEGER.search(line):  # orjson makes floats of integers beyond 64 bits; json keeps their digits
        return cast(Row, json.loads(line)), ""
    return row, ""


def _is_deep(value: Any, depth: int = 0) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return depth > MAX_DEPTH or any(_is_deep(item, depth + 1) for item in inner if isinstance(item, dict | list))


def _listed_rows(name: Path | str, content: bytes) -> Iterator[RawRow]:
    if len(content) >= MAX_BYTES:
        raise SourceError(f"{name}: a list of more than {MAX_BYTES:,} bytes; write an object a line.")
    try:
        items = orjson.loads(content)
        items = json.loads(content) if _LONG_INTEGER.search(content) else items
    except ValueError as error:
        raise SourceError(f"{name}: not a JSON list ({error}).") from error
    for number, item in enumerate(items, 1):
        is_row = isinstance(item, dict) and not _is_deep(item)
        reason = "" if is_row else f"expected a JSON object, nested at most {MAX_DEPTH} deep"
        yield RawRow(name, number, None if is_row else orjson.dumps(item), item if is_row else None, reason)


def _csv_rows(name: Path | str, file: IO[bytes]) -> Iterator[RawRow]:
    """Yield rows below the header; empty fields are None."""
    csv.field_size_limit(MAX_BYTES)
    with io.TextIOWrapper(file, encoding="utf-8-sig", newline="") as text:
        reader = csv.reader(text, strict=True)
        try:
            header = next(reader, [])
            for fields in filter(None, reader):
                if len(fields) == len(header):
                    row = {column: field or None for column, field in zip(header, fields, strict=True)}
                    yield RawRow(name, reader.line_num, None, row)
                else:
                    which = "more" if len(fields) > len(header) else "fewer"
                    reason = f"{which} fields than the header's {len(header)}"
                    yield RawRow(name, reader.line_num, orjson.dumps(fields), None, reason)
        except (csv.Error, UnicodeDecodeError) as error:
            raise SourceError(f"{name}, line {reader.line_num}: not readable as CSV ({error}); mend it.") from error


def arrow_rows(name: Path | str, tables: Iterable[Any]) -> Iterator[RawRow]:
    """Yield the rows of Arrow tables or batches, one after another.

    Raises:
        SourceError: a text is not UTF-8.
    """
    start = 1
    for table in tables:
        try:
            rows = table.to_pylist()
        except UnicodeDecodeError as error:
            last = start + table.num_rows - 1
            raise SourceError(f"{name}, rows {start:,} to {last:,}: a text is not UTF-8 ({error}); mend it.") from error
        for number, row in enumerate(rows, start):
            yield RawRow(name, number, None, row)
        start += table.num_rows
