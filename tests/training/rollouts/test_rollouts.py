"""An attempt's way through form, verifier and reward; and back from a checkpoint."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import pytest

from curation.policies.completions import TokenCompletion
from curation.prompts import PLAIN, SOLVE
from curation.records import Domain, Outcome, PromptRequest
from training.config import RewardSettings
from training.embedded_model import WEIGHTS
from training.optimisation.model import load_tokenizer
from training.rollouts.rollouts import Rollout, RolloutRunner, decode_rollout, encode_rollout
from training.rollouts.tasks import TrainingTask
from training.rollouts.verifiers import Verifiers

TASK = TrainingTask(PromptRequest("p1", "What is 2 + 2?", Domain.MATH, "en"), "4")
REWARDS = RewardSettings(max_length=100, language=0.0)


@pytest.fixture(scope="module")
def judges() -> Iterator[Verifiers]:
    with Verifiers([TASK], 1, REWARDS) as opened:
        yield opened


def said(text: str) -> TokenCompletion:
    return TokenCompletion((1, 2), (5, 6, 2), (-0.1, -0.2, -0.3), (0, 0, 1), text, "stop")


def judged(judges: Verifiers, text: str, task: TrainingTask = TASK) -> Rollout:
    rollouts = RolloutRunner(load_tokenizer(WEIGHTS), PLAIN, judges, REWARDS, None, seed=1)
    return asyncio.run(rollouts.verify(task, said(text), group=0))


def test_right_wrong_and_a_broken_form_that_never_reaches_the_verifier(judges: Verifiers) -> None:
    right = judged(judges, "<think>2 + 2 = 4</think>The answer is \\boxed{4}.")
    assert right.outcome is Outcome.CORRECT
    assert right.reward.total == pytest.approx(1.0)
    assert decode_rollout(json.loads(json.dumps(encode_rollout(right)))) == right
    wrong = judged(judges, "<think>?</think>The answer is \\boxed{5}.")
    assert wrong.outcome is Outcome.WRONG
    assert wrong.reward.total == pytest.approx(0.1)
    broken = judged(judges, "The answer is \\boxed{4}.")
    assert (broken.outcome, broken.reward.total) == (None, 0)
    assert "<think>" in broken.method


def test_a_verifier_that_fails_excludes_the_attempt(judges: Verifiers) -> None:
    heavy = TrainingTask(TASK.request, "4")
    found = judged(judges, "<think>?</think>\\boxed{9^{9^{9^{9}}}!}", heavy)
    assert found.outcome in (Outcome.TIMEOUT, Outcome.BROKEN, Outcome.WRONG)
    assert found.reward.excluded == (found.outcome is not Outcome.WRONG)
    if found.reward.excluded:
        assert found.row()["reward"] == {}


def test_the_prompt_is_the_one_that_sampling_uses(judges: Verifiers) -> None:
    tokenizer = load_tokenizer(WEIGHTS)
    plain = RolloutRunner(tokenizer, PLAIN, judges, REWARDS, None, seed=1).prompt_ids(TASK)
    assert tokenizer.decode(list(plain)).endswith("What is 2 + 2?\n")
    tokenizer.chat_template = "{% for m in messages %}{{ m['role'] }}:{{ m['content'] }}\n{% endfor %}"
    whole = tokenizer.decode(list(RolloutRunner(tokenizer, SOLVE, judges, REWARDS, None, seed=1).prompt_ids(TASK)))
    assert whole.startswith("system:")
    assert "\\boxed{}" in whole
