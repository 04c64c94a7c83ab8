"""The judge on tasks, references and real recorded attempts; and pairs files."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from curation.records import Outcome, SourceError
from curation.verify.math_judge import JudgeTask, MathJudge, Response
from curation.verify.pairs import verify_pairs
from curation.verify.worker_pool import Guard, WorkerPool


def task(reference: str, *found: str | None, lang: str = "en") -> JudgeTask:
    return JudgeTask("p", reference, lang, tuple(Response(None, answer) for answer in found))


@pytest.fixture(scope="module")
def judge() -> Iterator[MathJudge]:
    with MathJudge(workers=1) as judge:
        yield judge


def test_answers_are_grouped_by_equivalence_in_order_of_appearance(judge: MathJudge) -> None:
    (result,) = judge.judge([task(r"\frac12", "3", "0.5", "x+1", "1/2", "1+x", "6/2", None, "No answer provided.")])
    assert [verdict.answer_class for verdict in result.verdicts] == [1, 0, 2, 0, 2, 1, None, None]
    assert [verdict.outcome for verdict in result.verdicts][-2:] == [Outcome.NO_ANSWER, Outcome.NO_ANSWER]
    assert all(verdict.method for verdict in result.verdicts)


def test_plain_numbers_need_no_worker() -> None:
    with MathJudge(workers=1) as judge:
        (result,) = judge.judge([task("18", "18", "26", "$18", "26.0")])
        assert not judge._open
    assert [verdict.answer_class for verdict in result.verdicts] == [0, 1, 0, 1]


def test_the_text_is_judged_not_the_recorded_answer(judge: MathJudge) -> None:
    responses = Response(r"so \boxed{6}", "5"), Response("cut off in the mid", "5")
    (result,) = judge.judge([JudgeTask("p", "5", "en", responses)])
    assert [verdict.outcome for verdict in result.verdicts] == [Outcome.WRONG, Outcome.NO_ANSWER]


def test_references_are_checked(judge: MathJudge) -> None:
    references = [("5", "en"), ("", "en"), (r"\frac{1}{2}", "en"), (r"\frac{1}{", "en"), ("3,5", "de")]
    found = list(judge.check(references))
    assert [check.usable for check in found] == [True, False, True, False, True]
    assert all(check.failure is None for check in found)
    assert found[1].reason == "it is empty"


@pytest.mark.slow
def test_a_reference_that_cannot_be_checked_in_time_is_no_bad_reference() -> None:
    long = "+".join(f"x^{{{power}}}y" for power in range(440)) + "=0"
    with MathJudge(workers=1, limit_s=0.01) as judge:
        late, plain = judge.check([(long, "en"), ("5", "en")])
    assert (late.usable, late.failure) == (False, Outcome.TIMEOUT)
    assert late.reason == "verifying the reference against itself ended as timeout"
    assert plain.usable
    with MathJudge(workers=1, limit_s=30) as judge:
        (patient,) = judge.check([(long, "en")])
    assert (patient.usable, patient.failure) == (True, None)


def die(job: Any, guard: Guard) -> Any:
    """Work of a worker that dies before it announces any step."""
    os._exit(3)


@pytest.mark.slow
def test_a_worker_that_dies_is_the_verifiers_failure_whatever_was_asked() -> None:
    judge = MathJudge(workers=1)
    judge._pool = WorkerPool("tests.curation.verify.test_math_judge:die", 1)
    with judge:
        checks = list(judge.check([("x+1", "en"), ("5", "en")]))
        (result,) = judge.judge([task("x+1", "1+x", None, "y", "1+x")])
        pairs = list(judge.compare_pairs([("x+1", "1+x"), ("5", "5")]))
    assert [(check.usable, check.failure) for check in checks] == [(False, Outcome.BROKEN), (True, None)]
    assert checks[0].reason.startswith("the worker died (status 3")
    outcomes = [verdict.outcome for verdict in result.verdicts]
    assert outcomes == [Outcome.BROKEN, Outcome.NO_ANSWER, Outcome.BROKEN, Outcome.BROKEN]
    assert [verdict.answer_class for verdict in result.verdicts] == [None] * 4
    assert result.verdicts[0].method.startswith("the worker died (status 3")
    assert pairs == [Outcome.BROKEN, Outcome.CORRECT]


@pytest.mark.slow
def test_a_pairs_file_comes_back_in_order(tmp_path: Path) -> None:
    rows = [
        {"gold": "1/2", "pred": "0.5", "id": 1},
        {"gold": r"\boxed{x+1}", "pred": "So we get $1+x$.", "id": 2},
        {"gold": "2", "pred": "9^{9^{9^9}}", "id": 3},
        {"gold": "3", "pred": None, "id": 4},
        {"gold": "31", "pred": "3100 cm", "id": 5, "statement": "How long is it in metres?"},
        {"gold": "31", "pred": "3100 cm", "id": 6, "statement": None},
    ]
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    seen: list[int] = []
    counts = verify_pairs(path, tmp_path / "out.jsonl", workers=2, progress=seen.append)
    out = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text(encoding="utf-8").split("\n") if line]
    assert [row["id"] for row in out] == [1, 2, 3, 4, 5, 6]
    assert [row["equal"] for row in out] == [True, True, False, False, True, False]
    assert out[3]["verdict"] == "no_answer"
    assert all({"equal", "verdict", "method", "ms"} <= row.keys() for row in out)
    assert counts["correct"] == 3
    assert seen == [1] * 6


BAD_LINES = ["not json", "[1]", '{"pred": "1"}', '{"gold": 5, "pred": "1"}', '{"gold": "5", "pred": 1}']
BAD_LINES += ['{"gold": "\udcff"', '{"gold": "3", "pred": "3", "statement": 7}']


@pytest.mark.parametrize("line", BAD_LINES)
def test_a_bad_line_is_one_clear_error(tmp_path: Path, line: str) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_bytes(b'{"gold": "1", "pred": "1"}\n' + line.encode("utf-8", "surrogateescape") + b"\n")
    with pytest.raises(SourceError, match="line 2"):
        verify_pairs(path, tmp_path / "out.jsonl", workers=1)
    assert not (tmp_path / "out.jsonl").exists()


def test_attempts_at_an_opened_choice_may_name_the_option(judge: MathJudge) -> None:
    responses = tuple(Response(None, text) for text in ("B", "B) 12", "12", "C", "13"))
    (result,) = judge.judge([JudgeTask("p", "12", "en", responses, letter="B")])
    (without,) = judge.judge([JudgeTask("p", "12", "en", responses)])
    assert [verdict.outcome.value for verdict in result.verdicts] == ["correct"] * 3 + ["wrong"] * 2
    assert [verdict.answer_class for verdict in result.verdicts[:3]] == [0, 0, 0]
    assert without.verdicts[0].outcome.value == "wrong"
