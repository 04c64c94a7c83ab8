"""How the problems of a published set were asked, so that a trainer elsewhere asks the same way.

`asked.json` holds a live policy's prompt, worked examples, thinking tags and form of answers. A set of recorded
attempts has no such file, as their prompt is not known; its problems are asked by `SOLVE`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from curation.config.policies import LiveModel, PromptFile
from curation.prompts.base import Prompt
from curation.prompts.solving import SOLVE, solving_prompt
from curation.records import SourceError
from curation.response_formats import ANY, checked_format
from curation.thinking import OPEN, ThinkingTags

FILE = "asked.json"


@dataclass(frozen=True, slots=True)
class Asked:
    """The prompt of a set, the tags that its policy thinks in, and the form in which its answers are read."""

    prompt: Prompt = SOLVE
    thinking: str | tuple[str, str] = OPEN
    response_format: str = ANY


def asked_by(policy: LiveModel, response_format: str) -> str:
    """Return what `FILE` holds, as JSON: which prompt a live policy was given."""
    named = {"text": policy.prompt.text} if isinstance(policy.prompt, PromptFile) else policy.prompt
    examples = [[one.statement, one.response] for one in policy.examples]
    asked = {"prompt": named, "thinking": policy.thinking, "examples": examples, "response_format": response_format}
    return json.dumps(asked, indent=1, ensure_ascii=False) + "\n"


def read_asked(folder: Path) -> Asked:
    """Return how the problems of a published set were asked; the defaults if it has no `asked.json`.

    Raises:
        SourceError: the file is damaged.
    """
    path = folder / FILE
    try:
        return _asked(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        return Asked()
    except (KeyError, TypeError, ValueError) as error:
        raise SourceError(f"{path} cannot be read ({error}); publish the set again.") from error


def _asked(content: Mapping[str, Any]) -> Asked:
    named, tags = content["prompt"], content["thinking"]
    prompt = PromptFile(file=FILE, text=named["text"]) if isinstance(named, dict) else named
    thinking = tags if isinstance(tags, str) else (str(tags[0]), str(tags[1]))
    examples = [(str(statement), str(response)) for statement, response in content["examples"]]
    chosen = solving_prompt(prompt, ThinkingTags.of(thinking), examples)
    return Asked(chosen, thinking, checked_format(content["response_format"]))
