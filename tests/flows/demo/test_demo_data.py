"""The demo's data: answers to today's prompts, every kind planted, references right, and the report that compares."""

from __future__ import annotations

import ast
import json
import math
import operator
import re
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import flows.demo
from curation.records import DropReason
from flows.demo.report import compare, label_score
from tests.demo_data import recorded
from tests.demo_data.recorded import demo_rows as rows
from tests.flows.conftest import goldilocks

DEMO = Path(flows.demo.__file__).parent
RECIPE = DEMO.parent / "recipes" / "demo_math.toml"
NOT_IN_THE_MATH_LINE = {
    DropReason.RESERVED,  # of procedural sources
    DropReason.OWN_RULE,  # the demo has no rule of the user's own
    DropReason.BAD_ROW,  # set aside only where a source asks for it
    DropReason.WRONG_LANGUAGE,
    DropReason.VERIFIER_FAILED,
    DropReason.SAMPLING_FAILED,  # a server's refusal
    DropReason.OVER_QUOTA,
    DropReason.UNTRANSLATED,  # no row leaves for it
    DropReason.NO_VARIANT,  # no row leaves for it either
    DropReason.REJECTED,  # a person's word
    DropReason.FAULTY_PREMISES,  # a model's word, off by default
    DropReason.UNPROVEN_REWRITING,  # tests/flows/stages/test_references.py spoils a row so
}
CODE_LINE = {"asks_function", "interactive", "needs_files", "no_solution", "too_few_tests", "several_outputs"}
"""Reasons of the code pipeline."""


def lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DEMO / name).read_text("utf-8").split("\n") if line]


PLANTED = lines("planted.jsonl")


def test_recorded_answers_are_those_to_the_prompts_of_today(tmp_path: Path) -> None:
    for path in recorded.write(tmp_path):
        assert path.read_bytes() == (DEMO / path.name).read_bytes(), (
            f"run python -m tests.demo_data.recorded: {path.name}"
        )


def test_every_reason_of_the_math_line_is_planted_at_least_eight_times() -> None:
    expected = Counter(line["expected"] for line in PLANTED)
    for reason in set(DropReason) - NOT_IN_THE_MATH_LINE - CODE_LINE:
        assert expected[reason] >= 8, reason
    assert expected["rewritten"] >= 8
    assert expected["keep"] >= 8
    kinds = Counter(line["kind"] for line in PLANTED)
    assert min(kinds.values()) >= 8, kinds


OPERATIONS: dict[type[ast.AST], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
    ast.Pow: lambda a, b: a ** int(b),
}


def evaluate(text: str) -> Fraction:
    """Exact value of arithmetic as the `worked` field writes it; a square root gives its square."""
    return walk(ast.parse(text.replace("^", "**").replace(" mod ", " % "), mode="eval").body)


def walk(node: ast.expr) -> Fraction:
    match node:
        case ast.Constant(value=value):
            return Fraction(str(value))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -walk(operand)
        case ast.BinOp():
            return OPERATIONS[type(node.op)](walk(node.left), walk(node.right))
        case ast.Call(func=ast.Name(id=name), args=arguments):
            values = [int(walk(argument)) for argument in arguments]
            return Fraction({"gcd": math.gcd, "lcm": math.lcm, "sqrt": lambda n: n}[name](*values))
    raise AssertionError(f"cannot compute {ast.dump(node)}")


def value_of(reference: str) -> Fraction:
    """The number that a plain reference writes; a surd gives its square."""
    surd = re.fullmatch(r"(\d+)\\sqrt\{(\d+)\}", reference)
    if surd:
        return Fraction(int(surd[1]) ** 2 * int(surd[2]))
    latex = re.fullmatch(r"\\frac\{(\d+)\}\{(\d+)\}", reference)
    return Fraction(int(latex[1]), int(latex[2])) if latex else Fraction(reference)


