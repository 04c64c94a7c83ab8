"""A generator's own scorer: it judges in the sandbox what the verifier cannot read, and its method states so."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from curation.config import Source
from curation.records import Outcome
from curation.sources.procedural import made_rows, scorer_name
from curation.verify.generator_scores import TaskScorer, scored_by_task
from curation.verify.math_judge import JudgeTask, MathJudge, Response, Verdict
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

FORGED = "__import__('os').write(1, b'True') + __import__('os')._exit(0)"
"""An answer that writes a verdict when sympy evaluates it."""

pytestmark = pytest.mark.skipif(not Path("/proc/self").exists(), reason="the sandbox needs Linux")


def task(reference: str, *found: str, scorer: str | None = None) -> JudgeTask:
    answers = tuple(Response(None, answer) for answer in found)
    return JudgeTask("p", reference, "en", answers, statement="Draw.", scorer=scorer)


def made(generator: str, parameters: dict[str, Any]) -> Source:
    table = {"kind": "procedural", "generator": generator, "levels": (parameters,)}
    return Source.model_validate({**table, "rows_per_level": 1, "first_seed": 3})


def made_row(generator: str, folder: Path = Path(), **parameters: Any) -> dict[str, Any]:
    (row,) = made_rows(made(generator, parameters), folder)
    assert row.row is not None
    return dict(row.row)


def judged(judge: MathJudge, row: dict[str, Any], *found: str) -> tuple[Verdict, ...]:
    (result,) = judge.judge([task(row["answer"], *found, scorer=row["scorer"])])
    return result.verdicts


def test_a_row_that_only_its_generator_can_judge_goes_to_the_scorer_of_its_file(tmp_path: Path) -> None:
    code = GENERATOR.replace('"#.|.#"', '"12", "judged_by": "generator"')
    (tmp_path / "cells.py").write_text(code)
    row = made_row("cells.py:make", tmp_path)
    assert row["scorer"] == "cells.py:score"
    with MathJudge(workers=1, judges=[find_judge("cells.py:score", tmp_path)]) as judge:
        right, wrong = judged(judge, row, "21", "11")
    assert (right.outcome, wrong.outcome, right.method) == (Outcome.CORRECT, Outcome.WRONG, "cells.py:score")
    with MathJudge(workers=1) as judge:
        (alone,) = judged(judge, row, "12")
    assert (alone.outcome, "cells.py:score is missing" in alone.method) == (Outcome.BROKEN, True)


def test_a_scorer_that_names_no_task_is_the_verifiers_failure() -> None:
    with MathJudge(workers=1) as judge:
        results = judge.judge([task("4", "4", scorer=scorer) for scorer in ("{bad", '{"module": "os"}')])
        verdicts = [result.verdicts[0] for result in results]
    assert [(one.outcome, "names no task" in one.method) for one in verdicts] == [(Outcome.BROKEN, True)] * 2


def test_a_task_of_reasoning_gym_is_judged_by_its_own_scorer() -> None:
    pytest.importorskip("reasoning_gym", reason="the extra `procedural` is not installed")
    row = made_row("reasoning_gym:countdown", min_numbers=3, max_numbers=3)
    with MathJudge(workers=1) as judge:
        (check,) = judge.check([(row["answer"], "en", row["statement"], row["scorer"])])
        verdicts = judged(judge, row, row["answer"], f"({row['answer']})", "1 + 1", FORGED)
    assert check.usable
    assert [one.outcome for one in verdicts[:3]] == [Outcome.CORRECT, Outcome.CORRECT, Outcome.WRONG]
    assert {one.method for one in verdicts[:3]} == {"reasoning_gym:countdown"}
    assert verdicts[3].outcome is not Outcome.CORRECT


def test_a_task_that_makes_another_row_or_is_missing_fails_and_is_not_wrong() -> None:
    pytest.importorskip("reasoning_gym", reason="the extra `procedural` is not installed")
    row = made_row("reasoning_gym:n_queens")
    scorer = TaskScorer(**json.loads(row["scorer"]))
    assert asdict(scorer)["module"] == "reasoning_gym.games.n_queens"
    failures = {
        "the regenerated question differs": replace(scorer, seed=4),
        "No module named 'reasoning_gym.games.queens'": replace(scorer, module="reasoning_gym.games.queens"),
    }
    for why, changed in failures.items():
        found = scored_by_task(changed, row["answer"])
        assert isinstance(found, str)
        assert why in found


@pytest.mark.slow
def test_the_scorer_judges_what_the_verifier_cannot_read_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "cells.py").write_text(GENERATOR)
    assert scorer_name("cells.py:make", tmp_path) == "cells.py:score"
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
