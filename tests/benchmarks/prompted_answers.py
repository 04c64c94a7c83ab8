"""What the product's stage would ask a model for a package, written down for somebody to answer, and the answers read.

A prompt is a file, ``HASH.txt``: the chat as the stage sends it, named by its content. An answer to it is a file of the
same name in another folder. Answers come back through the product's own recorded policy (`open_policy`).
"""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import json
from pathlib import Path

from curation.config import RecordedPolicy
from curation.prompts import plain_text
from curation.prompts.testing import TESTING
from curation.records import PromptRequest, problem_id
from flows.run.policies import open_policy
from flows.run.run_folder import Run
from flows.stages.generators import question_of
from flows.stages.units import Unit

NAME = "somebody@recorded"


def request_of(run: Run, unit: Unit) -> PromptRequest:
    """Return what the stage asks of a problem, under the id by which recorded answers are found."""
    request = question_of(unit, run.recipe.code.test_generation)
    return dataclasses.replace(request, id=problem_id(request.statement, domain=request.domain))


def prompt_file(request: PromptRequest) -> tuple[str, str]:
    """Return the name of a request's file, and the prompt."""
    text = plain_text(TESTING.messages(request))
    return f"{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}.txt", text


def write_prompt(folder: Path, request: PromptRequest) -> Path:
    """Write a prompt down; return its file."""
    folder.mkdir(parents=True, exist_ok=True)
    name, text = prompt_file(request)
    (folder / name).write_text(text, encoding="utf-8", errors="surrogatepass")
    return folder / name


def answers_to(request: PromptRequest, folder: Path, scratch: Path, count: int) -> list[str]:
    """Return the answers of a folder to a request, at most ``count``: as the recorded policy gives them.

    Args:
        scratch: a folder for the file of attempts that the policy reads.
    """
    name, _ = prompt_file(request)
    if not (folder / name).is_file():
        return []
    text = (folder / name).read_text(encoding="utf-8")
    attempts = scratch / f"{name}.answers.jsonl"
    attempts.write_text(json.dumps({"problem": request.statement, "text": text}) + "\n")
    columns = {"problem": "problem", "text": "text", "domain": str(request.domain)}
    settings = RecordedPolicy.model_validate(
        {"kind": "recorded", "name": NAME, "path": str(attempts.absolute()), "columns": columns}
    )

    async def ask() -> list[str]:
        async with open_policy(settings, scratch, TESTING) as policy:
            completions = [await policy.answer(request, index) for index in range(count)]
        return [one.text for one in completions if one is not None and one.text]

    return asyncio.run(ask())
