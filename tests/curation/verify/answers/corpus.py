"""The tables of this folder.

A row of ``pairs.jsonl`` or ``field.jsonl`` has ``gold``, ``pred``, perhaps the ``statement`` and ``lang``, and the
``verdict``: correct, wrong, or doubtful (wrong, and a person should look). ``certain`` marks a verdict that must not be
doubtful, ``reversed`` a pair that is the same the other way round. ``read`` is "texts" where either side may be a
sentence, "response" where ``pred`` is a whole response. ``field.jsonl`` has what was judged wrongly in the field.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from curation.verify import answers


def table(name: str) -> list[dict[str, Any]]:
    """Return the rows of a table of this folder."""
    path = Path(__file__).with_name(f"{name}.jsonl")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def own_references() -> list[str]:
    """Return the references of the equal pairs."""
    sides = [row[side] for row in table("pairs") if row["kind"] == "equal" for side in ("gold", "pred")]
    return [side for side in dict.fromkeys(sides) if answers.check_reference(side) is None]
