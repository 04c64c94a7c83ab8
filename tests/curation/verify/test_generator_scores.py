"""A generator's own scorer: it judges in the sandbox what the verifier cannot read, and its method states so."""

from __future__ import annotations

from pathlib import Path

import pytest

from curation.config.sources import Made
from curation.records import Outcome
from curation.sources.procedural import scorer_name
from curation.verify.math_judge import JudgeTask, MathJudge, Response
from curation.verify.own_judges import find_judge

GENERATOR = """
def make(level, seed):
    return {"statement": "Draw two cells.", "answer": "#.|.#"}

def score(row, answer):
    if "?" in answer:
        open("/etc/hostname").read()
        raise ValueError("outside")
    while "loop" in answer:
        pass
    return sorted(answer) == sorted(row["answer"]) and row["statement"] is not None
"""

pytestmark = pytest.mark.skipif(not Path("/proc/self").exists(), reason="the sandbox needs Linux")


def task(reference: str, *found: str) -> JudgeTask:
    return JudgeTask("p", reference, "en", tuple(Response(None, answer) for answer in found), statement="Draw.")


@pytest.mark.slow
def test_the_scorer_judges_what_the_verifier_cannot_read_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "cells.py").write_text(GENERATOR)
    assert scorer_name(Made("cells.py:make", ({},), 1, 0, 0), tmp_path) == "cells.py:score"
    judges = [find_judge("cells.py:score", tmp_path)]
    with MathJudge(workers=1, judges=judges) as judge:
        unreadable, readable = judge.judge([task("#.|.#", ".##|.", "##", "#?"), task("12", "12", "21")])
        assert [one.usable for one in judge.check([("#.|.#", "en", "Draw."), ("#.", "en", None)])] == [True, False]
        (slow,) = judge.submit(task("#.|.#", "loop")).result()
    assert [one.outcome for one in unreadable.verdicts] == [Outcome.CORRECT, Outcome.WRONG, Outcome.BROKEN]
    assert {one.method for one in unreadable.verdicts[:2]} == {"cells.py:score"}
    assert "cells.py: score" in unreadable.verdicts[2].method
    assert [one.outcome for one in readable.verdicts] == [Outcome.CORRECT, Outcome.WRONG]
    assert all("score" not in one.method for one in readable.verdicts)
    assert slow.outcome is Outcome.BROKEN


def test_a_file_without_a_scorer_names_none(tmp_path: Path) -> None:
    (tmp_path / "cells.py").write_text(GENERATOR.replace("def score(row,", "def score(line,"))
    assert scorer_name(Made("cells.py:make", ({},), 1, 0, 0), tmp_path) is None
    assert scorer_name(Made("reasoning_gym:gcd", ({},), 1, 0, 0), tmp_path) is None
