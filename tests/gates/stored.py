"""Answers of a model that figures rest on, committed under `answers/` and found by the prompt's hash.

A file `answers/NAME.jsonl` holds the answers to one kind of prompt, a JSON line each:

    {"prompt": "16 hex digits", "text": "the answer", "model": "who answered", "date": "2026-11-28"}

Prompts are not stored: they are rendered from the shared data by the product's own code, so a changed prompt has
another hash, and what rests on its answer is stale until it is asked again (`python -m tests.gates.ask`). Several
lines with one hash are several votes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

from curation.prompts import Prompt, plain_text
from curation.records import PromptRequest
from tests.gates.base import StaleError

FOLDER = Path(__file__).with_name("answers")

Asked = list[tuple[Prompt, PromptRequest]]
PROMPTS: dict[str, Callable[[], Asked]] = {}
"""By the name of a file of answers: what is asked today."""


def prompts(name: str) -> Callable[[Callable[[], Asked]], Callable[[], Asked]]:
    """Register a function that returns all prompts behind `answers/NAME.jsonl`."""

    def register(offer: Callable[[], Asked]) -> Callable[[], Asked]:
        PROMPTS[name] = offer
        return offer

    return register


def rendered(prompt: Prompt, request: PromptRequest) -> str:
    """Return the chat as the product sends it."""
    return plain_text(prompt.messages(request))


def prompt_hash(text: str) -> str:
    """Return the key of a rendered prompt, 16 hex digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


@cache
def answers(name: str) -> dict[str, list[str]]:
    """Return the texts of `answers/NAME.jsonl` by the prompt's hash, in the order of the file."""
    found: dict[str, list[str]] = {}
    file = FOLDER / f"{name}.jsonl"
    if file.exists():
        for line in file.read_text(encoding="utf-8").rstrip("\n").split("\n"):
            row = json.loads(line)
            found.setdefault(row["prompt"], []).append(row["text"])
    return found


def answers_to(name: str, texts: Iterable[str]) -> list[list[str]]:
    """Return the stored answers to each rendered prompt, in order.

    Raises:
        StaleError: some prompt has no answer.
    """
    stored, keys = answers(name), [prompt_hash(text) for text in texts]
    if missing := {key for key in keys if key not in stored}:
        raise StaleError(f"{len(missing):,} of {len(set(keys)):,} prompts have no answer in answers/{name}.jsonl")
    return [stored[key] for key in keys]
