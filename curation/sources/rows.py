"""Raw rows of tables as dictionaries, what of them cannot be read, and values inside them by dotted path.

Not here: how files are read (`curation.sources.files`), what the columns mean (`curation.sources.problems`), and what
becomes of rows that cannot be read (`curation.sources.quarantine`).
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from curation.public_urls import public_text
from curation.records import SourceError

Row = Mapping[str, Any]
_ABSENT = object()
_POSITION = re.compile(r"-?[0-9]+")
_SURROGATE = re.compile("[\ud800-\udfff]")


class BadRowError(SourceError):
    """One row that cannot be read, or holds a value of another type than is wanted, while those beside it are sound.

    Args:
        message: where it is, and what is wrong with it.
        reason: what is wrong alone.
    """

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.reason = public_text(reason or message)


def too_many(source: str, most: int, raw: RawRow, reason: str) -> SourceError:
    """Return the error of a source of which more rows cannot be read than it may have; ``raw`` is the last one."""
    return SourceError(
        f"source {source}: more than {most:,} rows cannot be read (the last one: {raw.place}: {reason}); mend the "
        "source, or raise its `bad_rows`."
    )


@dataclass(frozen=True, slots=True)
class RawRow:
    """A row beside the bytes that it was.

    Example: ``RawRow(Path("x.jsonl"), 2, b'{"q": NaN}', None, "not JSON (NaN)")``
    """

    path: Path | str
    """A text where it is a URL."""
    line: int
    """From 1; in a file without lines, the row's number; 0 of what is no row but the file."""
    raw: bytes | None
    """None where it was no line of text."""
    row: Row | None
    """None where it cannot be read."""
    reason: str = ""
    """Why it cannot be read."""

    @property
    def place(self) -> str:
        """Return the file and the line, as a sentence names them."""
        return f"{self.path}, line {self.line}" if self.line else str(self.path)

    @property
    def content(self) -> bytes:
        """Return its bytes; those of its JSON where it was no line of text."""
        return json.dumps(self.row, ensure_ascii=True, default=str).encode() if self.raw is None else self.raw

    def read(self) -> Row:
        """Return the row.

        Raises:
            BadRowError: it cannot be read.
        """
        if self.row is None:
            shown = (self.raw or b"")[:60].decode("utf-8", "replace")
            said = f"{self.place}: {self.reason}"
            raise BadRowError(f"{said}: {shown!r}." if shown else f"{said}.", self.reason)
        return self.row


def numbered_rows(path: Path, rows: Iterable[Row], start: int = 1) -> Iterator[RawRow]:
    """Yield rows that came from no lines of text, numbered from ``start``."""
    for number, row in enumerate(rows, start):
        yield RawRow(path, number, None, row)


def arrow_rows(path: Path, table: Any, start: int = 1) -> Iterator[RawRow]:
    """Yield the rows of an Arrow table or batch; one whose texts are not UTF-8, as files may hold, as a bad one."""
    try:
        yield from numbered_rows(path, table.to_pylist(), start)
    except UnicodeDecodeError:
        for at in range(table.num_rows):
            yield _arrow_row(path, start + at, table.take([at]))


def _arrow_row(path: Path, number: int, table: Any) -> RawRow:
    try:
        (raw,) = numbered_rows(path, table.to_pylist(), number)
    except UnicodeDecodeError as error:
        return RawRow(path, number, b"".join(map(_column_bytes, table.columns)), None, f"not UTF-8 ({error})")
    return raw


def _column_bytes(column: Any) -> bytes:
    """Return the bytes that a column of one row holds, of whatever type."""
    chunks = getattr(column, "chunks", [column])
    return b"".join(bytes(buffer) for chunk in chunks for buffer in chunk.buffers()[-1:] if buffer is not None)


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
    options = [str(option) for option in value]
    if any(_SURROGATE.search(option) for option in options):
        raise BadRowError(f"{where} holds half of a surrogate pair: {str(options)[:80]!r}.")
    return options or None


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
