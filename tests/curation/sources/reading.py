"""Sources of files in a test's folder."""

from pathlib import Path
from typing import Any

import polars as pl

from curation.config import Source, to_plain
from curation.sources.reading import read_source


def source(path: str = "x.jsonl", kind: str = "jsonl", **settings: Any) -> Source:
    return Source.model_validate(to_plain({"name": "s", "kind": kind, "path": path, **settings}))


def read(wanted: Source, folder: Path, batch_rows: int = 7) -> pl.DataFrame:
    return pl.concat(read_source(wanted, folder, batch_rows))
