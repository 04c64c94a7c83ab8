"""Markdown pages of cards and receipts, and intervals of shares.

Invariant: escaped text renders letter by letter.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from curation.publish import words

_Z95 = 1.959963984540054


def yaml_header(entries: Mapping[str, Any]) -> str:
    """Return a card's header without its rules; entries without value are left out."""
    import yaml

    filled = {name: value for name, value in entries.items() if value}
    return str(yaml.safe_dump(filled, sort_keys=False, allow_unicode=True, width=1000))


def render_template(path: Path, **values: object) -> str:
    """Render a Jinja template of Markdown; foreign texts need the filter `cell`, `code` or `md`."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    environment.filters |= {
        "capital": words.capital,
        "cell": cell,
        "code": code_span,
        "line": lambda text: " ".join(text.replace("|", "\\|").split()),
        "count": words.count_phrase,
        "md": escape_markdown,
        "number": "{:,}".format,
        "rate": lambda rate: "–" if rate is None else f"{rate:.2f}",
        "reasons": words.by_reason,
        "share": words.share,
    }
    return environment.from_string(path.read_text(encoding="utf-8")).render(values)


def data_files() -> list[dict[str, Any]]:
    """Return the header's `configs`, so that `datasets` reads only data/."""
    return [{"config_name": "default", "data_files": [{"split": "train", "path": "data/train-*.parquet"}]}]


def cell(text: object) -> str:
    """Return text for a Markdown table cell."""
    return " ".join(escape_markdown(str(text)).split())


def escape_markdown(text: str) -> str:
    """Return text that Markdown renders letter by letter."""
    escaped = re.sub(r"([\\`*_\[\]<>$|~&#])", r"\\\1", text)
    lines = [line.strip() for line in escaped.splitlines()]
    return "\n".join(re.sub(r"^([0-9]+)(?=[.)])|^(?=[-+=])", r"\1\\", line) for line in lines)


def code_span(text: str) -> str:
    """Return text as inline code on one line, backticks included."""
    inner = " ".join(text.split())
    ticks = "`" * (1 + longest_run(inner))
    pad = " " if inner.startswith("`") or inner.endswith("`") else ""
    return f"{ticks}{pad}{inner}{pad}{ticks}" if inner else "(empty)"


def longest_run(text: str) -> int:
    """Return the length of the longest run of backticks."""
    return max(map(len, re.findall("`+", text)), default=0)


def wilson(hits: int, n: int) -> tuple[float, float]:
    """Return a share's 95 % interval (Wilson 1927)."""
    share, z2 = hits / n, _Z95 * _Z95
    centre = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = _Z95 / (1 + z2 / n) * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)