def right_rows() -> list[dict[str, Any]]:
    """Rows whose reference should be right and plain: those without a planted defect in it."""
    sound = {"keep", "rewritten", "duplicate", "never_solved", "too_easy", "too_few_attempts"}
    planted = {(p["source"], p["row"]): p for p in PLANTED}
    found = []
    for row in rows():
        mark = planted.get((row["source"], row["row"]))
        if mark is None or (mark["expected"] in sound and mark["kind"] != "multiple_choice"):
            found.append(row)
    return found


def test_references_equal_their_worked_computation() -> None:
    checked = right_rows()
    assert len(checked) > 250
    for row in checked:
        setup, _, result = row["worked"].rpartition(" = ")
        assert evaluate(setup) == value_of(row["reference"]) == value_of(result), row


# --- the report ------------------------------------------------------------------------------------------------------


def ideal() -> pl.DataFrame:
    """The decisions of a line that does exactly what is expected."""
    planted = {(p["source"], p["row"]): p["expected"] for p in PLANTED}
    found = []
    for row in rows():
        expected = planted.get((row["source"], row["row"]), "keep")
        reason = None if expected in ("keep", "rewritten") else expected
        place = {"source": row["source"], "row": row["row"], "statement": row["question"], "stage": "any"}
        found.append({**place, "reason": reason, "rewritten": expected == "rewritten"})
    return pl.DataFrame(found, infer_schema_length=None)


def states(outcomes: pl.DataFrame, **where: str) -> Counter[str | None]:
    rows = compare(DEMO / "planted.jsonl", outcomes)
    return Counter(rows.filter(**where)["state"] if where else rows["state"])


def test_a_perfect_run_has_nothing_missed() -> None:
    assert states(ideal()) == {"caught": len(PLANTED), None: ideal().height - len(PLANTED)}
    wrong, suspected, right = label_score(compare(DEMO / "planted.jsonl", ideal()))
    assert wrong == suspected == right > 0


def test_misses_other_reasons_and_false_alarms_are_told_apart() -> None:
    frame = ideal()
    proof, other = [p for p in PLANTED if p["kind"] == "proof"][:2]
    marked = {(p["source"], p["row"]) for p in PLANTED}
    good, easy = [row for row in rows() if (row["source"], row["row"]) not in marked][:2]

    def turn(frame: pl.DataFrame, row: dict[str, Any], reason: str | None) -> pl.DataFrame:
        here = (pl.col("source") == row["source"]) & (pl.col("row") == row["row"])
        return frame.with_columns(pl.when(here).then(pl.lit(reason, pl.String)).otherwise("reason").alias("reason"))

    frame = turn(turn(turn(turn(frame, proof, None), other, "yes_no"), good, "proof"), easy, "suspected_wrong_label")
    proofs = sum(one["kind"] == "proof" for one in PLANTED)
    assert states(frame, kind="proof") == {"caught": proofs - 2, "other reason": 1, "missed": 1}
    found = compare(DEMO / "planted.jsonl", frame)
    assert found.filter(pl.col("state") == "false alarm")["row"].to_list() == [good["row"]]
    wrong, suspected, right = label_score(found)
    assert (suspected, right) == (wrong + 1, wrong)
    gone = frame.filter((pl.col("source") != proof["source"]) | (pl.col("row") != proof["row"]))
    assert states(gone, kind="proof")["missed"] == 1


def test_a_defect_that_only_difficulty_dropped_counts_as_missed() -> None:
    late = pl.when(pl.col("reason") == "proof").then(pl.lit("too_few_attempts")).otherwise("reason")
    frame = ideal().with_columns(late.alias("reason"))
    assert set(states(frame, kind="proof")) == {"missed"}
    assert set(states(frame, kind="too_few_attempts")) == {"caught"}


@pytest.mark.slow
def test_the_receipt_of_the_demos_run_verifies(demo_run: Path) -> None:
    told = json.loads(goldilocks("-q", "verify", "receipt", demo_run, "--quick", "--json").out)
    assert told["differing"] == []
    assert any("10,980 verdicts" in text for text in told["checked"])
