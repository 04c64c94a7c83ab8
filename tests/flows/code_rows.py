"""Sound rows of the code demo, for recipes that are smaller than it."""

from __future__ import annotations

import json
from typing import Any

from tests.places import ROOT

READ = "n = int(input())\na = list(map(int, input().split()))\n"
"""How its programs begin."""


def sound_row(number: int, *, tests: int = 7, right: int = 3, wrong: int = 2) -> dict[str, Any]:
    """Return one of its first rows with its last tests and its first Python programs."""
    with (ROOT / "flows" / "demo" / "code" / "problems.jsonl").open(encoding="utf-8") as lines:
        row: dict[str, Any] = json.loads(list(lines)[number])
    programs = [program for program in row["programs"] if program["language"] == "py"]
    kinds = [[one for one in programs if (one["verdict"] == "OK") == is_right] for is_right in (True, False)]
    return {**row, "tests": row["tests"][-tests:], "programs": [*kinds[0][:right], *kinds[1][:wrong]]}
