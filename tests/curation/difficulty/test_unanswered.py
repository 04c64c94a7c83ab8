"""Responses of no use: told as soon as it is certain, once, with one of them; and not told where half are fine."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from curation.config import Band
from curation.difficulty.early_stopping import StoppingRule
from curation.difficulty.sampling import MIN_RESPONSES, ResponseTally, Sampler, SamplingRequest, stored_answers
from curation.records import Completion, PromptRequest
from curation.storage.attempts import AttemptStore
from curation.verify.math_judge import MathJudge
from tests.curation.drawn import KEY, Drawn, problems

RAMBLE = "I do not know\x07 how to do this"


class Rambling(Drawn):
    """Says nothing that can be read in a share of its responses; every other one of these is cut off."""

    useless = 1.0

    async def answer(self, problem: PromptRequest, index: int) -> Completion | None:
        whole = await super().answer(problem, index)
        assert whole is not None
        if random.Random(f"{problem.id} {index} useless").random() >= self.useless:
            return whole
        return Completion(RAMBLE, "length" if index % 2 else "stop", 16)


def sample(policy: Drawn, folder: Path, count: int = 40) -> list[tuple[int, int, str]]:
    """Sample, and return of each alarm the responses judged, the attempts made, and the sentence."""
    store = AttemptStore(folder, KEY)
    said: list[tuple[int, int, str]] = []
    asked = problems(count)
    with MathJudge(1) as judge:
        held = stored_answers(store, [one.id for one in asked], 16, judge)

        def hear(responses: ResponseTally, example: str | None) -> None:
            assert sum(responses.useless.values()) == responses.judged
            said.append((responses.judged, sampler.progress.attempts, responses.sentence("raise max_tokens", example)))

        sampler = Sampler(policy, store, judge, StoppingRule(Band(attempts=16)), alarm=hear)

        async def run() -> None:
            async for _ in sampler.run(SamplingRequest(one, "7", stored_answers=held.get(one.id, {})) for one in asked):
                pass

        asyncio.run(run())
    store.compact()
    store.close()
    return said


def test_a_mute_model_is_told_after_some_dozens_of_attempts(tmp_path: Path) -> None:
    ((judged, attempts, sentence),) = sample(Rambling(), tmp_path)
    assert MIN_RESPONSES <= judged <= attempts < 5 * MIN_RESPONSES
    assert f"{judged} of the first {judged} responses (100 %) are of no use (cut off " in sentence
    assert "raise max_tokens. One of them, problem p" in sentence
    assert sentence.endswith(': "I do not know how to do this"')


def test_nothing_is_said_where_less_than_half_is_useless(tmp_path: Path) -> None:
    policy = Rambling()
    policy.useless = 0.4
    assert sample(policy, tmp_path) == []


def test_a_small_stage_is_told_at_its_end(tmp_path: Path) -> None:
    ((judged, attempts, _),) = sample(Rambling(), tmp_path, count=2)
    assert attempts == judged == 32


@pytest.mark.parametrize(
    ("useless", "judged", "alarming"), [(24, 32, False), (25, 32, True), (60, 100, False), (66, 100, True)]
)
def test_the_limit_narrows_with_the_number_of_responses(useless: int, judged: int, alarming: bool) -> None:
    tally = ResponseTally()
    for number in range(judged):
        tally.add(f"p{number}", 0, has_answer=number >= useless, is_cut_off=False)
    assert tally.is_alarming is alarming


def test_a_majority_of_useless_responses_is_likely_after_a_tenth() -> None:
    """FIELD.md R4: 56 % without an answer were reported when sampling had ended."""
    tally = ResponseTally()
    for number in range(100):
        tally.add(f"p{number}", 0, has_answer=number % 25 >= 14, is_cut_off=False)
    assert not tally.is_alarming
    assert [tally.is_likely(expected) for expected in (None, 1001.0, 1000.0)] == [False, False, True]
