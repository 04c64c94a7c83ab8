"""A user's judge of answers: chemical formulas, judged by a file next to the recipe."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from curation import judge_answers
from curation.records import ConfigError, Outcome
from curation.verify.math_judge import JudgeTask, MathJudge, Response
from curation.verify.own_judges import find_judge
from tests.flows.conftest import goldilocks, write_jsonl

CHEMISTRY = """
import re
from collections import Counter

class Formula:
    def claims(self, reference, statement):
        return re.fullmatch(r"([A-Z][a-z]?[0-9]*){2,}", reference) is not None

    def judge(self, answer, reference, statement):
        return atoms(answer) == atoms(reference) if "?" not in answer else None

def atoms(formula):
    pairs = re.findall(r"([A-Z][a-z]?)([0-9]*)", formula.replace("_", ""))
    return Counter(atom for atom, number in pairs for _ in range(int(number or 1)))

FORMULA = Formula()
"""


def task(reference: str, *found: str) -> JudgeTask:
    return JudgeTask("p", reference, "en", tuple(Response(None, answer) for answer in found))


@pytest.mark.slow
def test_a_judge_decides_what_it_claims_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "chem.py").write_text(CHEMISTRY)
    judges = [find_judge("chem.py:FORMULA", tmp_path)]
    with MathJudge(workers=1) as plain, MathJudge(workers=1, judges=judges) as judge:
        (formula, number) = judge.judge([task("C2H6O", "CH3CH2OH", "CO2", "OCO", "C_2H_6O?"), task("1/2", "0.5", "3")])
        assert [one.outcome for one in number.verdicts] == [Outcome.CORRECT, Outcome.WRONG]
        assert [one.usable for one in judge.check([("C2H6O", "en", "Which?"), ("", "en", None)])] == [True, False]
        assert list(judge.compare_pairs([("H2O", "OH2"), ("H2O", "H2O2")])) == [Outcome.CORRECT, Outcome.WRONG]
        assert plain.submit(task("C2H6O", "CH3CH2OH")).result()[0].outcome is Outcome.WRONG
        assert judge.version == f"{plain.version} chem.py:FORMULA@{judges[0].digest}"
    assert [one.outcome for one in formula.verdicts] == [Outcome.CORRECT, *[Outcome.WRONG] * 3]
    assert [one.answer_class for one in formula.verdicts] == [0, 1, 1, 2]
    assert [one.is_doubtful for one in formula.verdicts] == [False, False, False, True]


@pytest.mark.slow
def test_a_notebook_and_verify_answers_take_judges_by_path(tmp_path: Path) -> None:
    (tmp_path / "chem.py").write_text(CHEMISTRY)
    own = f"{tmp_path / 'chem.py'}:FORMULA"
    (verdict,) = judge_answers("C2H6O", [r"\boxed{CH3CH2OH}"], judges=[own])
    assert verdict.outcome is Outcome.CORRECT
    pairs = write_jsonl(tmp_path / "pairs.jsonl", [{"gold": "C2H6O", "pred": "CH3CH2OH"}])
    for judges, equal in (((), False), (("--judge", own), True)):
        done = goldilocks("verify", "answers", pairs, "--out", tmp_path / "out.jsonl", "--workers", "1", *judges)
        assert done.status == 0, done.err
        assert json.loads((tmp_path / "out.jsonl").read_text())["equal"] is equal


@pytest.mark.slow
def test_what_a_judge_raises_or_never_ends_is_no_wrong_answer(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "class Failing:\n"
        "    def claims(self, reference, statement):\n"
        "        return 1 / len(reference.strip('0'))\n"
        "    def judge(self, answer, reference, statement):\n"
        "        while answer == 'loop':\n"
        "            pass\n"
        "        return {'2': True}[answer]\n"
        "FAILING = Failing()\n"
    )
    with MathJudge(workers=1, limit_s=0.5, judges=[find_judge("own.py:FAILING", tmp_path)]) as judge:
        judged, unclaimed = judge.judge([task("x", "2", "loop", "7"), task("0", "0")])
        unusable, failing = judge.check([("3", "en"), ("0", "en")])
    found = [(one.outcome, one.method) for one in (*judged.verdicts, *unclaimed.verdicts)]
    place = tmp_path / "own.py"
    assert found == [
        (Outcome.CORRECT, "own.py:FAILING"),
        (Outcome.TIMEOUT, "own.py:FAILING killed at its limit (judging 'loop' by 'x')"),
        (Outcome.BROKEN, f"{place}:7: KeyError: '7' (judging '7' by 'x')"),
        (Outcome.BROKEN, f"{place}:3: ZeroDivisionError: division by zero (claiming '0')"),
    ]
    assert (unusable.usable, unusable.failure) == (False, Outcome.BROKEN)
    assert (failing.usable, failing.failure) == (False, Outcome.BROKEN)


def test_a_judge_without_its_methods_is_refused(tmp_path: Path) -> None:
    (tmp_path / "chem.py").write_text(CHEMISTRY)
    for name, kind in (("Formula", "a class"), ("atoms", "a function")):
        with pytest.raises(ConfigError, match=f"verify.judges: chem.py:{name} is {kind}"):
            find_judge(f"chem.py:{name}", tmp_path)
