"""Check a recipe's prompts under the model's chat template, and the room for responses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from curation.policies.chat_templates import StopTokens
from curation.prompts import Prompt, plain_text
from curation.records import PolicyError
from curation.thinking import ThinkingTags
from training.checks.results import CheckResult
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


@dataclass(frozen=True, slots=True)
class PromptChecks:
    """The checks of a recipe's prompt, as a tokenizer renders it."""

    tokenizer: PreTrainedTokenizerBase
    prompt: Prompt
    tags: ThinkingTags

    def render(self, task: TrainingTask) -> tuple[int, ...]:
        """Return a task's prompt in tokens."""
        return render_prompt(self.tokenizer, self.prompt, task, self.tags)

    def template(self, task: TrainingTask, stops: StopTokens) -> list[CheckResult]:
        """Return whether the template takes the prompt, and what ends a response."""
        try:
            token_ids = self.render(task)
        except PolicyError as error:
            sentence, _, advice = str(error).rstrip(".").rpartition("; ")
            return [CheckResult(TEMPLATE, None, None, sentence, advice)]
        detail, system = "", self.prompt.system
        if system and system.strip()[:40] not in self.tokenizer.decode(token_ids):
            detail = f"it leaves the system message of {self.prompt.version} out"
        ends = stops.phrase(self.tokenizer)
        return [CheckResult(TEMPLATE, None, None, detail), CheckResult("end token", None, None, ends)]

    def without_room(self, tasks: Sequence[TrainingTask], context: int) -> dict[str, int]:
        """Return the tokens of each prompt that fills the context alone, by problem."""
        if not tasks:
            return {}
        shown = self.tokenizer.decode(self.render(tasks[0]))
        added = len(shown.encode()) + len(plain_text(self.prompt.messages(tasks[0].request)).encode())
        long = [task for task in tasks if len(task.request.statement.encode()) + added >= context]
        lengths = {task.id: len(self.render(task)) for task in long}
        return {name: tokens for name, tokens in lengths.items() if tokens >= context}

    def room(self, tasks: Iterable[TrainingTask], context: int, max_tokens: int, micro_batch: int) -> CheckResult:
        """Return whether prompts and responses fit the context and a micro-batch, in tokens."""
        long = sorted(tasks, key=lambda task: -len(task.request.statement))[:_LONG_PROMPTS]
        longest = max(len(self.render(task)) for task in long)
        sequence = min(longest + max_tokens, context)
        if sequence > micro_batch:
            detail = f"prompt and response may take {sequence} tokens, a micro-batch holds {micro_batch}"
            advice = f"set packing.micro_batch_tokens = {sequence}, or a lower max_tokens"
            return CheckResult(ROOM, sequence, micro_batch, detail, advice)
        short = f"after the longest prompt a response is cut at {context - longest} tokens, not {max_tokens}"
        return CheckResult(ROOM, longest, context, short if longest + max_tokens > context else "")
