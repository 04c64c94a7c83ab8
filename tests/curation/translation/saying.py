"""A policy whose responses a function says, which remembers what it was asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

from curation.records import AttemptKey, Completion, PromptRequest


class Saying:
    """A policy that answers by ``says``: of a request and an attempt's index, the text or None."""

    def __init__(self, prompt: str, says: Callable[[PromptRequest, int], str | None]) -> None:
        self.key = AttemptKey("saying@1", prompt, "s")
        self.in_flight = 8
        self.asked: list[tuple[PromptRequest, int]] = []
        self._says = says

    @property
    def about(self) -> Mapping[str, Any]:
        """Return nothing."""
        return {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None

    async def answer(self, problem: PromptRequest, index: int) -> Completion | None:
        """Return what is said."""
        self.asked.append((problem, index))
        said = self._says(problem, index)
        return Completion(said, "stop", 9) if said is not None else None
