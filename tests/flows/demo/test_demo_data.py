"""The demo's data: answers to today's prompts, every kind planted, references right, and the report that compares."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import sympy

import flows.demo
from curation.records import DropReason
from flows.demo.report import compare, label_score
from tests.demo_data import recorded
from tests.demo_data.recorded import demo_rows as rows
from tests.flows.conftest import goldilocks

DEMO = Path(flows.demo.__file__).parent


def lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DEMO / name).read_text("utf-8").split("\n") if line]


PLANTED = lines("planted.jsonl")


def place(row: dict[str, Any]) -> tuple[str, int]:
    return row["source"], row["row"]


def test_recorded_answers_are_those_to_the_prompts_of_today(tmp_path: Path) -> None:
    for path in recorded.write(tmp_path):
        assert path.read_bytes() == (DEMO / path.name).read_bytes(), (
            f"run python -m tests.demo_data.recorded: {path.name}"
        )


def test_every_kind_of_defect_is_planted_at_least_eight_times() -> None:
    for name in ("expected", "kind"):
        counts = Counter(line[name] for line in PLANTED)
        assert min(counts.values()) >= 8, counts
    assert {line["expected"] for line in PLANTED} - {"keep", "rewritten"} < set(DropReason)


def value_of(text: str) -> sympy.Expr:
    """The exact value of arithmetic as the `worked` field writes it, or of a plain reference."""
    plain = re.sub(r"\\frac\{(\d+)\}\{(\d+)\}", r"\1/\2", re.sub(r"\\sqrt\{(\d+)\}", r"*sqrt(\1)", text))
    names = {"gcd": sympy.igcd, "lcm": sympy.ilcm}
    return sympy.sympify(plain.replace("^", "**").replace(" mod ", " % "), names, rational=True)


def test_references_equal_their_worked_computation() -> None:
    """Of each row but those with a planted defect in the reference, or with options."""
    sound = {"keep", "rewritten", "duplicate", "never_solved", "too_easy", "too_few_attempts"}
    spoilt = {place(p) for p in PLANTED if p["expected"] not in sound or p["kind"] == "multiple_choice"}
    checked = [row for row in rows() if place(row) not in spoilt]
    assert len(checked) > 250
    for row in checked:
        setup, _, result = row["worked"].rpartition(" = ")
        assert value_of(setup) == value_of(row["reference"]) == value_of(result), row


# --- the report ------------------------------------------------------------------------------------------------------


def ideal() -> pl.DataFrame:
    """The decisions of a pipeline that does exactly what is expected."""
    expected = {place(p): p["expected"] for p in PLANTED}
    kept = dict.fromkeys(("keep", "rewritten"))
    decisions = [(row, expected.get(place(row), "keep")) for row in rows()]
    table = [
        {"source": row["source"], "row": row["row"], "statement": row["question"], "stage": "any"}
        | {"reason": kept.get(one, one), "rewritten": one == "rewritten"}
        for row, one in decisions
    ]
    return pl.DataFrame(table, infer_schema_length=None)


def states(outcomes: pl.DataFrame, **where: str) -> Counter[str | None]:
    rows = compare(DEMO / "planted.jsonl", outcomes)
    return Counter(rows.filter(**where)["state"] if where else rows["state"])


def test_a_perfect_run_has_nothing_missed() -> None:
    assert states(ideal()) == {"caught": len(PLANTED), None: ideal().height - len(PLANTED)}
    wrong, suspected, right = label_score(compare(DEMO / "planted.jsonl", ideal()))
    assert wrong == suspected == right > 0


def is_row(row: dict[str, Any]) -> pl.Expr:
    return (pl.col("source") == row["source"]) & (pl.col("row") == row["row"])


def test_misses_other_reasons_and_false_alarms_are_counted_apart() -> None:
    proof, other = [p for p in PLANTED if p["kind"] == "proof"][:2]
    marked = set(map(place, PLANTED))
    good, easy = [row for row in rows() if place(row) not in marked][:2]
    frame = ideal()
    for row, reason in ((proof, None), (other, "yes_no"), (good, "proof"), (easy, "suspected_wrong_label")):
        turned = pl.when(is_row(row)).then(pl.lit(reason, pl.String)).otherwise("reason")
        frame = frame.with_columns(turned.alias("reason"))
    proofs = sum(one["kind"] == "proof" for one in PLANTED)
    assert states(frame, kind="proof") == {"caught": proofs - 2, "other reason": 1, "missed": 1}
    found = compare(DEMO / "planted.jsonl", frame)
    assert found.filter(state="false alarm")["row"].to_list() == [good["row"]]
    wrong, suspected, right = label_score(found)
    assert (suspected, right) == (wrong + 1, wrong)
    assert states(frame.filter(~is_row(proof)), kind="proof")["missed"] == 1


def test_a_defect_that_only_difficulty_dropped_counts_as_missed() -> None:
    late = pl.when(pl.col("reason") == "proof").then(pl.lit("too_few_attempts")).otherwise("reason")
    frame = ideal().with_columns(late.alias("reason"))
    assert set(states(frame, kind="proof")) == {"missed"}
    assert set(states(frame, kind="too_few_attempts")) == {"caught"}


@pytest.mark.slow
def test_the_receipt_of_the_demos_run_verifies(demo_run: Path) -> None:
    said = goldilocks("-q", "verify", "receipt", demo_run, "--quick")
    assert said.status == 0
    assert "10,980 verdicts" in said.out
