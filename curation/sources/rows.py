"""Rows as mappings, reasons for unreadable ones, and values by path."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from curation.public_urls import public_text
from curation.records import SourceError

Row = Mapping[str, Any]
_MISSING = object()
_POSITION = re.compile(r"-?[0-9]+")
_SURROGATE = re.compile("[\ud800-\udfff]")


class BadRowError(SourceError):
    """An unreadable row, or a value of a wrong type."""

    def __init__(self, message: str) -> None:
        super().__init__(public_text(message))


class MissingSourceError(SourceError):
    """A source that is gone, forbidden or unreachable."""


@dataclass(frozen=True, slots=True)
class TableState:
    """A table's content when read, with its joined table's."""

    digest: str
    commit: str | None = None
    joined_commit: str | None = None


@dataclass(slots=True)
class RawRow:
    """A row and its original bytes."""

    path: Path | str
    """A text for URLs and data sets."""
    line: int
    """From 1; in files without lines, the row's number."""
    raw: bytes | None
    """None if the source has no lines."""
    row: Row | None
    """None if it cannot be read."""
    reason: str = ""
    """Why the row is bad; empty if it is sound."""
    size: int = 0
    """Bytes of a package's tests, read later."""
    position: int = 0
    """In the source, from 0."""

    @property
    def sentence(self) -> str:
        """Return the row's location, fault, and beginning if unreadable."""
        shown = (self.raw or b"")[:60].decode("utf-8", "replace") if self.row is None else ""
        return f"{self.path}, line {self.line}: {self.reason.rstrip('.')}{f': {shown!r}' if shown else ''}"

    @property
    def content(self) -> bytes:
        """Return the row's bytes, or else its JSON."""
        return json.dumps(self.row, ensure_ascii=True, default=str).encode() if self.raw is None else self.raw

    def read(self) -> Row:
        """Return the row.

        Raises:
            BadRowError: it cannot be read.
        """
        if self.row is None:
            raise BadRowError(f"{self.sentence}.")
        return self.row


def value_at(row: Any, path: str) -> Any:
    """Return the value at a dotted path, or None; numbers index lists."""
    return None if (value := _walk(row, path)) is _MISSING else value


def require_path(rows: Sequence[Row], path: str, where: str) -> None:
    """Raise `SourceError` unless some row has the path."""
    if rows and all(_walk(row, path) is _MISSING for row in rows):
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
            return _MISSING
    return row


def _paths(rows: Sequence[Row]) -> list[str]:
    paths: dict[str, None] = {}
    for key, value in (item for row in rows[:100] for item in row.items()):
        first, prefix = (value[0], f"{key}.0") if isinstance(value, list) and value else (value, key)
        inner = first if isinstance(first, Mapping) else ()
        paths.update(dict.fromkeys((key, *(f"{prefix}.{name}" for name in inner))))
    return list(paths)


def parse_options(value: Any, path: str) -> list[str] | None:
    """Return options of a list, ``{"A": "1", …}``, ``{"label": […], "text": […]}``, these as text, or lettered text."""
    if isinstance(value, str) and value.lstrip().startswith(("[", "{")):
        with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
            value = ast.literal_eval(value.strip())
    if value is None or value == []:
        return None
    if isinstance(value, list) and all(isinstance(option, str) and _SPACED_LABEL.match(option) for option in value):
        value = _lettered(" , ".join(value)) or value
    if isinstance(value, str):
        value = _lettered(value.strip()) or value
    if isinstance(value, Mapping):
        labels: Any = value.get("label")
        texts: Any = value.get("text")
        is_listed = isinstance(labels, list) and isinstance(texts, list) and len(labels) == len(texts)
        pairs = zip(labels, texts, strict=True) if is_listed else value.items()
        value = [f"{label}) {text}" for label, text in pairs if is_listed or text is not None]
    if not isinstance(value, list) or not all(isinstance(option, str | int | float) for option in value):
        raise BadRowError(f"`{path}` should be a list of options, but is {str(value)[:80]!r}.")
    options = [str(option) for option in value]
    if any(_SURROGATE.search(option) for option in options):
        raise BadRowError(f"`{path}` holds half of a surrogate pair: {str(options)[:80]!r}.")
    return options or None


_SPACED_LABEL = re.compile(r"[a-hA-H]\s+\)")
"""A letter and its bracket with a space between, as in MathQA."""


def _lettered(text: str) -> list[str] | None:
    """Return the options of a text like "a ) 1 , 000 , b ) 38" or "(A) 1 (B) 38", or None."""
    from curation.options import split_options

    text = text[1:-1] if text.startswith("[") and text.endswith("]") else text
    split = split_options(re.sub(r"(?<!\d)(\d{1,3}) , (?=\d{3}(?!\d))", r"\1,", text.replace("( ", "(")))
    return None if split is None or split.question else [option.rstrip(" ,;") for option in split.options]
