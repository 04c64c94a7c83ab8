"""Any policy as a translator: the prompt is written out before the policy sees it.

Live policies fill the prompt that their settings name. Opened with ``prompt = "plain"`` they send the statement as it
is, so a translator hands them the whole request as the statement. `RenderedPrompt` does that and files what comes back
under the translating prompt's version; recorded translations take the request as it is and need no wrapping.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

from curation.prompts.base import Prompt
from curation.prompts.translating import TRANSLATE
from curation.records import AttemptKey, Completion, Policy, PromptRequest


class RenderedPrompt:
    """A policy that uses the plain prompt, asked with another prompt. Enters and leaves the policy with itself.

    Example: ``async with RenderedPrompt(open_policy(settings, folder)) as policy: …``
    """

    def __init__(self, policy: Policy, prompt: Prompt = TRANSLATE) -> None:
        self._policy = policy
        self._prompt = prompt
        self.key = AttemptKey(policy.key.policy, prompt.version, policy.key.sampling)
        self.in_flight = policy.in_flight

    @property
    def about(self) -> Mapping[str, Any]:
        """Return the policy's own description, with the prompt added."""
        return {**self._policy.about, "prompt": self._prompt.version, "system": self._prompt.system}

    async def __aenter__(self) -> Self:
        await self._policy.__aenter__()
        self.key = AttemptKey(self._policy.key.policy, self._prompt.version, self._policy.key.sampling)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._policy.__aexit__(kind, error, trace)

    async def answer(self, problem: PromptRequest, index: int) -> Completion | None:
        """Write the request out with the prompt, and return the policy's answer to it."""
        written = "\n\n".join(message["content"] for message in self._prompt.messages(problem))
        return await self._policy.answer(replace(problem, statement=written), index)
