"""A task with a prefix: it is prompt, the text begins with it, and one response is judged."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace

import pytest

from curation.policies.chat_templates import folder_stop_tokens
from curation.policies.completions import TokenCompletion
from curation.prompts import PLAIN
from curation.records import Domain, Outcome, PromptRequest
from curation.thinking import THINK
from training.config import RewardSettings
from training.embedded_model import WEIGHTS
from training.optimisation.model import load_tokenizer
from training.rollouts.rollouts import RolloutRunner, render_prompt
from training.rollouts.tasks import TrainingTask
from training.rollouts.verifiers import Verifiers
from training.stored.tokens import OTHER_BEGINNING, TokenWriter

BARE = TrainingTask(PromptRequest("p1", "What is 47 + 38?", Domain.MATH, "en"), "85")
BEGUN = replace(BARE, request=replace(BARE.request, prefix="<think>47+38:7+8=15;"))
REST = "4+3+1=8;85</think>The answer is \\boxed{85}."
REWARDS = RewardSettings(max_length=60, length_cache=20, language=0.0)
TOKENIZER = load_tokenizer(WEIGHTS)


class Says:
    """A generator that always says the same."""

    async def generate(self, prompt_ids: tuple[int, ...], *, seed: int, max_tokens: int) -> TokenCompletion:
        del seed, max_tokens
        ids = (*TOKENIZER.encode(REST, add_special_tokens=False), *folder_stop_tokens(WEIGHTS, TOKENIZER).ids[:1])
        return TokenCompletion(prompt_ids, ids, (-0.1,) * len(ids), (0,) * len(ids), REST, "stop")


@pytest.fixture(scope="module")
def runner() -> Iterator[RolloutRunner]:
    with Verifiers([BEGUN], 1, REWARDS) as judges:
        yield RolloutRunner(TOKENIZER, PLAIN, judges, REWARDS, None, seed=1)


def test_the_prefix_is_prompt_and_the_rest_is_what_gets_loss(runner: RolloutRunner) -> None:
    completion = asyncio.run(runner.generate(Says(), BEGUN, 0, 0, 60))
    bare = render_prompt(TOKENIZER, PLAIN, BARE)
    assert completion.prompt_ids[: len(bare)] == bare
    assert TOKENIZER.decode(list(completion.prompt_ids[len(bare) :])) == BEGUN.request.prefix
    assert completion.prompt_ids == render_prompt(TOKENIZER, PLAIN, BEGUN)
    assert completion.text == BEGUN.request.prefix + REST


def test_format_and_verifier_see_one_response_and_length_counts_new_tokens(runner: RolloutRunner) -> None:
    completion = asyncio.run(runner.generate(Says(), BEGUN, 0, 0, 60))
    rollout = asyncio.run(runner.verify(BEGUN, completion, 0))
    assert rollout.outcome is Outcome.CORRECT
    assert rollout.reward.format > 0  # the opening tag is the prefix's
    assert rollout.tokens == len(completion.token_ids) < len(BEGUN.request.prefix + REST)
    over = (rollout.tokens - 40) / 20
    assert rollout.reward.length == pytest.approx(-REWARDS.length_penalty * min(max(over, 0.0), 1.0))
    alone = asyncio.run(runner.verify(BARE, replace(completion, text=REST), 0))
    assert alone.outcome is None
    assert alone.reward.total == 0


def test_without_a_prefix_prompts_are_what_they_were() -> None:
    bare = render_prompt(TOKENIZER, PLAIN, BARE)
    assert TOKENIZER.decode(list(bare)).endswith("What is 47 + 38?\n")
    assert render_prompt(TOKENIZER, PLAIN, replace(BARE, request=replace(BARE.request, prefix=""))) == bare


def test_stored_attempts_of_the_task_begin_with_its_prefix(runner: RolloutRunner) -> None:
    writer = TokenWriter(TOKENIZER, folder_stop_tokens(WEIGHTS, TOKENIZER), THINK)
    row = {"text": BEGUN.request.prefix + REST, "finish": "stop"}
    found = writer.completion(runner.begun(BEGUN), row)
    assert isinstance(found, TokenCompletion)
    assert TOKENIZER.decode(list(found.token_ids[:-1])) == REST
    assert (
        writer.completion(runner.begun(BEGUN), row | {"text": "<think>another way</think>\\boxed{85}"})
        == OTHER_BEGINNING
    )
