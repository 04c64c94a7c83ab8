"""Raw rows of files as dictionaries, and values inside them by dotted path.

Invariants: rows come in the file's order, one at a time; a file that is missing, broken or of another kind is one
`SourceError` naming file, line and what was found, and a row that cannot be read is a `BadRowError`; `RawRow`s come
with the bytes that they were, and go on behind such a row. Not here: what the columns mean
(`curation.sources.problems`), and what becomes of rows that cannot be read (`curation.sources.quarantine`).
"""

from __future__ import annotations

import ast
import csv
import gzip
import io
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal, cast

import orjson

from curation.records import SourceError

Row = Mapping[str, Any]
_ABSENT = object()
_POSITION = re.compile(r"-?[0-9]+")
_LONG_INTEGER = re.compile(rb"\d{19}")
_BOM = b"\xef\xbb\xbf"
_NO_NUMBER = re.compile(rb'(?<![\w"])(?:NaN|-?Infinity)(?![\w"])')
_NOT_UTF8 = re.compile("[\udc80-\udcff]")
"""Bytes that are not UTF-8, as ``surrogateescape`` reads them."""


class BadRowError(SourceError):
    """One row that cannot be read, or holds a value of another type than is wanted, while those beside it are sound.

    Args:
        message: where it is, and what is wrong with it.
        reason: what is wrong alone.
    """

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason or message


@dataclass(frozen=True, slots=True)
class RawRow:
    """A row beside the bytes that it was: of what is no text file, those of the row as JSON.

    Example: ``RawRow(Path("x.jsonl"), 2, b'{"q": NaN}', None, "not JSON (NaN)")``
    """

    path: Path | str
    """A text where it is a URL."""
    line: int
    """From 1; in a file without lines, the row's number."""
    raw: bytes
    row: Row | None
    """None where it cannot be read."""
    reason: str = ""
    """Why it cannot be read."""


def raw_rows(path: Path, kind: str, batch_rows: int = 10_000) -> Iterator[RawRow]:
    """Yield every row of a ``jsonl``, ``csv`` or ``parquet`` file, those that cannot be read too.

    Raises:
        SourceError: the file is missing, damaged, or cannot be cut into rows.
    """
    if kind == "jsonl":
        for number, line in _json_lines(path):
            try:
                yield RawRow(path, number, line, _json_row(line, path, number))
            except BadRowError as error:
                yield RawRow(path, number, line, None, error.reason)
    elif kind == "csv":
        yield from _csv_rows(path)
    else:
        yield from numbered_rows(path, read_parquet(path, batch_rows))


def numbered_rows(path: Path, rows: Iterable[Row], start: int = 1) -> Iterator[RawRow]:
    """Yield rows that came from no lines of text, numbered from ``start``, each with its JSON for its bytes."""
    for number, row in enumerate(rows, start):
        yield RawRow(path, number, json.dumps(row, ensure_ascii=True, default=str).encode(), row)


def read_rows(path: Path, batch_rows: int = 10_000) -> Iterator[Row]:
    """Return an iterator over the rows of one .jsonl, .jsonl.gz, .jsonl.zst, .parquet or .csv file."""
    kind = kind_of(path)
    if kind == "parquet":
        return read_parquet(path, batch_rows)
    return read_csv(path) if kind == "csv" else read_jsonl(path)


def kind_of(path: Path) -> Literal["jsonl", "csv", "parquet"]:
    """Return what a file's name says that it holds, as in a recipe's ``kind``.

    Raises:
        SourceError: it says nothing that can be read.
    """
    suffixes = [s for s in path.suffixes if s not in (".gz", ".zst")]
    match suffixes[-1] if suffixes else "":
        case ".jsonl" | ".json" | ".ndjson":
            return "jsonl"
        case ".csv":
            return "csv"
        case ".parquet":
            return "parquet"
    raise SourceError(f"{path}: not a .jsonl, .jsonl.gz, .jsonl.zst, .parquet or .csv file.")


def value_at(row: Any, path: str) -> Any:
    """Return the value at a dotted path, None where a step is absent; numbers index lists."""
    value = _walk(row, path)
    return None if value is _ABSENT else value


def require_path(rows: Sequence[Row], path: str, where: str) -> None:
    """Raise `SourceError` unless some of the rows have the path; the message lists what is there."""
    if rows and all(_walk(row, path) is _ABSENT for row in rows):
        raise SourceError(f"{where}: no row has `{path}`; there are: {', '.join(_paths(rows))}.")


def _walk(row: Any, path: str) -> Any:
    if isinstance(row, dict) and path in row:
        return row[path]
    for step in path.split("."):
        if isinstance(row, dict) and step in row:
            row = row[step]
        elif isinstance(row, list) and _POSITION.fullmatch(step) and -len(row) <= int(step) < len(row):
            row = row[int(step)]
        else:
            return _ABSENT
    return row


