"""Sampling: the same decisions as with all attempts, nothing asked twice, an alarm at responses of no use."""

import asyncio
import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from curation.config import Band
from curation.difficulty.early_stopping import StoppingRule
from curation.difficulty.sampling import (
    MIN_RESPONSES,
    ResponseTally,
    SampledProblem,
    Sampler,
    SamplingRequest,
    stored_answers,
)
from curation.policies.failure_budget import FailureBudget
from curation.records import Completion, PolicyError, PromptRequest, RequestRefused
from curation.storage.attempts import AttemptStore
from curation.verify.math_judge import MathJudge
from tests.curation.drawn import KEY, Drawn, decisions, problems, sample


@pytest.fixture(scope="module")
def judge() -> Iterator[MathJudge]:
    with MathJudge(1) as judge:
        yield judge


def test_requests_stay_in_flight_and_memory_is_bounded(judge: MathJudge, tmp_path: Path) -> None:
    policy, read = Drawn(0.002, in_flight=16), []
    store = AttemptStore(tmp_path, KEY)
    sampler = Sampler(policy, store, judge, StoppingRule(Band(attempts=16)))
    sampler._max_open = 4

    async def run() -> int:
        most = done = 0
        lazily = (read.append(one.id) or SamplingRequest(one, "7") for one in problems(40))
        async for _ in sampler.run(lazily):
            done += 1
            most = max(most, len(read) - done)
        return most

    assert asyncio.run(run()) <= 8
    assert policy.most == 16
    assert store.height == sampler.progress.attempts
    store.close()


def test_what_is_in_the_store_is_not_asked_again(judge: MathJudge, tmp_path: Path) -> None:
    rule = StoppingRule(Band(attempts=16))
    first, _ = sample(Drawn(), tmp_path, rule, problems(10), judge=judge)
    policy = Drawn()
    again, _ = sample(policy, tmp_path, rule, problems(10), judge=judge)
    assert policy.asked == []
    assert again == [SampledProblem(one.problem, one.reference, one.verdicts, one.is_decided, 0, 0) for one in first]
    # a wider rule asks for what is missing, and for nothing else
    more, _ = sample(policy, tmp_path, StoppingRule(Band(attempts=16), early_stopping=False), problems(10), judge=judge)
    assert len(policy.asked) == 160 - sum(len(one.verdicts) for one in first)
    assert all(len(one.verdicts) == 16 for one in more)


class Broken(Drawn):
    """Fails at its fiftieth request."""

    async def answer(self, problem: PromptRequest, index: int) -> Completion | None:
        if len(self.asked) == 50:
            raise PolicyError("the engine is gone")
        return await super().answer(problem, index)


def test_a_policy_that_fails_loses_nothing_that_was_finished(judge: MathJudge, tmp_path: Path) -> None:
    policy = Broken(0.001)
    with pytest.raises(PolicyError, match="the engine is gone"):
        sample(policy, tmp_path, StoppingRule(Band(attempts=16)), problems(), judge=judge)
    store = AttemptStore(tmp_path, KEY)
    held = set(store.read([one.id for one in problems()]).select("problem", "index").rows())
    store.close()
    assert len(held) >= 50 - policy.in_flight
    rest = Drawn()
    sample(rest, tmp_path, StoppingRule(Band(attempts=16)), problems(), judge=judge)
    assert not held & set(rest.asked)


class Short(Drawn):
    """Has five attempts at each problem, and needs no time."""

    instant = True

    async def answer(self, problem: PromptRequest, index: int) -> Completion | None:
        return await super().answer(problem, index) if index < 5 else None


def test_attempts_that_cannot_be_had(judge: MathJudge, tmp_path: Path) -> None:
    sampled, sampler = sample(Short(), tmp_path, StoppingRule(Band(attempts=16)), problems(5), judge=judge)
    assert [sorted(one.verdicts) for one in sampled] == [[0, 1, 2, 3, 4]] * 5
    assert decisions(sampled, StoppingRule(Band(attempts=16)))["reason"].to_list() == ["too_few_attempts"] * 5
    assert sampler.progress.dropped == {"too_few_attempts": 5}


class Summing(Drawn):
    """Gives as every second answer a sum that takes the verifier its time, as the others a wrong number."""

    async def answer(self, problem: PromptRequest, index: int) -> Completion | None:
        done = await super().answer(problem, index)
        assert done is not None
        final = r"\sum_{k=0}^{\infty}\frac{1}{2^k}" if index % 2 else str(100 + index)
        return Completion(rf"\boxed{{{final}}}", done.finish, done.tokens)


