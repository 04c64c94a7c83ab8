"""Compute a response's reward, for both engines."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from curation.records import Outcome
from curation.verify.math_judge import Verdict
from training.config import RewardSettings
from training.rewards import LanguageChecker, Reward, RewardInputs, compute_reward, format_error

Ask = Callable[[str], Awaitable[Verdict]]
"""A judge of one problem: from a response in the house's form to its verdict."""


@dataclass(frozen=True, slots=True)
class Assessed:
    """A reward and its reason; ``outcome`` is None if the format was broken."""

    reward: Reward
    outcome: Outcome | None
    method: str
    answer: str | None


async def assess(
    ask: Ask, inputs: RewardInputs, settings: RewardSettings, check_language: LanguageChecker | None
) -> Assessed:
    """Return the reward of a response; one that breaks the format is not judged.

    Args:
        inputs: the response, without an outcome.
        check_language: needed if languages are rewarded.
    """
    failure = format_error(inputs.text, inputs.domain, inputs.tags, inputs.finish)
    verdict = await ask(inputs.tags.house_form(inputs.text)) if failure is None else None
    if verdict is not None:
        inputs = replace(inputs, outcome=verdict.outcome, test_pass_share=verdict.passed)
    if check_language is None and not settings.components:
        reward = compute_reward(inputs, settings)
    else:  # identifying a language takes its time, and a component of the user's own may
        reward = await asyncio.to_thread(compute_reward, inputs, settings, check_language)
    if verdict is None:
        return Assessed(reward, None, str(failure), None)
    return Assessed(reward, verdict.outcome, verdict.method, verdict.answer)