def _paths(rows: Sequence[Row], depth: int = 2) -> list[str]:
    """Return the dotted paths that occur in the rows, for error messages."""
    paths: dict[str, None] = {}
    for row in rows[:100]:
        for key, value in row.items():
            paths[key] = None
            if isinstance(value, Mapping) and depth > 1:
                paths.update({f"{key}.{inner}": None for inner in value})
            if isinstance(value, list) and value and isinstance(value[0], Mapping):
                paths.update({f"{key}.0.{inner}": None for inner in value[0]})
    return list(paths)


def parse_options(value: Any, where: str) -> list[str] | None:
    """Read the options of a multiple-choice problem: a list, ``{"A": "1", …}``, or ``{"label": […], "text": […]}``."""
    if value is None or value == []:
        return None
    lettered = _lettered(value[0] if isinstance(value, list) and len(value) == 1 else value)
    if lettered is not None:
        return lettered
    if isinstance(value, Mapping):
        labels, texts = value.get("label"), value.get("text")
        if isinstance(labels, list) and isinstance(texts, list) and len(labels) == len(texts):
            value = [f"{label}) {text}" for label, text in zip(labels, texts, strict=True)]
        else:
            value = [f"{label}) {text}" for label, text in value.items() if text is not None]
    if isinstance(value, list) and value and all(isinstance(option, str) and _APART.match(option) for option in value):
        value = _lettered(", ".join(value)) or value
    if not isinstance(value, list) or not all(isinstance(option, str | int | float) for option in value):
        raise BadRowError(f"{where} should be a list of options, but is {str(value)[:80]!r}.")
    return [str(option) for option in value] or None


def _lettered(value: Any) -> list[str] | None:
    """Return the options of one text: MathQA's "a ) 38 , b ) 27.675", or its list as text, "['a ) 38', 'b ) 27.675']";
    "A. 38; B. 27.675", "A: 38, B: 27.675", "(a) 38 (b) 27.675"; None where it is no such text.

    The letters must run from a without a gap, so that an option may hold a comma, or a bracket behind a letter.
    """
    if not isinstance(value, str):
        return None
    text = value.strip()
    if text.startswith("[") and text.endswith("]"):
        return _listed(text)
    if _APART.match(text):
        text = _THOUSANDS.sub(r"\1,\2", text)
    return next((options for mark, gap in _LETTERINGS if (options := _parted(text, mark, gap)) is not None), None)


_APART = re.compile(r"[a-jA-J]\s+\)")
"""A letter and its bracket apart, as MathQA's tokens are."""
_THOUSANDS = re.compile(r"(?<!\d)(\d{1,3}) , (\d{3})(?!\d)")
_LETTERINGS = ((r"\(\s*{}\s*\)", r"[,;]?\s*"), (r"{}\s*\)", r"[,;\n]\s*"), (r"{}\s*[.:]", r"[,;\n]\s*"))
"""How an option's letter is marked, and what stands before the next one's."""


def _listed(text: str) -> list[str] | None:
    """Return the items of a list of texts in Python's writing; of another text in brackets, its options."""
    try:
        items = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return _lettered(text[1:-1].strip())
    if not isinstance(items, list) or not items or not all(isinstance(item, str | int | float) for item in items):
        return None
    options = [str(item) for item in items]
    return _lettered(", ".join(options)) or (options if len(options) > 1 else None)


def _parted(text: str, mark: str, gap: str) -> list[str] | None:
    options: list[str] = []
    rest = text
    while (label := chr(97 + len(options))) <= "j":
        first = re.match(mark.format(label), rest, re.IGNORECASE)
        if first is None:
            return None
        rest = rest[first.end() :]
        following = re.search(rf"{gap}(?={mark.format(chr(ord(label) + 1))})", rest, re.IGNORECASE)
        if following is None:
            options.append(rest.strip())
            break
        options.append(rest[: following.start()].strip())
        rest = rest[following.end() :]
    return options if len(options) >= 2 and all(options) else None


