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

ROWS = [json.loads(line) for line in Path(__file__).with_name("routes.jsonl").read_text("utf-8").splitlines()]
RESPONSES = [(row["gold"], row["response"], Outcome(row["verdict"])) for row in ROWS if "response" in row]
"""Reference, response, and the verdict of every route."""

PAIRS = [one for one in RESPONSES if one[2] is not Outcome.NO_ANSWER]
PAIRS += [(row["gold"], row["pred"], Outcome(row["verdict"])) for row in ROWS if "pred" in row]
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
    right = Outcome.CORRECT
    for gold, pred, outcome in PAIRS:
        assert (answers.compare_texts(gold, pred or "").outcome is right) == (outcome is right)


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
