"""Rows of files of JSON: an object a line, or a .json file that is one list of objects.

Invariant: every line that is not blank and every item is one `RawRow`, in order; so is a damaged file's rest.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import orjson

from curation.sources.rows import RawRow, Row
from curation.sources.streams import LONGEST, PACKINGS, Stream, lines, opened

DEEPEST = 300
"""Lists and objects within one another; Python's own tools end at about 1,000."""
_LONG_INTEGER = re.compile(rb"\d{19}")
_BOM = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_NO_NUMBER = re.compile(rb'(?<![\w"])(?:NaN|-?Infinity)(?![\w"])')


def json_rows(path: Path, damage: str = "") -> Iterator[RawRow]:
    """Yield every row of a file, those that cannot be read too; blank lines are skipped."""
    with opened(path, damage) as (stream, reader):
        begin = reader.peek(4)[:60]
        if begin.startswith(_UTF16):
            yield RawRow(path, 0, begin, None, "the file is UTF-16; write it as UTF-8")
            return
        if begin.startswith(_BOM):
            reader.read(len(_BOM))
        if _is_list(path, reader):
            yield from _listed_rows(path, stream, reader)
        else:
            yield from _line_rows(path, stream, reader)


def _is_list(path: Path, reader: io.BufferedReader) -> bool:
    """Return whether a file is one list of rows, which only .json files are."""
    suffixes = [suffix for suffix in path.suffixes if suffix not in PACKINGS]
    return suffixes[-1:] == [".json"] and reader.peek(1).lstrip()[:1] == b"["


def _line_rows(path: Path, stream: Stream, reader: io.BufferedReader) -> Iterator[RawRow]:
    number = 0
    for number, line, is_whole in lines(reader):
        if stream.damage and not line.endswith(b"\n"):
            yield RawRow(path, number, line, None, stream.cut)
            return
        if not is_whole:
            yield RawRow(path, number, line, None, f"a line of more than {LONGEST:,} bytes")
        elif not line.isspace():
            row, reason = _read(line)
            yield RawRow(path, number, line, row, reason)
    if stream.damage:
        yield RawRow(path, number + 1, b"", None, stream.cut)


def _listed_rows(path: Path, stream: Stream, reader: io.BufferedReader) -> Iterator[RawRow]:
    """Yield the items of a file that is a list, which is read whole; where it cannot be, the file as one row."""
    content = reader.read(LONGEST)
    reason = stream.cut if stream.damage else ""
    if reader.peek(1):
        reason = f"a list of more than {LONGEST:,} bytes; write an object a line"
    items: Any = []
    if not reason:
        try:
            items = orjson.loads(content)
        except ValueError as error:
            reason = f"not a JSON list ({_fault(content, error)})"
    if reason:
        yield RawRow(path, 0, content, None, reason)
        return
    if _LONG_INTEGER.search(content):
        items = json.loads(content)
    for number, item in enumerate(items, start=1):
        if reason := _shape_fault(item):
            yield RawRow(path, number, _bytes_of(item), None, reason)
        else:
            yield RawRow(path, number, None, item)


def _bytes_of(item: Any) -> bytes:
    try:
        return json.dumps(item).encode()
    except RecursionError:
        return b""  # it is nested too deep, which is its fault


def _read(line: bytes) -> tuple[Row | None, str]:
    """Return the row that a line is, or why it is none."""
    try:
        row = orjson.loads(line)
    except ValueError as error:
        return None, f"not JSON ({_fault(line, error)})"
    if not isinstance(row, dict):
        return None, "a JSON object is wanted"
    if line.count(b"[") + line.count(b"{") > DEEPEST and (reason := _shape_fault(row)):
        return None, reason
    if _LONG_INTEGER.search(line):  # orjson makes floats of integers beyond 64 bits; json keeps their digits
        return cast(Row, json.loads(line)), ""
    return row, ""


def _shape_fault(item: Any) -> str:
    """Return why a value is no row, empty where it is one."""
    layer, depth = [item], 0
    while layer:
        depth += 1
        within = [one.values() if isinstance(one, dict) else one for one in layer if isinstance(one, dict | list)]
        layer = [value for values in within for value in values if isinstance(value, dict | list)]
        if depth > DEEPEST:
            return f"nested more than {DEEPEST} deep"
    return "" if isinstance(item, dict) else "a JSON object is wanted"


def _fault(line: bytes, error: ValueError) -> str:
    """Return what of a line is no JSON, in words where it is one of the usual faults."""
    if line.startswith(_BOM):
        return "it begins with a byte order mark"
    if b"\x00" in line:
        return "it holds a NUL byte"
    if "surrogate in string" in str(error):
        return f"half of a surrogate pair, {error}"
    if "not valid UTF-8" in str(error):
        return "not UTF-8"
    number = _NO_NUMBER.search(line)
    return f"{number.group().decode()} is no JSON number" if number else str(error)
