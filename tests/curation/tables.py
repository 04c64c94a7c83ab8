"""Frames of a schema, files of rows, and tables of inputs and what comes out of them, which are in `tables.jsonl`.

A row there has the name of its table, what is `given` (the arguments in order), and what is `expected`.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl


def frame(schema: pl.Schema, *rows: Mapping[str, Any], **every: Any) -> pl.DataFrame:
    """Return rows of a schema with the values that all of them have; what is not named is missing."""
    return pl.DataFrame([{**dict.fromkeys(schema), **every, **row} for row in rows], schema=schema)


def write_lines(path: Path, rows: Iterable[Any]) -> Path:
    """Write a file of JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@cache
def _tables() -> dict[str, list[tuple[list[Any], Any]]]:
    tables: dict[str, list[tuple[list[Any], Any]]] = {}
    for line in (Path(__file__).parent / "tables.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        tables.setdefault(row["table"], []).append((row["given"], row["expected"]))
    return tables


def check_table(name: str, function: Callable[..., Any]) -> None:
    """Each row's result is the expected one; tuples are lists in a table."""
    rows = [(given, expected, json.loads(json.dumps(function(*given)))) for given, expected in _tables()[name]]
    assert [(given, found, expected) for given, expected, found in rows if found != expected] == []


def check_refused(name: str, function: Callable[..., Any], error: type[Exception]) -> None:
    """Each row is refused with an error that has the expected words in it."""
    wrong = []
    for given, expected in _tables()[name]:
        try:
            wrong.append((given, function(*given)))
        except error as refused:
            if expected not in str(refused):
                wrong.append((given, str(refused)))
    assert wrong == []