@pytest.mark.slow
def test_an_answer_on_which_the_verifier_fails_is_compared_once_and_never_ends_the_sampling(tmp_path: Path) -> None:
    rule = StoppingRule(Band(attempts=16))
    policy, (problem,) = Summing(), problems(1)
    store = AttemptStore(tmp_path, KEY)
    with MathJudge(1, limit_s=0.01) as judge:
        sampler = Sampler(policy, store, judge, rule)

        async def run() -> list[SampledProblem]:
            return [one async for one in sampler.run([SamplingRequest(problem, "7")])]

        (sampled,) = asyncio.run(run())
        assert judge._pool.restarts == 1
    store.close()
    assert [sampled.verdicts[index].outcome.value for index in range(16)] == ["wrong", "timeout"] * 8
    assert decisions([sampled], rule)["reason"].to_list() == ["verifier_failed"]
    assert sampler.progress.dropped == {"verifier_failed": 1}


class Refusing(Drawn):
    """Refuses one attempt at every fifth problem, whenever it is asked."""

    async def answer(self, problem: PromptRequest, index: int) -> Completion | None:
        completion = await super().answer(problem, index)
        if int(problem.id[1:]) % 5 == 2 and index == 3:
            raise RequestRefused("400", f"the server refuses {problem.id}")
        return completion


@pytest.mark.slow
def test_refused_problems_end_alike_however_quick_their_attempts_are(judge: MathJudge, tmp_path: Path) -> None:
    rule, budget = StoppingRule(Band()), FailureBudget(1.0, 40, "max_failed")
    whole, _ = sample(Drawn(), tmp_path / "whole", rule, problems(), judge=judge)
    found = []
    policies = {"slow": Refusing(0.002, in_flight=4), "quick": Refusing(0.001, in_flight=64), "instant": Refusing(0.0)}
    for name, policy in policies.items():
        policy.instant = name == "instant"
        sampled, sampler = sample(policy, tmp_path / name, rule, problems(), budget=budget, judge=judge)
        found.append([(one.problem, one.verdicts, one.is_decided, str(one.refused)) for one in sampled])
        refused = [one for one in sampled if one.refused is not None]
        assert {one.problem for one in refused} <= {f"p{number:02}" for number in range(2, 40, 5)}
        assert sampler.progress.dropped["sampling_failed"] == len(refused) > 4
        assert all(one.refused and one.refused[0] == 3 and set(one.verdicts) == {0, 1, 2} for one in refused)
    assert found[0] == found[1] == found[2]
    for one, undisturbed in zip(sampled, whole, strict=True):  # who stops before the refused attempt is not touched
        assert one.refused is not None or one.verdicts == undisturbed.verdicts
    (noted,) = (tmp_path / "slow").glob("*/refused.jsonl")
    assert {json.loads(line)[0] for line in noted.read_text().splitlines()} == {one.problem for one in refused}
    again, _ = sample(Drawn(), tmp_path / "slow", rule, problems(), judge=judge)
    assert [(one.verdicts, one.is_decided, one.refused) for one in again] == [
        (one.verdicts, one.is_decided, None) for one in whole
    ]


def test_without_a_budget_a_refusal_ends_sampling_and_loses_nothing(judge: MathJudge, tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="problems were refused"):
        sample(Refusing(0.001), tmp_path, StoppingRule(Band()), problems(), judge=judge)
    store = AttemptStore(tmp_path, KEY)
    assert store.height > 0
    assert (store.folder / "refused.jsonl").exists()
    store.close()


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


def alarms(policy: Drawn, folder: Path, count: int = 40) -> list[tuple[int, int, str]]:
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
    ((judged, attempts, sentence),) = alarms(Rambling(), tmp_path)
    assert MIN_RESPONSES <= judged <= attempts < 5 * MIN_RESPONSES
    assert f"{judged} of the first {judged} responses (100 %) are of no use (cut off " in sentence
    assert "raise max_tokens. One of them, problem p" in sentence
    assert sentence.endswith(': "I do not know how to do this"')


def test_a_small_stage_is_told_at_its_end_and_less_than_half_is_no_alarm(tmp_path: Path) -> None:
    ((judged, attempts, _),) = alarms(Rambling(), tmp_path / "small", count=2)
    assert attempts == judged == 32
    policy = Rambling()
    policy.useless = 0.4
    assert alarms(policy, tmp_path / "half") == []


def tally_of(useless: int, judged: int) -> ResponseTally:
    tally = ResponseTally()
    for number in range(judged):
        tally.add(f"p{number}", 0, has_answer=number >= useless, is_cut_off=False)
    return tally


def test_the_limit_narrows_with_the_number_of_responses_and_a_majority_is_likely_after_a_tenth() -> None:
    for useless, judged, alarming in ((24, 32, False), (25, 32, True), (60, 100, False), (66, 100, True)):
        assert tally_of(useless, judged).is_alarming is alarming, (useless, judged)
    tally = tally_of(56, 100)
    assert not tally.is_alarming
    assert [tally.is_likely(expected) for expected in (None, 1001.0, 1000.0)] == [False, False, True]
