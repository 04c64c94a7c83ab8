"""What the product would ask a model, written down for somebody to answer, and the answers read.

A prompt is a file, ``HASH.txt``: the chat as the product sends it, named by its content. An answer is a file of the
same name in another folder, further votes are ``HASH.2.txt`` and so on. Answers come back through the product's own
recorded policy (`open_policy`).
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from curation.config import RecordedModel
from curation.prompts import Prompt, plain_text
from curation.records import PromptRequest
from flows.run.policies import open_policy

NAME = "somebody@recorded"


def write_prompt(folder: Path, prompt: Prompt, request: PromptRequest) -> Path:
    """Write a prompt down; return its file."""
    folder.mkdir(parents=True, exist_ok=True)
    stem, text = _named(prompt, request)
    file = folder / f"{stem}.txt"
    file.write_text(text, encoding="utf-8", errors="surrogatepass")
    return file


def answers_to(
    requests: Sequence[PromptRequest], prompt: Prompt, folder: Path, scratch: Path, count: int = 9
) -> dict[str, list[str]]:
    """Return a folder's answers to requests of one domain, by the request's id, at most ``count`` each.

    Args:
        scratch: a folder for the file of attempts that the policy reads.
    """
    distinct = list({request.id: request for request in requests}.values())
    lines = [
        json.dumps({"problem": request.statement, "text": file.read_text(encoding="utf-8")})
        for request in distinct
        for file in sorted(folder.glob(f"{_named(prompt, request)[0]}*.txt"))
    ]
    if not lines:
        return {}
    attempts = scratch / "answers.jsonl"
    attempts.write_text("\n".join(lines) + "\n", encoding="utf-8")
    columns = {"problem": "problem", "text": "text", "domain": str(distinct[0].domain)}
    settings = RecordedModel.model_validate(
        {"kind": "recorded", "name": NAME, "path": str(attempts.absolute()), "columns": columns}
    )

    async def ask() -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        async with open_policy(settings, scratch, prompt) as policy:
            for request in distinct:
                completions = [await policy.answer(request, index) for index in range(count)]
                found[request.id] = [one.text for one in completions if one is not None and one.text]
        return found

    return asyncio.run(ask())


def _named(prompt: Prompt, request: PromptRequest) -> tuple[str, str]:
    """Return what a request's file is called, and its text."""
    text = plain_text(prompt.messages(request))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16], text
