"""Tables of inputs and what comes out of them: `tables.jsonl` has the rows of several modules.

A row has the name of its table, what is `given` (the arguments in order), and what is `expected`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any


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
