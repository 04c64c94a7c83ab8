"""Doubtful verdicts put to a model while training: once a pair, up to a limit, and kept over a resume."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from curation.policies.endpoint import Endpoint
from curation.questions.doubtful_verdicts import PROMPT
from curation.records import Domain, Outcome, PromptRequest
from curation.verify.judge_worker import DOUBTFUL
from curation.verify.math_judge import Verdict
from tests.curation.policies.test_endpoint import StandIn, settings
from training.rollouts.doubtful import FILE, DoubtfulVerdicts
from training.rollouts.tasks import TrainingTask

pytest.importorskip("aiohttp")
TASK = TrainingTask(PromptRequest("p", "How many cupcakes are left?", Domain.MATH, "en"), "15")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[StandIn]:
    says = tmp_path / "says.json"
    says.write_text(json.dumps([["15 more cupcakes", "VERDICT: SAME"], ["refused", 400], ["", "VERDICT: DIFFERENT"]]))
    running = StandIn(tmp_path / "journal.jsonl", says=says)
    yield running
    running.stop()


def doubtful(answer: str, method: str = f"text{DOUBTFUL}") -> Verdict:
    return Verdict(Outcome.WRONG, answer, 1, method)


def decided(server: StandIn, run: Path, most: int, *verdicts: Verdict) -> tuple[list[Verdict], dict[str, float]]:
    async def work() -> tuple[list[Verdict], dict[str, float]]:
        async with Endpoint(settings(server), Path(), PROMPT) as policy:
            questions = DoubtfulVerdicts(policy, most, run)
            found = list(await asyncio.gather(*(questions.decide(TASK, verdict) for verdict in verdicts)))
            return found, questions.numbers()

    return asyncio.run(work())


def test_one_question_a_pair_decides_all_its_verdicts_and_is_kept(server: StandIn, tmp_path: Path) -> None:
    same, sure, other = doubtful("15 more cupcakes"), doubtful("15 more cupcakes", "number"), doubtful("14 or so")
    (first, second, third, fourth), numbers = decided(server, tmp_path, 9, same, same, sure, other)
    assert first == second
    assert (first.outcome, first.answer_class, first.method) == (Outcome.CORRECT, 0, "text (by 3 votes: same)")
    assert (third, fourth) == (sure, other)  # a proof is not overruled, and what differs stays doubtful
    assert numbers == {
        "verify/doubtful": 3.0,
        "verify/accepted": 2.0,
        "verify/failed": 0.0,
        "verify/unasked": 0.0,
        "verify/questions": 2.0,
    }
    asked = len(server.seeds("asked"))
    assert asked == 6  # three votes on each of two pairs
    with (tmp_path / FILE).open("a") as file:
        file.write('{"problem": "p", "ans')  # a kill cut the last line
    (again,), _ = decided(server, tmp_path, 9, same)
    assert again == first
    assert len(server.seeds("asked")) == asked


def test_a_limit_and_a_refusal_leave_verdicts_as_they_are_and_are_counted(server: StandIn, tmp_path: Path) -> None:
    refused, (one, two) = doubtful("refused"), (doubtful("14 or so"), doubtful("13 or so"))
    found, numbers = decided(server, tmp_path, 2, one, refused, two)
    assert found == [one, refused, two]
    assert (numbers["verify/failed"], numbers["verify/unasked"], numbers["verify/questions"]) == (1.0, 1.0, 1.0)
