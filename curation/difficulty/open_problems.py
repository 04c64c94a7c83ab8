"""A problem in the sampler's hands: `SamplingRequest` before, `OpenProblem` meanwhile, `SampledProblem` afterwards.

The records of `curation.difficulty.sampling`, which says what becomes of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from curation.difficulty.early_stopping import OutcomeTally, StoppingRule
from curation.records import Completion, PromptRequest, RequestRefused
from curation.verify.math_judge import Verdict


@dataclass(frozen=True, slots=True)
class SamplingRequest:
    """A problem to sample: what the policy sees, what its answers are compared with, and what is stored already.

    ``stored_answers`` maps an index to the final answer of the stored attempt. ``letter`` is as in `JudgeTask`;
    ``rule`` stops this problem, the sampler's where absent.

    Example: ``SamplingRequest(PromptRequest("5f0c2ab19e7d00aa11bb", "1 + 1?", Domain.MATH, "en"), "2")``
    """

    request: PromptRequest
    reference: str
    letter: str | None = None
    stored_answers: Mapping[int, str | None] = field(default_factory=dict)
    rule: StoppingRule | None = None


@dataclass(frozen=True, slots=True)
class SampledProblem:
    """A problem that has its attempts. ``verdicts`` maps the indices up to the stop, less those that could not be had.

    ``is_decided`` says that sampling stopped of its own accord: there may be more attempts to be had. ``refused`` is
    the index at which it ended because that attempt was refused, and why.
    """

    problem: str
    reference: str
    verdicts: Mapping[int, Verdict]
    is_decided: bool
    new_attempts: int  # attempts made for it now, needed or not
    new_tokens: int  # … and their tokens, as far as the policy counts them
    refused: tuple[int, RequestRefused] | None = None


@dataclass(slots=True, eq=False)
class OpenProblem:
    """A problem from its first request to its stop: what was asked, what came, what was judged."""

    sampling_request: SamplingRequest
    rule: StoppingRule
    tally: OutcomeTally = field(default_factory=OutcomeTally)
    next: int = 0  # the first index that has not been asked for
    limit: int = 0  # indices below it are needed whatever comes
    answers: dict[int, str | None] = field(default_factory=dict)  # final answers, not judged yet
    missing: set[int] = field(default_factory=set)  # indices that the policy does not have
    refused: dict[int, RequestRefused] = field(default_factory=dict)  # indices that will not be answered
    cut_off: set[int] = field(default_factory=set)  # those that ended for want of room
    running: dict[int, asyncio.Task[Completion | None]] = field(default_factory=dict)
    verdict_by_answer: dict[str | None, Verdict] = field(default_factory=dict)
    verdicts: dict[int, Verdict] = field(default_factory=dict)
    is_judging: bool = False
    is_stopped: bool = False
    new_attempts: int = 0
    new_tokens: int = 0

    @property
    def request(self) -> PromptRequest:
        """Return the problem as the policy sees it."""
        return self.sampling_request.request

    def take(self, limit: int) -> int | None:
        """Return the next index below the limit that is still to be asked for, and count it as asked for."""
        while self.next < limit:
            index = self.next
            self.next += 1
            if index not in self.answers:
                return index
        return None
