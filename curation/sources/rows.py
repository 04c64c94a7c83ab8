"""Raw rows of files as dictionaries, and values inside them by dotted path.

Invariants: rows come in the file's order, one at a time; a file that is missing, broken or of another kind is one
`SourceError` naming file, line and what was found. Not here: what the columns mean (`curation.sources.problems`).
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

import orjson

from curation.records import SourceError

Row = Mapping[str, Any]
_ABSENT = object()
_POSITION = re.compile(r"-?[0-9]+")
_LONG_INTEGER = re.compile(rb"\d{19}")


def read_rows(path: Path, batch_rows: int = 10_000) -> Iterator[Row]:
    """Return an iterator over the rows of one .jsonl, .jsonl.gz, .jsonl.zst, .parquet or .csv file."""
    kinds = {".jsonl": read_jsonl, ".json": read_jsonl, ".ndjson": read_jsonl, ".csv": read_csv}
    suffixes = [s for s in path.suffixes if s not in (".gz", ".zst")]
    kind = suffixes[-1] if suffixes else ""
    if kind == ".parquet":
        return read_parquet(path, batch_rows)
    if kind not in kinds:
        raise SourceError(f"{path}: not a .jsonl, .jsonl.gz, .jsonl.zst, .parquet or .csv file.")
    return kinds[kind](path)


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
    if isinstance(value, Mapping):
        labels, texts = value.get("label"), value.get("text")
        if isinstance(labels, list) and isinstance(texts, list) and len(labels) == len(texts):
            value = [f"{label}) {text}" for label, text in zip(labels, texts, strict=True)]
        else:
            value = [f"{label}) {text}" for label, text in value.items() if text is not None]
    if not isinstance(value, list) or not all(isinstance(option, str | int | float) for option in value):
        raise SourceError(f"{where} should be a list of options, but is {str(value)[:80]!r}.")
    return [str(option) for option in value] or None


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
    with _readable(path), _opened(path) as handle:
        for number, line in enumerate(handle, start=1):
            if not line.isspace():
                yield _json_row(line, path, number)


def _json_row(line: bytes, path: Path, number: int) -> Row:
    try:
        # orjson makes floats of integers beyond 64 bits; the standard library keeps their digits
        row = json.loads(line) if _LONG_INTEGER.search(line) else orjson.loads(line)
    except ValueError as error:
        excerpt = line[:60].decode("utf-8", "replace")
        raise SourceError(f"{path}, line {number}: not JSON ({error}): {excerpt!r}.") from error
    if not isinstance(row, dict):
        raise SourceError(f"{path}, line {number}: a JSON object is wanted, found {str(row)[:60]!r}.")
    return row


def read_csv(path: Path) -> Iterator[Row]:
    """Yield the rows of a .csv file with a header; an empty field is None."""
    csv.field_size_limit(1 << 30)
    with _readable(path), _opened(path) as handle, io.TextIOWrapper(handle, encoding="utf-8-sig", newline="") as text:
        reader = csv.DictReader(text, restkey="_surplus", strict=True)
        try:
            for row in reader:
                if "_surplus" in row:
                    raise SourceError(
                        f"{path}, line {reader.line_num}: more fields than the header's {len(reader.fieldnames or [])}."
                    )
                yield {key: value if value != "" else None for key, value in row.items()}
        except (csv.Error, UnicodeDecodeError) as error:
            raise SourceError(f"{path}, line {reader.line_num}: not a readable CSV row ({error}).") from error


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
