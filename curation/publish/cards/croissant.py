"""Croissant metadata of a curated set: which files it has, what their columns mean (mlcommons.org/croissant/1.0).

Data catalogues and `mlcroissant` read it, and load the set by it from the folder as it lies or from the hub.

Invariants: every parquet file stands there with its size and SHA-256, and every column of the set's tables with its
type and its words; columns that hold records of their own are left to parquet. The same set gives the same bytes.
Not here: what the card says in sentences.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from curation.publish.cards.facts import CardFacts, values_of
from curation.publish.cards.words import COLUMN_WORDS
from curation.storage.stages import atomic_write

FILE = "croissant.json"

TABLES = {
    "data": ("problems", "The curated problems, with their measured difficulty."),
    "dropped": (
        "dropped_rows",
        "Every row of the sources that is not in the set, with its stage, reason and evidence.",
    ),
    "disputed": ("disputed_labels", "Labels that a person should look at, with the evidence."),
    "tests": ("tests", "Inputs and outputs by which programs are judged."),
    "judging": ("judging", "How the programs of each problem are judged: limits, comparison, checker."),
}
"""Folders of a published set, by what their rows are."""

KEYS = {"problems": ("id",), "tests": ("problem", "index"), "judging": ("problem",)}

_TYPES: dict[Any, str] = {
    pl.String: "sc:Text",
    pl.Boolean: "sc:Boolean",
    **dict.fromkeys((pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt32, pl.UInt64), "sc:Integer"),
    **dict.fromkeys((pl.Float32, pl.Float64), "sc:Float"),
    pl.Date: "sc:Date",
}

_PARQUET = "application/x-parquet"

_PLAIN = {"dataType": "@vocab", "data": "@json", "examples": "@json"}
_TERMS = (
    *("citeAs", "column", "containedIn", "equivalentProperty", "extract", "field", "fileObject", "fileProperty"),
    *("fileSet", "format", "includes", "isLiveDataset", "jsonPath", "key", "md5", "parentField", "path", "recordSet"),
    *("references", "regex", "repeated", "replace", "samplingRate", "separator", "source", "subField", "transform"),
)


def write_croissant(facts: CardFacts, made_on: str, folder: Path) -> Path:
    """Write croissant.json for the tables that lie in the folder of the curated set; return its path.

    Args:
        made_on: the day of the set's version, YYYY-MM-DD.
    """
    path = folder / FILE
    atomic_write(path, _as_text(describe(facts, made_on, folder)))
    return path


def list_files_again(folder: Path) -> None:
    """Write the files and columns of a set anew into its croissant.json, where files came to the set; none is made."""
    path = folder / FILE
    if path.is_file():
        about = {**json.loads(path.read_text(encoding="utf-8")), **_contents(folder)}
        atomic_write(path, _as_text(about))


def describe(facts: CardFacts, made_on: str, folder: Path) -> dict[str, Any]:
    """Return the set's JSON-LD."""
    about = {
        "@context": _context(),
        "@type": "sc:Dataset",
        "name": facts.name,
        "alternateName": facts.pretty_name,
        "description": facts.description or facts.pretty_name,
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "license": facts.license,
        "version": f"{facts.set_version or 1}.0.0",
        "datePublished": made_on,
        "inLanguage": values_of(facts.curated, "lang"),
        "keywords": ["reasoning", "reinforcement learning", "verifiable rewards", "goldilocks"],
        "isBasedOn": sorted({source.url for source in facts.sources if source.url}),
        **_contents(folder),
    }
    return {key: value for key, value in about.items() if value not in (None, [])}


def _as_text(about: dict[str, Any]) -> str:
    return json.dumps(about, indent=1, ensure_ascii=False) + "\n"


def _context() -> dict[str, Any]:
    return {
        "@language": "en",
        "@vocab": "https://schema.org/",
        "sc": "https://schema.org/",
        "cr": "http://mlcommons.org/croissant/",
        "rai": "http://mlcommons.org/croissant/RAI/",
        "dct": "http://purl.org/dc/terms/",
        "conformsTo": "dct:conformsTo",
        **{term: f"cr:{term}" for term in _TERMS},
        **{term: {"@id": f"cr:{term}", "@type": kind} for term, kind in _PLAIN.items()},
    }


def _contents(folder: Path) -> dict[str, Any]:
    return {
        "distribution": list(_distribution(folder)),
        "recordSet": [_record_set(folder, table) for table in TABLES if _files(folder, table)],
    }


def _files(folder: Path, table: str) -> list[Path]:
    return sorted((folder / table).glob("*.parquet"))


def _distribution(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield every parquet file, then the tables that they make."""
    for table in TABLES:
        for path in _files(folder, table):
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            yield {
                "@type": "cr:FileObject",
                "@id": f"{table}/{path.name}",
                "name": path.name,
                "contentUrl": f"{table}/{path.name}",
                "contentSize": f"{path.stat().st_size} B",
                "encodingFormat": _PARQUET,
                "sha256": digest,
            }
    for table in TABLES:
        if _files(folder, table):
            yield {
                "@type": "cr:FileSet",
                "@id": f"{table}_files",
                "name": f"{table}_files",
                "encodingFormat": _PARQUET,
                "includes": f"{table}/*.parquet",
            }


def _record_set(folder: Path, table: str) -> dict[str, Any]:
    """Return what the rows of a table are, column by column."""
    name, words = TABLES[table]
    schema = pl.read_parquet_schema(_files(folder, table)[0])
    fields = [_field(table, name, column, dtype) for column, dtype in schema.items()]
    key = [{"@id": f"{name}/{column}"} for column in KEYS.get(name, ())]
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "description": words,
        **({"key": key} if key else {}),
        "field": [field for field in fields if field is not None],
    }


def _field(table: str, name: str, column: str, dtype: pl.DataType) -> dict[str, Any] | None:
    """Return a column's field; None where its values are records of their own."""
    is_list = isinstance(dtype, pl.List)
    kind = _TYPES.get(dtype.inner.base_type() if isinstance(dtype, pl.List) else dtype.base_type())
    if kind is None:
        return None
    return {
        "@type": "cr:Field",
        "@id": f"{name}/{column}",
        "name": column,
        "description": COLUMN_WORDS.get(column, column.replace("_", " ")),
        "dataType": kind,
        **({"repeated": True} if is_list else {}),
        "source": {"fileSet": {"@id": f"{table}_files"}, "extract": {"column": column}},
    }
