"""Sampling, judging again, training and `goldilocks verify answers` give the same verdict on a response or pair."""

from __future__ import annotations

import asyncio
import json
from functools import cache
from pathlib import Path

import pytest
from typer.testing import CliRunner

from curation.records import Domain, Outcome, PromptRequest
from curation.response_formats import ANY, BOXED
from curation.verify import answers
from curation.verify.math_judge import JudgeTask, MathJudge, Response, Verdict
from curation.verify.pairs import verify_pairs
from flows.cli.entry import app
from training.config import RewardSettings
from training.rollouts.tasks import TrainingTask
from training.rollouts.verifiers import Verifiers

C, W, N = Outcome.CORRECT, Outcome.WRONG, Outcome.NO_ANSWER
RESPONSES = [
    ("144", "Therefore, it will cost #### 144 to paint the room", C),
    ("145", "Therefore, it will cost #### 144 to paint the room", W),
    ("18", "We add.\n<answer>18</answer>", C),
    ("18", "【答案】18", C),
    ("18", "We add.\n\n**Final Answer**\n\n18", C),
    ("C", "Solution: Choice_C", C),
    ("B", "Solution: Choice_C", W),
    ("18", "The answer is 18. This answer is correct.", C),
    ("19", "The answer is 18. This answer is correct.", W),
    ("6", "\\boxed{6}\n\n\\boxed{6}", C),
    ("6, 6", "\\boxed{6}\n\n\\boxed{6}", W),
    ("3", "xy+yz+zx+3", W),
    ("xy+yz+zx+3", "3", W),
    ("xy+yz+zx+3", "zx+yz+xy+3", C),
    (r"\frac{1}{2}", r"<think>\boxed{3}</think>so \boxed{0.5}", C),
    ("18", "<think> \\boxed{18}", N),
    ("18", "There are many things to say about the eighteen, and they are said here.", N),
    ("18", "<answer>18", N),
    ("7", "The answer is that Tom has 7 apples and Ann has 9.", W),
    ("x^2-1", r"\boxed{(x-1)(x+1)}", C),
]
"""Reference, response, and what every route says of it."""

PAIRS = [
    *((gold, pred, outcome) for gold, pred, outcome in RESPONSES if outcome is not N),
    ("x+1", "So we get $1+x$.", C),
    ("24", "The number of bricks that can fit into the box is 24 pieces.", C),
    ("3", "We think that 4 are left, in the end.", W),
    ("May 5", "May 5", C),
    ("18", None, N),
]
"""The same for pairs, either side of which may be an answer or a response."""


@cache
def by_the_judge(form: str) -> list[Verdict]:
    with MathJudge(1, response_format=form) as judge:
        tasks = [
            JudgeTask(str(number), gold, "en", (Response(text, None),))
            for number, (gold, text, _) in enumerate(RESPONSES)
        ]
        return [result.verdicts[0] for result in judge.judge(tasks)]


def test_measuring() -> None:
    assert [verdict.outcome for verdict in by_the_judge(ANY)] == [outcome for _, _, outcome in RESPONSES]


@pytest.mark.slow
def test_stored_final_answers_are_judged_as_the_responses_were() -> None:
    """The sampler reads answers first and submits them; failed verdicts are judged again by what the table holds."""
    with MathJudge(1) as judge:
        stored = [judge.final_answer(Response(text, None)) for _, text, _ in RESPONSES]
        again = [
            judge.submit(JudgeTask("p", gold, "en", ()), [answer]).result()[0]
            for (gold, _, _), answer in zip(RESPONSES, stored, strict=True)
        ]
    assert again == by_the_judge(ANY)


def test_training() -> None:
    tasks = [
        TrainingTask(PromptRequest(str(number), "?", Domain.MATH, "en"), gold)
        for number, (gold, _, _) in enumerate(RESPONSES)
    ]

    async def said() -> list[Verdict]:
        with Verifiers(tasks, 1, RewardSettings()) as judges:
            texts = (text for _, text, _ in RESPONSES)
            return list(
                await asyncio.gather(
                    *(judges.verify(task, text, seed=1) for task, text in zip(tasks, texts, strict=True))
                )
            )

    assert asyncio.run(said()) == by_the_judge(BOXED)  # the form that rollouts are asked for


def test_pairs_of_people(tmp_path: Path) -> None:
    path, out = tmp_path / "pairs.jsonl", tmp_path / "out.jsonl"
    path.write_text("".join(json.dumps({"gold": gold, "pred": pred}) + "\n" for gold, pred, _ in PAIRS))
    result = CliRunner().invoke(app, ["verify", "answers", str(path), "--out", str(out), "--workers", "1"])
    assert result.exit_code == 0, result.output
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["verdict"] for row in rows] == [outcome for _, _, outcome in PAIRS]
    for gold, pred, outcome in PAIRS:
        assert (answers.compare_texts(gold, pred or "").outcome is C) == (outcome is C)


def test_a_list_of_admissible_golds_is_right_by_any_of_them(tmp_path: Path) -> None:
    path, out = tmp_path / "pairs.jsonl", tmp_path / "out.jsonl"
    golds = [["5", "6"], ["x+1", "6"], ["7"], ["9^{9^{9^9}}", "7"]]
    path.write_text("".join(json.dumps({"gold": gold, "pred": "6"}) + "\n" for gold in golds))
    verify_pairs(path, out, 1)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["equal"] for row in rows] == [True, True, False, False]
    assert [row["gold"] for row in rows] == golds, "the row as it came"


def test_a_format_that_is_none_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_text("")
    for form in ("answer", "<answer", "<>", "last"):
        result = CliRunner().invoke(
            app, ["verify", "answers", str(path), "--out", str(tmp_path / "o"), "--format", form]
        )
        assert result.exit_code != 0
        assert "response format" in str(result.exception) + result.output
