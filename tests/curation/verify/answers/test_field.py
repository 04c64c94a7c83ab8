r"""Pairs that were judged wrongly in the field, with the right verdict; a line is one example of a kind.

A row of ``field.jsonl`` has ``gold``, ``pred``, perhaps the ``statement``, and what is ``right``: correct, wrong, or
doubtful (wrong, and a person should look). ``response`` marks a whole response, ``loose`` a pair of texts of people.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from curation.records import Outcome
from curation.verify import answers
from curation.verify.extraction import extract_answer

ROWS = [json.loads(line) for line in (Path(__file__).with_name("field.jsonl")).read_text(encoding="utf-8").splitlines()]
MAX_CPU_S = 1
"""CPU seconds of one comparison."""


def judge(row: dict[str, Any]) -> answers.AnswerComparison:
    gold, pred, statement = row["gold"], row["pred"], row.get("statement")
    if row.get("loose"):
        return answers.compare_texts(gold, pred, statement=statement)
    if row.get("response"):
        extracted = extract_answer(pred)
        assert extracted is not None, "no answer was found"
        pred = extracted.answer
    return answers.compare(gold, pred, statement=statement)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['line']} {row['gold']} ~ {row['pred']}"[:80])
def test_the_verdict_is_right(row: dict[str, Any]) -> None:
    start = time.process_time()
    found = judge(row)
    assert found.outcome is (Outcome.CORRECT if row["right"] == "correct" else Outcome.WRONG), found
    assert found.doubtful or row["right"] != "doubtful", found
    assert time.process_time() - start < MAX_CPU_S
