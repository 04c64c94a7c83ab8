"""Rows of CSV files with a header; an empty field is None.

A row that cannot be read may be a quote that never closes, and what its reader took for it then runs into other rows.
So of such a row only the first line is set aside, and the lines behind it are read anew. A row among these with an odd
number of quotes is the other end of a quoted text and set aside as well. A line inside such a text that looks like a
row is taken for one, since nothing tells them apart.

Invariant: every line belongs to one `RawRow`, but for blank ones; of a damaged file the rest is one.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from curation.sources.rows import RawRow
from curation.sources.streams import LONGEST, opened

_NOT_UTF8 = re.compile("[\udc80-\udcff]")
"""Bytes that are not UTF-8, as ``surrogateescape`` reads them."""


def csv_rows(path: Path, damage: str = "") -> Iterator[RawRow]:
    """Yield every row of a file, those that cannot be read too; a file whose header cannot be read is one."""
    csv.field_size_limit(LONGEST)
    with (
        opened(path, damage) as (stream, binary),
        io.TextIOWrapper(binary, encoding="utf-8-sig", errors="surrogateescape", newline="") as text,
    ):
        records = _Records(text)
        header = records.record()
        if header is None or header.reason:
            if stream.damage or header is not None:
                reason = stream.cut if stream.damage else f"{header.reason if header else ''}, which is the header"
                yield RawRow(path, 1, header.raw if header else b"", None, reason)
            return
        while (record := records.record()) is not None:
            if stream.damage and not record.raw.endswith((b"\n", b"\r")):
                yield RawRow(path, record.line, record.raw, None, stream.cut)
                return
            yield _row(path, record, header.fields)
        if stream.damage:
            yield RawRow(path, records.line + 1, b"", None, stream.cut)


def _row(path: Path, record: _Record, header: list[str]) -> RawRow:
    reason, fields = record.reason, record.fields
    if not reason and len(fields) != len(header):
        reason = f"{'more' if len(fields) > len(header) else 'fewer'} fields than the header's {len(header)}"
    row = None if reason else {name: field or None for name, field in zip(header, fields, strict=True)}
    return RawRow(path, record.line, record.raw, row, reason)


@dataclass(slots=True)
class _Record:
    """The fields of a row, its bytes, the number of its last line, and why it cannot be read."""

    fields: list[str]
    raw: bytes
    line: int
    reason: str


class _Records(Iterator[str]):
    """Records of a text, and the lines that their reader takes."""

    def __init__(self, text: io.TextIOWrapper) -> None:
        self.text = text
        self.line = 0
        """Number of the last line that was handed to the reader."""
        self._taken: list[str] = []
        self._again: list[str] = []
        """Lines that are read anew, the next one last."""
        self._swallowed = 0
        """Number of the last line that a bad row ran into."""
        self._reader = csv.reader(self, strict=True)

    def __next__(self) -> str:
        if self._again:
            line = self._again.pop()
        elif len(line := self.text.readline(LONGEST)) == LONGEST and not line.endswith("\n"):
            while (more := self.text.readline(1 << 20)) and not more.endswith("\n"):
                pass
        if not line:
            raise StopIteration
        self.line += 1
        self._taken.append(line)
        return line

    def record(self) -> _Record | None:
        """Return the next record; None at the end."""
        while True:
            self._taken.clear()
            fields: list[str] = []
            reason = ""
            try:
                fields = next(self._reader)
            except StopIteration:
                return None
            except csv.Error as error:
                reason = self._cut(error)
            text = "".join(self._taken)
            if not fields and not reason:
                continue
            if not text.isascii() and _NOT_UTF8.search(text):
                reason = "not a readable CSV row (not UTF-8)"
            elif len(text) >= LONGEST:
                reason = f"more than {LONGEST:,} characters"
            elif not reason and self.line <= self._swallowed and text.count('"') % 2:
                reason = "a part of a quoted text whose row cannot be read"
            return _Record(fields, text.encode("utf-8", "surrogateescape"), self.line, reason)

    def _cut(self, error: csv.Error) -> str:
        """Keep the first line alone of a row that cannot be read, and have the others read anew; return the reason."""
        said = "a quote that never closes" if "unexpected end" in str(error) else str(error)
        reason = f"not a readable CSV row ({said})"
        if len(self._taken) == 1:
            return reason
        self._swallowed = max(self._swallowed, self.line)
        self.line -= len(self._taken) - 1
        self._again.extend(reversed(self._taken[1:]))
        del self._taken[1:]
        return reason
