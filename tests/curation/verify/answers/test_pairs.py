"""Pairs of every answer type with their verdicts, references that can be verified against, and rules of rounding."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from typing import Any

import pytest

from curation.records import Outcome
from curation.verify import answers
from curation.verify.answers.words import parse_boolean, parse_choice
from curation.verify.extraction import extract_answer
from tests.curation.verify.answers.corpus import own_references, table

MAX_FIELD_CPU_S = 1
"""CPU seconds of one comparison of the field's pairs."""

PAIRS, FIELD, REFERENCES = table("pairs"), table("field"), table("references")


def compare(row: dict[str, Any], gold: str, pred: str) -> answers.AnswerComparison:
    how = {"lang": row.get("lang", "en"), "statement": row.get("statement")}
    if row.get("read") == "texts":
        return answers.compare_texts(gold, pred, **how)
    if row.get("read") == "response":
        extracted = extract_answer(pred)
        assert extracted is not None, "no answer was found"
        pred = extracted.answer
    return answers.compare(gold, pred, **how)


def is_as_stated(row: dict[str, Any], found: answers.AnswerComparison) -> bool:
    outcome = Outcome.CORRECT if row["verdict"] == "correct" else Outcome.WRONG
    doubtful = {"doubtful": True}.get(row["verdict"], False if row.get("certain") else found.doubtful)
    return (found.outcome, found.doubtful) == (outcome, doubtful)


@pytest.mark.parametrize("kind", dict.fromkeys(row["kind"] for row in PAIRS))
def test_pairs_have_their_verdict(kind: str) -> None:
    wrong = []
    for row in PAIRS:
        if row["kind"] == kind:
            sides = [(row["gold"], row["pred"]), (row["pred"], row["gold"])]
            found = [compare(row, *pair) for pair in sides[: 1 + bool(row.get("reversed"))]]
            wrong += [(row, one) for one in found if not is_as_stated(row, one)]
    assert not wrong


@pytest.mark.parametrize("row", FIELD, ids=lambda row: f"{row['kind']} {row['gold']} ~ {row['pred']}"[:80])
def test_what_was_judged_wrongly_in_the_field_is_judged_rightly_and_quickly(row: dict[str, Any]) -> None:
    start = time.process_time()
    found = compare(row, row["gold"], row["pred"])
    assert is_as_stated(row, found), found
    assert time.process_time() - start < MAX_FIELD_CPU_S


def test_a_reference_in_dollars_is_itself() -> None:
    for reference in own_references()[::6]:
        assert answers.compare(reference, f" $ {reference} $ ").outcome is Outcome.CORRECT, reference


@pytest.mark.parametrize(
    "tail", [r" \text{ for } q > 7", r" \text{, unless } 7 \text{ blargs}", r" \text{ zumbles } q^2"]
)
def test_nothing_foreign_after_an_answer_is_dropped(tail: str) -> None:
    for reference in own_references()[::2]:
        if parse_choice(reference) or parse_boolean(reference):
            continue  # a letter may precede any text, yes and no a remark
        answer = f"{reference.strip().strip('$')}{tail}"
        assert answers.compare(reference, answer).outcome is Outcome.WRONG, reference


def test_a_reference_is_usable_or_refused_with_a_reason() -> None:
    rows = [*REFERENCES, *({"reference": row["gold"], "usable": True} for row in PAIRS if row["kind"] == "equal")]
    rows.append({"reference": "{" * 5000, "usable": False})
    found = [(row["reference"], answers.check_reference(row["reference"])) for row in rows]
    assert [reference for reference, defect in found if defect is None] == [
        row["reference"] for row in rows if row["usable"]
    ]
    assert all(defect is None or defect for _, defect in found)


def test_quick_decides_numbers_and_leaves_the_rest() -> None:
    right, wrong = answers.quick_compare("18", "$18.00"), answers.quick_compare("1/2", "1/3")
    assert right is not None
    assert wrong is not None
    assert (right.outcome, wrong.outcome) == (Outcome.CORRECT, Outcome.WRONG)
    assert answers.quick_compare("x+1", "1+x") is None
    assert answers.quick_compare("1" * 1_000_000, "1" * 1_000_000) is None


def test_threads_do_not_disturb_one_another() -> None:
    proved = [row for row in PAIRS if row["kind"] == "proved"][:12]
    wrong: list[dict[str, Any]] = []

    def judge() -> None:
        wrong.extend(row for row in proved if not is_as_stated(row, compare(row, row["gold"], row["pred"])))

    threads = [threading.Thread(target=judge) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.slow
def test_sympy_is_imported_when_something_is_to_be_computed_and_not_before() -> None:
    program = (
        "import sys; from curation.verify import answers, math_judge; answers.compare('x^2-1', '(x-1)(x+1)');"
        "assert 'sympy' not in sys.modules; answers.compare(r'\\int_0^1 x dx', '1/2'); assert 'sympy' in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
