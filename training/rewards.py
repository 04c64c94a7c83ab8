"""The reward of a rollout: format, correctness, length and language (paper, section 2.2).

A rollout that breaks the format gets 0 and needs no verdict. In code, the first block must be the program.

Invariant: TIMEOUT and BROKEN give an excluded `Reward` without a total, never 0.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from curation.languages.identification import consistent
from curation.records import Domain, Outcome
from curation.response_formats import BOXED
from curation.thinking import THINK, ThinkingTags, split_response
from curation.verify.extraction import extract_answer
from curation.verify.math_judge import Verdict
from curation.verify.programs.extraction import code_blocks
from training.config import RewardSettings
from training.own_rewards import own_reward

FORMAT, CORRECTNESS = 0.1, 0.9
"""Rewards for format and correctness, as in the paper."""

COMPONENTS = ("format", "correctness", "length", "language", "own")
"""Components of a `Reward`; `own` is the user's."""


@dataclass(frozen=True, slots=True)
class RewardInputs:
    r"""A rollout with the verifier's verdict.

    ``outcome`` may be None with a broken format; ``test_pass_share`` is of a program; ``finish`` is ``stop``,
    ``length``, or None if unknown; ``row`` is the problem's id.

    Example: ``RewardInputs(Domain.MATH, "What is 2 + 2?", "<think>…</think> \\boxed{4}", 31, Outcome.CORRECT)``
    """

    domain: Domain
    problem: str
    text: str
    tokens: int
    outcome: Outcome | None
    test_pass_share: float | None = None
    tags: ThinkingTags = THINK
    finish: str | None = None
    row: str = ""


@dataclass(frozen=True, slots=True)
class Reward:
    """The components of a reward, or why there are none.

    Example: ``Reward(format=0.1, correctness=0.9, length=-0.05, language=0.1, correct=True).total == 1.05``
    """

    format: float = 0.0
    correctness: float = 0.0
    length: float = 0.0
    language: float = 0.0
    own: float = 0.0
    correct: bool = False
    format_error: str | None = None
    excluded_by: str | None = None

    @property
    def excluded(self) -> bool:
        """Return whether to leave the rollout out of training."""
        return self.excluded_by is not None

    @property
    def total(self) -> float:
        """Return the sum of the components; raise ValueError if excluded."""
        if self.excluded_by is not None:
            raise ValueError(f"a rollout excluded by {self.excluded_by} has no reward; leave it out")
        return self.format + self.correctness + self.length + self.language + self.own

    def components(self) -> dict[str, float]:
        """Return the components and the total; empty if excluded."""
        if self.excluded:
            return {}
        return {name: float(getattr(self, name)) for name in (*COMPONENTS, "total")}


def compute_reward(inputs: RewardInputs, settings: RewardSettings) -> Reward:
    """Compute the reward of a rollout (paper, section 2.2)."""
    failure = format_error(inputs.text, inputs.domain, inputs.tags, inputs.finish)
    if failure is not None:
        return Reward(format_error=failure)
    if inputs.outcome is None:
        raise ValueError("a rollout that keeps the format needs a verdict before it is rewarded")
    if inputs.outcome in (Outcome.TIMEOUT, Outcome.BROKEN):
        return Reward(excluded_by=inputs.outcome.value)
    if inputs.outcome is Outcome.NO_ANSWER and inputs.domain is not Domain.CODE:
        return Reward(format_error="no answer in the form asked for")
    correct = inputs.outcome is Outcome.CORRECT
    share = float(correct)
    if settings.code == "proportional" and inputs.domain is Domain.CODE:
        if inputs.test_pass_share is None:
            raise ValueError("code = proportional needs the share of tests passed")
        share = inputs.test_pass_share
    language = 0.0
    if settings.language:  # of problem, thoughts and answer
        response = split_response(inputs.tags.house_form(inputs.text))
        answer = response.answer or ""
        thoughts = response.thoughts if inputs.tags.are_used else answer
        language = settings.language * consistent(inputs.problem, thoughts, answer, strict=True)
    return Reward(
        format=FORMAT,
        correctness=CORRECTNESS * share,
        length=length_penalty(inputs.tokens, settings),
        language=language,
        own=own_reward(settings.components, inputs.problem, inputs.text, correct, inputs.row),
        correct=correct,
    )


def length_penalty(tokens: int, settings: RewardSettings) -> float:
    """Compute Eq. 1 of the paper: 0 up to l_max - l_cache tokens, then linearly to -`length_penalty` at l_max.

    Example: with ``max_length=1000, length_cache=200``: 800 tokens 0, 900 tokens -0.05, from 1000 tokens -0.1.
    """
    over = tokens - (settings.max_length - settings.effective_length_cache)
    return -settings.length_penalty * min(max(over / settings.effective_length_cache, 0.0), 1.0)


def format_error(
    text: str,
    domain: Domain,
    tags: ThinkingTags = THINK,
    finish: str | None = None,
    response_format: str = BOXED,
) -> str | None:
    """Return the fault of a rollout's format, or None (paper, section 2.2).

    It must begin with the opening tag and have each tag once, unless tags are not used; math needs an answer in the
    response format, code a Markdown block that names its language, which ``finish`` = `stop` closes.
    """
    if tags.are_used:
        if not text.startswith(tags.open):
            return f"does not start with {tags.open}"
        if text.count(tags.open) != 1 or text.count(tags.close) != 1:
            return f"{text.count(tags.open)} {tags.open} and {text.count(tags.close)} {tags.close}"
    text = tags.house_form(text)
    if domain is Domain.CODE:
        blocks = code_blocks(text, finished=finish == "stop")
        if not blocks:
            return "no finished code block"
        return None if any(block.name for block in blocks) else "no code block names its language"
    if extract_answer(text, response_format, finish) is not None:
        return None
    answer = "boxed answer" if response_format == BOXED else f"answer in the form {response_format}"
    return f"no {answer} after {tags.close}" if tags.are_used else f"no {answer}"


Ask = Callable[[str], Awaitable[Verdict]]
"""Judges a response in the default thinking tags."""


class Assessed(NamedTuple):
    """A reward with its verdict; ``outcome`` is None and ``method`` the fault if the format was broken."""

    reward: Reward
    outcome: Outcome | None
    method: str
    answer: str | None


async def assess(ask: Ask, inputs: RewardInputs, settings: RewardSettings) -> Assessed:
    """Judge a well-formed response, and return its reward."""
    failure = format_error(inputs.text, inputs.domain, inputs.tags, inputs.finish)
    if failure is not None:
        return Assessed(Reward(format_error=failure), None, failure, None)
    verdict = await ask(inputs.tags.house_form(inputs.text))
    judged = replace(inputs, outcome=verdict.outcome, test_pass_share=verdict.passed)
    if settings.language or settings.components:  # both may be slow
        reward = await asyncio.to_thread(compute_reward, judged, settings)
    else:
        reward = compute_reward(judged, settings)
    return Assessed(reward, verdict.outcome, verdict.method, verdict.answer)
