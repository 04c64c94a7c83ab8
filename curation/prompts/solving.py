"""The prompts for solving problems, also used by the trainer.

`SOLVE` is the paper's system prompt (figure 2) in our words, `DIRECT` is for models without thoughts, `PLAIN` is the
statement alone.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace

from curation.config.policies import LiveModel, PromptFile
from curation.languages.vocabulary import languages
from curation.prompts.base import Prompt, stored_prompt
from curation.records import Domain, PromptRequest
from curation.thinking import CLOSE, OPEN, THINK, ThinkingTags

BOXED = {lang.code: lang.prompts.boxed for lang in languages()}
"""Required form of a math problem's answer, by language (ISO 639-1)."""

FENCED = {lang.code: lang.prompts.fenced for lang in languages()}
"""Required form of a program, by language (ISO 639-1); its blank is the fence's name."""

FENCE = "language"
"""Detail of a `PromptRequest`: the programming language, `python` (default) or `cpp`."""


def answer_instructions(request: PromptRequest) -> str:
    """Return the sentence on the answer's form, by default in English."""
    if request.domain is Domain.CODE:
        return FENCED.get(request.lang, FENCED["en"]).replace("{fence}", request.details.get(FENCE, "python"))
    return BOXED.get(request.lang, BOXED["en"])


def _statement_and_form(request: PromptRequest) -> str:
    return f"{request.statement}\n\n{answer_instructions(request)}"


SOLVE = stored_prompt("solve", _statement_and_form)
DIRECT = stored_prompt("solve_direct", _statement_and_form)
PLAIN = Prompt("plain@1", "", lambda request: request.statement)

SOLVING = {"solve": SOLVE, "plain": PLAIN}
"""Prompts for solving problems, by a recipe's name for them."""

_FILE = "file"

RECORDED = "recorded"
"""The version of attempts recorded elsewhere, whose prompt is unknown."""


def asks_to_solve(version: str) -> bool:
    """Return whether attempts under this version answer the problem itself.

    Example: ``asks_to_solve("solve@1 [THINK] [/THINK]")``, not ``asks_to_solve("rewrite@2")``
    """
    own = {prompt.version.partition("@")[0] for prompt in (SOLVE, DIRECT, PLAIN)}
    return version.partition("@")[0] in {*own, _FILE, RECORDED}


def prompt_of(settings: LiveModel) -> Prompt:
    """Return a model's prompt in its thinking tags; its examples are hashed in the version."""
    if isinstance(own := settings.prompt, PromptFile):  # with its own tags
        version = f"{_FILE}@{hashlib.blake2b(own.text.encode(), digest_size=6).hexdigest()}"
        chosen = Prompt(version, own.text, _statement_and_form)
    else:
        chosen = _with_tags(SOLVING[own], ThinkingTags.of(settings.thinking))
    if not settings.examples:
        return chosen
    examples = tuple((example.statement, example.response) for example in settings.examples)
    digest = hashlib.blake2b(repr(examples).encode(), digest_size=4).hexdigest()
    return replace(chosen, version=f"{chosen.version} examples {digest}", examples=examples)


def _with_tags(prompt: Prompt, tags: ThinkingTags) -> Prompt:
    if prompt is not SOLVE or tags == THINK:
        return prompt
    if not tags.are_used:
        return DIRECT
    system = SOLVE.system.replace(OPEN, tags.open).replace(CLOSE, tags.close)
    return Prompt(f"{SOLVE.version} {tags.open} {tags.close}", system, SOLVE.user)
