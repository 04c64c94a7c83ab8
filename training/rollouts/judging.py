"""Compute a response's reward, for both engines."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from curation.records import Outcome
from curation.verify.math_judge import Verdict
from training.config import RewardSettings
from training.rewards import Reward, RewardInputs, compute_reward, format_error

Ask = Callable[[str], Awaitable[Verdict]]
"""A judge of one problem: from a response in the house's form to its verdict."""


@dataclass(frozen=True, slots=True)
class Assessed:
    """A reward and its reason; ``outcome`` is None if the format was broken."""

    reward: Reward
    outcome: Outcome | None
    method: str
    answer: str | None


async def assess(ask: Ask, inputs: RewardInputs, settings: RewardSettings) -> Assessed:
    """Return the reward of a response, which has no outcome yet; one that breaks the format is not judged."""
    failure = format_error(inputs.text, inputs.domain, inputs.tags, inputs.finish)
    verdict = await ask(inputs.tags.house_form(inputs.text)) if failure is None else None
    if verdict is not None:
        inputs = replace(inputs, outcome=verdict.outcome, test_pass_share=verdict.passed)
    if settings.language or settings.components:  # identifying a language takes its time, and a component may
        reward = await asyncio.to_thread(compute_reward, inputs, settings)
    else:
        reward = compute_reward(inputs, settings)
    if verdict is None:
        return Assessed(reward, None, str(failure), None)
    return Assessed(reward, verdict.outcome, verdict.method, verdict.answer)
