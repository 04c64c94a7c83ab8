"""What live policies share: prompt, key, and attempts' seeds.

Invariants: (problem, index) determines the attempt's seed; whatever else changes a draw changes the key.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Mapping
from typing import Any, Self

from curation.config import LiveModel
from curation.prompts import Prompt
from curation.prompts.solving import prompt_of
from curation.records import AttemptKey, PolicyError, RequestRefused
from curation.thinking import THINK, ThinkingTags

_NOTED = {"kind", "model", "revision", "thinking", "examples", "dtype", "max_model_len"}
"""Settings that the store notes: neither addresses nor names of keys."""


def seed_of(problem: str, index: int) -> int:
    """Return an attempt's 31-bit seed."""
    digest = hashlib.blake2b(f"0|{problem}|{index}".encode(), digest_size=4).digest()
    return int.from_bytes(digest, "big") >> 1


class LivePolicy:
    """A model with one prompt.

    Args:
        name: in the key.
        further: other influences on requests.
    """

    def __init__(self, settings: LiveModel, name: str, prompt: Prompt | None, **further: str) -> None:
        self._live, self._key_name, self._further = settings, name, further
        self._tags = ThinkingTags.of(settings.thinking)
        self._ask_with(prompt)

    @property
    def about(self) -> Mapping[str, Any]:
        """Return what the store notes."""
        noted = self._live.model_dump(mode="json", include=_NOTED)
        prompt = {"prompt": self._prompt.version, "system": self._prompt.system}
        return {**noted, **prompt, **self._live.decoding.model_dump(mode="json")}

    def _require_context(self, where: str, context: int | None, setting: str) -> None:
        """Raise `PolicyError` if an answer leaves no room for a prompt in the context that ``setting`` sets."""
        max_tokens = self._live.decoding.max_tokens
        if context is not None and max_tokens >= context:
            raise PolicyError(
                f"{where}: decoding.max_tokens = {max_tokens} leaves no room for a prompt in its context of {context} "
                f"tokens; lower it, or raise {setting}."
            )

    def _require_room(self, where: str, tokens: int, context: int | None) -> None:
        """Raise `RequestRefused` if a prompt of this length leaves no room for an answer."""
        max_tokens = self._live.decoding.max_tokens
        if context is not None and tokens + max_tokens > context:
            raise RequestRefused(
                "too_long",
                f"{where}: a prompt of {tokens} tokens leaves no room for decoding.max_tokens = {max_tokens} in a "
                f"context of {context} tokens.",
            )

    def asking(self, prompt: Prompt | None) -> Self:
        """Return the same running model with another prompt."""
        clone = copy.copy(self)
        clone._ask_with(prompt)
        return clone

    def _ask_with(self, prompt: Prompt | None) -> None:
        self._prompt = prompt or prompt_of(self._live)
        further = dict(self._further)
        if self._tags != THINK:  # the same tokens are another text
            further["thinking"] = f"{self._tags.open} {self._tags.close}"
        content = "|".join(
            [self._live.decoding.digest(), *(f"{key}={value}" for key, value in sorted(further.items()))]
        )
        sampling = hashlib.blake2b(content.encode(), digest_size=6).hexdigest()
        self.key = AttemptKey(self._key_name, self._prompt.version, sampling)
