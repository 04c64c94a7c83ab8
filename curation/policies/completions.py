"""One response with its tokens, from an engine of this process or from a server, and how servers' answers are read.

A server's answer holds its responses as JSON ("choices"): those of chat, of completions and of vLLM's interface for
tokens differ in where they keep text and log-probabilities, and are read here alike.

Not here: asking (`curation.policies.client`, `curation.policies.vllm.engine`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

FINISHED = frozenset({"stop", "length"})
"""How whole responses end: by an end token or a text to stop at, or for want of room."""


@dataclass(frozen=True, slots=True)
class TokenCompletion:
    """One response: per token its id, log-probability (natural, of the distribution drawn from) and weights' version.

    ``logprobs`` and ``versions`` are empty where the engine was not asked for them. ``finish`` is ``stop`` (an end
    token that was drawn is the last of ``token_ids``) or ``length``.

    Example: ``TokenCompletion((1, 40, 201), (258, …, 2), (-0.7, …, -0.0), (3, …, 4), "<think>…", "stop")``
    """

    prompt_ids: tuple[int, ...]
    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    versions: tuple[int, ...]
    text: str
    finish: str


def choice_text(choice: Mapping[str, Any]) -> str:
    """Return the text of a choice; thoughts that the server split off the answer stand in <think> tags before it."""
    if "text" in choice:
        return str(choice["text"])
    message = choice["message"]
    thoughts = message.get("reasoning") or message.get("reasoning_content")
    content = message.get("content") or ""
    return f"<think>\n{thoughts}\n</think>\n{content}" if thoughts else str(content)


def choice_token_ids(choice: Mapping[str, Any]) -> tuple[int, ...] | None:
    """Return the ids of a choice's tokens; None where the server gives none."""
    token_ids = choice.get("token_ids")
    return None if token_ids is None else tuple(token_ids)


def choice_logprobs(choice: Mapping[str, Any]) -> tuple[float, ...] | None:
    """Return the log-probability of each token of a choice; None where the server gives none."""
    logprobs = choice.get("logprobs")
    if not isinstance(logprobs, Mapping):
        return None
    if logprobs.get("token_logprobs") is not None:  # completions
        return tuple(float(value) for value in logprobs["token_logprobs"])
    return tuple(float(token["logprob"]) for token in logprobs.get("content") or ())


def choice_weight_labels(choice: Mapping[str, Any]) -> list[str]:
    """Return the label of the weights that made each token of a choice, from vLLM's spans.

    Raises:
        LookupError: the server names none.
    """
    return [span["version"] for span in choice["weight_versions"] for _ in range(span["start"], span["end"])]