def last_boxed(text: str) -> str | None:
    r"""Return the content of the last ``\boxed{}`` or ``\fbox{}``, with balanced braces; None where there is none."""
    start = max(text.rfind("\\boxed{"), text.rfind("\\fbox{"))
    if start < 0:
        return None
    begin = position = text.index("{", start) + 1
    depth = 1
    while position < len(text):
        character = text[position]
        if character == "\\":
            position += 1  # whatever it escapes
        elif character == "{":
            depth += 1
        elif character == "}":
            depth -= 1
            if depth == 0:
                return text[begin:position].strip()
        position += 1
    return None


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Raise `SourceError` for a missing or damaged file."""
    try:
        yield
    except FileNotFoundError as error:
        raise SourceError(f"{path}: there is no such file.") from error
    except (EOFError, OSError, zlib.error) as error:
        raise SourceError(f"{path}: cannot be read to its end ({error}).") from error


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    if path.suffix == ".gz":
        with gzip.open(path, "rb") as handle:
            yield cast(BinaryIO, handle)
    elif path.suffix == ".zst":
        import pyarrow  # its reader, unlike zstandard's, notices a file that was cut short

        with io.BufferedReader(pyarrow.input_stream(str(path), compression="zstd"), 1 << 20) as stream:
            yield cast(BinaryIO, stream)
    else:
        with path.open("rb") as plain:
            yield plain


def read_jsonl(path: Path) -> Iterator[Row]:
    """Yield the rows of a .jsonl, .jsonl.gz or .jsonl.zst file; blank lines are skipped."""
    for _, row in numbered_jsonl(path):
        yield row


def numbered_jsonl(path: Path) -> Iterator[tuple[int, Row]]:
    """Yield the same with the number of each line, from 1."""
    for number, line in _json_lines(path):
        yield number, _json_row(line, path, number)


def _json_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    with _readable(path), _opened(path) as handle:
        for number, line in enumerate(handle, start=1):
            if not line.isspace():
                yield number, line


def _json_row(line: bytes, path: Path, number: int) -> Row:
    try:
        row = orjson.loads(line)
    except ValueError as error:
        raise _bad_row(path, number, f"not JSON ({_fault(line, error)})", line) from error
    if not isinstance(row, dict):
        raise _bad_row(path, number, "a JSON object is wanted", line)
    if _LONG_INTEGER.search(line):  # orjson makes floats of integers beyond 64 bits; json keeps their digits
        return cast(Row, json.loads(line))
    return row


def _bad_row(path: Path, line: int, reason: str, raw: bytes) -> BadRowError:
    return BadRowError(f"{path}, line {line}: {reason}: {raw[:60].decode('utf-8', 'replace')!r}.", reason)


def _fault(line: bytes, error: ValueError) -> str:
    """Return what of a line is no JSON, in words where it is one of the usual faults."""
    if line.startswith(_BOM):
        return "it begins with a byte order mark"
    if b"\x00" in line:
        return "it holds a NUL byte"
    if "surrogate in string" in str(error):
        return f"half of a surrogate pair, {error}"
    number = _NO_NUMBER.search(line)
    return f"{number.group().decode()} is no JSON number" if number else str(error)


def read_csv(path: Path) -> Iterator[Row]:
    """Yield the rows of a .csv file with a header; an empty field is None."""
    for raw in _csv_rows(path):
        if raw.row is None:
            raise _bad_row(path, raw.line, raw.reason, raw.raw)
        yield raw.row


class _LinesRead(Iterator[str]):
    """Lines of a text, with those handed out since ``lines`` was last emptied."""

    def __init__(self, text: Iterator[str]) -> None:
        self.text = text
        self.lines: list[str] = []

    def __next__(self) -> str:
        self.lines.append(next(self.text))
        return self.lines[-1]


def _csv_rows(path: Path) -> Iterator[RawRow]:
    """Yield the rows of a .csv file; what is not UTF-8 passes the reader as lone surrogates and is a bad row.

    Raises:
        SourceError: of the header, or of a quote that never closes: what is behind it cannot be told apart.
    """
    csv.field_size_limit(1 << 30)
    with (
        _readable(path),
        _opened(path) as handle,
        io.TextIOWrapper(handle, encoding="utf-8-sig", errors="surrogateescape", newline="") as text,
    ):
        lines = _LinesRead(text)
        reader = csv.DictReader(lines, restkey="_surplus", strict=True)
        try:
            fields = len(reader.fieldnames or [])
        except csv.Error as error:
            raise SourceError(f"{path}, line {reader.reader.line_num}: not a readable CSV row ({error}).") from error
        if _NOT_UTF8.search("".join(lines.lines)):
            raise SourceError(f"{path}, line 1: not a readable CSV row (not UTF-8).")
        while (row := _csv_row(reader, lines, path, fields)) is not None:
            yield row


def _csv_row(reader: csv.DictReader[str], lines: _LinesRead, path: Path, fields: int) -> RawRow | None:
    """Return the next row; None at the end."""
    lines.lines.clear()
    row: dict[str, Any] = {}
    reason = ""
    try:
        row = next(reader)
    except StopIteration:
        return None
    except csv.Error as error:
        reason = f"not a readable CSV row ({error})"
        if "unexpected end" in str(error):
            raise SourceError(f"{path}, line {reader.reader.line_num}: {reason}.") from error
    text = "".join(lines.lines)
    if not text.isascii() and _NOT_UTF8.search(text):
        reason = "not a readable CSV row (not UTF-8)"
    elif "_surplus" in row:
        reason = f"more fields than the header's {fields}"
    whole = None if reason else {key: value if value != "" else None for key, value in row.items()}
    return RawRow(path, reader.reader.line_num, text.encode("utf-8", "surrogateescape"), whole, reason)


def read_parquet(path: Path, batch_rows: int = 10_000) -> Iterator[Row]:
    """Yield the rows of a parquet file, ``batch_rows`` of them in memory at once."""
    import pyarrow
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=batch_rows):
                yield from batch.to_pylist()
    except FileNotFoundError as error:
        raise SourceError(f"{path}: there is no such file.") from error
    except (pyarrow.ArrowInvalid, OSError) as error:
        raise SourceError(f"{path}: not a readable parquet file ({error}).") from error
