"""The language bonus on a policy of two numbers: real sentences, the real reward, advantages and loss."""

from __future__ import annotations

from itertools import islice
from random import Random

import pytest
import torch

from curation.languages.mixing import consistent
from curation.records import Domain, Outcome
from curation.thinking import split_response
from tests.training.two_languages import OTHER, exercises, thought_in
from training.config import RewardSettings
from training.objectives.base import ObjectiveInputs
from training.objectives.credit import advantages, filter_group, token_weights
from training.objectives.grpo import GrpoSettings, grpo_loss
from training.rewards import Reward, RewardInputs, compute_reward

GROUP, GROUPS, STEPS = 8, 6, 30


def test_every_wording_is_told_apart() -> None:
    random = Random(1)
    for one in islice(exercises(1, held_out=False), 300):
        for lang in ("en", "fr"):
            parts = split_response(thought_in(one, lang, random))
            same = consistent(one.statement, parts.thoughts, parts.answer or "")
            assert same.consistent is (lang == one.lang), (one.statement, same.why)


@pytest.mark.parametrize("seed", [1, 2])
def test_thoughts_move_into_the_users_language_with_the_bonus_and_stay_without(seed: int) -> None:
    on, right_on = trained(seed, RewardSettings(length_penalty=0.0))
    off, right_off = trained(seed, RewardSettings(length_penalty=0.0, language=0.0))
    assert min(on) > 0.8
    assert all(0.3 < share < 0.7 for share in off)
    assert right_on == right_off == 0.5


def trained(seed: int, settings: RewardSettings) -> tuple[list[float], float]:
    """How likely thoughts are in the user's language after training, in English and French; the share that is right.

    The policy draws the thoughts' language, by one logit for each language of the problem; half of the attempts are
    right, whatever the language.
    """
    logits = torch.zeros(2, requires_grad=True)
    optimizer = torch.optim.SGD([logits], lr=8.0)
    random, problems = Random(seed), exercises(seed, held_out=False)
    ends = [Outcome.CORRECT, Outcome.WRONG]
    right = total = 0
    for _ in range(STEPS):
        places, own, rewards, groups = [], [], [], []
        for group, one in enumerate(islice(problems, GROUPS)):
            place = ("en", "fr").index(one.lang)
            drawn = sorted(random.random() < torch.sigmoid(logits[place]).item() for _ in range(GROUP))
            texts = [thought_in(one, one.lang if chosen else OTHER[one.lang], random) for chosen in drawn]
            first = random.randrange(2)  # right and wrong take turns, so they are as common in either language
            outcomes = (ends[first:] + ends[:first]) * (GROUP // 2)
            earned = [
                compute_reward(RewardInputs(Domain.MATH, one.statement, text, 40, outcome), settings, consistent)
                for text, outcome in zip(texts, outcomes, strict=True)
            ]
            assert filter_group(earned, "reward").drop_reason is None
            right += sum(one.correct for one in earned)
            total += GROUP
            places += [place] * GROUP
            own += drawn
            rewards += earned
            groups += [group] * GROUP
        _step(logits, optimizer, places, own, rewards, groups)
    return torch.sigmoid(logits).tolist(), right / total


def _step(
    logits: torch.Tensor,
    optimizer: torch.optim.Optimizer,
    places: list[int],
    own: list[bool],
    rewards: list[Reward],
    groups: list[int],
) -> None:
    """One step of the paper's objective; an attempt is one token long."""
    group = torch.tensor(groups)
    sign = torch.where(torch.tensor(own), 1.0, -1.0)
    logprobs = torch.nn.functional.logsigmoid(sign * logits[torch.tensor(places)])
    inputs = ObjectiveInputs(
        logprobs=logprobs,
        generator_logprobs=logprobs.detach(),
        sequence_index=torch.arange(len(groups)),
        advantages=advantages(torch.tensor([[one.total] for one in rewards], dtype=torch.float64), group, "minibatch"),
        token_weights=token_weights(torch.ones(len(groups)), group, "group"),
    )
    loss, _ = grpo_loss(inputs, GrpoSettings())
    optimizer.zero_grad()
    torch.autograd.backward(loss)
    optimizer.step()
