"""The tables of this folder, and the references that mutations and rewritings start from: our own, and real ones.

A row of ``pairs.jsonl`` or ``field.jsonl`` has ``gold``, ``pred``, perhaps the ``statement`` and ``lang``, and the
``verdict``: correct, wrong, or doubtful (wrong, and a person should look). ``certain`` marks a verdict that must not be
doubtful, ``reversed`` a pair that is the same the other way round. ``read`` is "texts" where either side may be a
sentence, "response" where ``pred`` is a whole response. ``field.jsonl`` has what was judged wrongly in the field.
"""

from __future__ import annotations

import json
import random
from functools import lru_cache
from pathlib import Path
from typing import Any

from curation.verify import answers
from tests.curation.verify.answers.mutations import is_short_answer
from tests.places import SHARED_DATA

Reference = tuple[str, str]
"""A reference and its language."""

MANY_PLAIN_NUMBERS = 200
"""Plain numbers among the real references: they are most of them, and all alike."""


def table(name: str) -> list[dict[str, Any]]:
    """Return the rows of a table of this folder."""
    return _rows(Path(__file__).with_name(f"{name}.jsonl"))


def own_references() -> list[Reference]:
    """Return the references of our own tests."""
    sides = [row[side] for row in table("pairs") if row["kind"] == "equal" for side in ("gold", "pred")]
    return [(side, "en") for side in dict.fromkeys(sides) if answers.check_reference(side) is None]


@lru_cache(maxsize=1)
def real_references() -> tuple[Reference, ...]:
    """Return the distinct usable references of the shared data sets, and `MANY_PLAIN_NUMBERS` of the plain numbers."""
    found: dict[str, str] = {}
    for path in sorted((SHARED_DATA / "math").glob("*.jsonl")):
        for row in _rows(path):
            if row["answer"] and row["kind"] != "mcq":
                found.setdefault(row["answer"], row["lang"])
    for row in _rows(SHARED_DATA / "answers" / "equivalence.jsonl"):
        found.setdefault(row["gold"], "en")
    references = [(text, lang) for text, lang in found.items() if is_short_answer(text)]
    plain = [reference for reference in references if answers.is_plain(reference[0])]
    drawn = set(random.Random(0).sample(plain, min(MANY_PLAIN_NUMBERS, len(plain))))
    return tuple(
        (text, lang)
        for text, lang in references
        if ((text, lang) in drawn or not answers.is_plain(text)) and answers.check_reference(text, lang=lang) is None
    )


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
