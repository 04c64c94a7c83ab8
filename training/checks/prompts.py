"""Check a recipe's prompts under the model's chat template, and the room for responses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from curation.policies.chat_templates import StopTokens
from curation.prompts import Prompt, plain_text
from curation.records import PolicyError
from curation.thinking import ThinkingTags
from training.checks.results import CheckResult
from training.config import PackingSettings
from training.rollouts.rollouts import render_prompt
from training.rollouts.tasks import TrainingTask

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

TEMPLATE, ROOM = "chat template", "room"
"""Names of checks."""

SHORT_PROMPTS = 8
"""Prompts to generate from, the shortest of the first `_LOOKED_AT`."""

_LOOKED_AT, _LONG_PROMPTS = 256, 8


def short_tasks(tasks: Iterable[TrainingTask]) -> list[TrainingTask]:
    """Return the tasks whose prompts are generated from."""
    first = [task for task, _ in zip(tasks, range(_LOOKED_AT), strict=False)]
    return sorted(first, key=lambda task: len(task.request.statement))[:SHORT_PROMPTS]


def check_prompts(
    tokenizer: PreTrainedTokenizerBase,
    prompt: Prompt,
    tasks: Sequence[TrainingTask],
    stops: StopTokens,
    tags: ThinkingTags,
) -> list[CheckResult]:
    """Return whether the template takes the prompt, and what ends a response."""
    try:
        token_ids = render_prompt(tokenizer, prompt, tasks[0], tags)
    except PolicyError as error:
        sentence, _, advice = str(error).rstrip(".").rpartition("; ")
        return [CheckResult(TEMPLATE, None, None, sentence, advice)]
    detail = ""
    if prompt.system and prompt.system.strip()[:40] not in tokenizer.decode(token_ids):
        detail = f"it leaves the system message of {prompt.version} out"
    return [
        CheckResult(TEMPLATE, None, None, detail),
        CheckResult("end token", None, None, stops.phrase(tokenizer)),
    ]


def without_room(
    tokenizer: PreTrainedTokenizerBase,
    prompt: Prompt,
    tasks: Sequence[TrainingTask],
    tags: ThinkingTags,
    context: int,
) -> dict[str, int]:
    """Return the tokens of each prompt that fills the context alone, by problem."""
    if not tasks:
        return {}
    first = tasks[0]
    shown = tokenizer.decode(render_prompt(tokenizer, prompt, first, tags))
    added = len(shown.encode()) + len(plain_text(prompt.messages(first.request)).encode())
    found = {}
    for task in tasks:
        if len(task.request.statement.encode()) + added >= context:
            tokens = len(render_prompt(tokenizer, prompt, task, tags))
            if tokens >= context:
                found[task.id] = tokens
    return found


def check_room(
    tokenizer: PreTrainedTokenizerBase,
    prompt: Prompt,
    tasks: Iterable[TrainingTask],
    tags: ThinkingTags,
    *,
    context: int,
    max_tokens: int,
    packing: PackingSettings,
) -> CheckResult:
    """Return whether prompts and responses fit the context and a micro-batch, in tokens."""
    long = sorted(tasks, key=lambda task: -len(task.request.statement))[:_LONG_PROMPTS]
    longest = max(len(render_prompt(tokenizer, prompt, task, tags)) for task in long)
    sequence = min(longest + max_tokens, context)
    if sequence > packing.micro_batch_tokens:
        detail = f"prompt and response may take {sequence} tokens, a micro-batch holds {packing.micro_batch_tokens}"
        advice = f"set packing.micro_batch_tokens = {sequence}, or a lower max_tokens"
        return CheckResult(ROOM, sequence, packing.micro_batch_tokens, detail, advice)
    short = f"after the longest prompt a response is cut at {context - longest} tokens, not {max_tokens}"
    return CheckResult(ROOM, longest, context, short if longest + max_tokens > context else "")
