"""Pages in Markdown: a YAML header, a title, and blocks of text, tables and sections. Cards and receipts are pages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Table:
    """A table of cells that are Markdown already; ``align`` has a letter a column, ``l`` or ``r``.

    Example: ``Table(("Source", "Rows"), [("gsm8k", "7,473")], "lr")``
    """

    titles: Sequence[str]
    rows: Sequence[Sequence[str]]
    align: str = ""

    def __str__(self) -> str:
        """Return the table's lines; nothing without rows."""
        if not self.rows:
            return ""
        align = self.align.ljust(len(self.titles), "l")
        rule = "|".join("---:" if letter == "r" else "---" for letter in align)
        lines = [f"| {' | '.join(self.titles)} |", f"|{rule}|", *(f"| {' | '.join(row)} |" for row in self.rows)]
        return "\n".join(lines)


Block = str | Table | None


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and its blocks; a section without any is not written."""

    title: str
    blocks: Sequence[Block]
    level: int = 2

    def __str__(self) -> str:
        """Return the section in Markdown."""
        text = "\n\n".join(_texts(self.blocks))
        return f"{'#' * self.level} {self.title}\n\n{text}" if text else ""


def page(title: str, blocks: Iterable[Block | Section], header: Mapping[str, Any] | None = None) -> str:
    """Return a page; entries of the header without a value are left out."""
    import yaml

    told = {name: value for name, value in (header or {}).items() if value}
    top = yaml.safe_dump(told, sort_keys=False, allow_unicode=True, width=1000) if told else ""
    return "\n\n".join([*([f"---\n{top}---"] if top else []), f"# {title}", *_texts(blocks)]) + "\n"


def data_files() -> list[dict[str, Any]]:
    """Return the `configs` of a header by which `datasets` reads the rows in data/ and no other."""
    return [{"config_name": "default", "data_files": [{"split": "train", "path": "data/train-*.parquet"}]}]


def _texts(blocks: Iterable[Block | Section]) -> Iterator[str]:
    for block in blocks:
        if block is not None and (text := str(block)):
            yield text
