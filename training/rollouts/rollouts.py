"""Generate and judge rollouts.

Invariants: a TIMEOUT or BROKEN verdict excludes a rollout. Texts include a thinking tag that ends the prompt.
"""

from __future__ import annotations

import hashlib
import time
from bisect import bisect_left
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from curation.policies.chat_templates import apply_chat_template
from curation.policies.completions import ResponseReader, TokenCompletion
from curation.prompts import Message, Prompt, plain_text
from curation.records import Outcome, PolicyError
from curation.thinking import THINK, ThinkingTags
from curation.verify.math_judge import Verdict
from training.config import RewardSettings
from training.rewards import FORMAT, Reward, RewardInputs, assess
from training.rollouts.impossible import impossible_positions
from training.rollouts.tasks import TrainingTask
from training.rollouts.verifiers import Verifiers

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

    from training.generation.generators import Generator


_FEW_TOKENS = 4
"""Min tokens that show a broken generator."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """A judged rollout; ``outcome`` is None without a verdict.

    With a reference text, the completion is cut after its thoughts.
    """

    problem: str
    completion: TokenCompletion
    reward: Reward
    outcome: Outcome | None
    method: str
    answer: str | None = None
    reference_ids: tuple[int, ...] = ()

    @property
    def tokens(self) -> int:
        return len(self.completion.token_ids)

    def row(self) -> dict[str, Any]:
        """Return the row of ``attempts.jsonl``."""
        completion = self.completion
        return {
            "problem": self.problem,
            "outcome": self.outcome.value if self.outcome is not None else None,
            "method": self.method,
            "tokens": self.tokens,
            "finish": completion.finish,
            "oldest": min(completion.versions, default=0),
            "newest": max(completion.versions, default=0),
            "reward": self.reward.components(),
            "excluded": self.reward.excluded_by,
        }


class RolloutRunner:
    """Generates and judges rollouts; ``rewards`` may be replaced."""

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        prompt: Prompt,
        verifiers: Verifiers,
        rewards: RewardSettings,
        seed: int,
        tags: ThinkingTags = THINK,
    ) -> None:
        self.rewards, self.tags = rewards, tags
        self._reader = ResponseReader(tokenizer, tags)
        self._tokenizer, self._prompt, self._verifiers = tokenizer, prompt, verifiers
        self._seed = seed
        self._prompts: dict[str, tuple[int, ...]] = {}
        self.last_generated_at = time.monotonic()

    def verdict_metrics(self) -> dict[str, float]:
        """Return metrics of doubtful verdicts since the last call."""
        return self._verifiers.questions.numbers() if self._verifiers.questions is not None else {}

    def prompt_ids(self, task: TrainingTask) -> tuple[int, ...]:
        """Return the prompt's token ids, cached by task id."""
        token_ids = self._prompts.get(task.id)
        if token_ids is None:
            token_ids = self._prompts[task.id] = self.render(task)
        return token_ids

    def render(self, task: TrainingTask) -> tuple[int, ...]:
        """Return `prompt_ids`, uncached."""
        return render_prompt(self._tokenizer, self._prompt, task, self.tags)

    async def generate(
        self, generator: Generator, task: TrainingTask, group: int, index: int, max_tokens: int
    ) -> TokenCompletion:
        """Generate rollout ``index`` of a group.

        Raises:
            PolicyError: the generator failed, or returned no token or no possible log-probability.
        """
        completion = await generator.generate(
            self.prompt_ids(task), seed=derive_seed(self._seed, f"{group}:{index}"), max_tokens=max_tokens
        )
        if not completion.token_ids:
            raise PolicyError(f"the generator returned no token for problem {task.id}; look at its log")
        if len(impossible_positions(completion.logprobs)) == len(completion.logprobs) >= _FEW_TOKENS:
            raise PolicyError(
                f"problem {task.id}: no token of the response has a possible log-probability (the first: "
                f"{completion.logprobs[0]:g}), so the generator's logits are not finite numbers; look for NaN in its "
                "weights"
            )
        self.last_generated_at = time.monotonic()
        text = self._reader.text(completion.prompt_ids, completion.token_ids, completion.text)
        return replace(completion, text=text)

    async def verify(self, task: TrainingTask, completion: TokenCompletion, group: int) -> Rollout:
        """Return the rollout with its reward."""
        if task.reference_text is not None:
            return self._before_reference(task, task.reference_text, completion)
        seed = derive_seed(self._seed, f"tests:{group}")

        def ask(text: str) -> Awaitable[Verdict]:
            return self._verifiers.verify(task, text, seed, completion.finish)

        inputs = RewardInputs(
            task.request.domain,
            task.request.statement,
            completion.text,
            len(completion.token_ids),
            None,
            tags=self.tags,
            finish=completion.finish,
            row=task.id,
        )
        return Rollout(task.id, completion, *await assess(ask, inputs, self.rewards))

    def _before_reference(self, task: TrainingTask, reference: str, completion: TokenCompletion) -> Rollout:
        count = self._thought_tokens(completion)
        if count is None:
            failure = f"no {self.tags.close}" if self.tags.are_used else "no thoughts"
            return Rollout(task.id, completion, Reward(format_error=failure), None, failure)
        ids = self._tokenizer("\n" + reference, add_special_tokens=False)["input_ids"]
        end = () if self._tokenizer.eos_token_id is None else (int(self._tokenizer.eos_token_id),)
        chain = replace(
            completion,
            token_ids=completion.token_ids[:count],
            logprobs=completion.logprobs[:count],
            versions=completion.versions[:count],
            text=completion.text.partition(self.tags.close)[0] + self.tags.close,
        )
        return Rollout(task.id, chain, Reward(format=FORMAT), None, "reference", None, (*ids, *end))

    def _thought_tokens(self, completion: TokenCompletion) -> int | None:
        if not self.tags.are_used or self.tags.close not in completion.text:
            return None

        def has_ended(count: int) -> bool:
            token_ids = completion.token_ids[:count]
            decoded = str(self._tokenizer.decode(list(token_ids), skip_special_tokens=True))
            return self.tags.close in self._reader.text(completion.prompt_ids, token_ids, decoded)

        return 1 + bisect_left(range(1, len(completion.token_ids)), True, key=has_ended)


def render_prompt(
    tokenizer: PreTrainedTokenizerBase, prompt: Prompt, task: TrainingTask, tags: ThinkingTags = THINK
) -> tuple[int, ...]:
    """Return the token ids of the task's prompt.

    Raises:
        PolicyError: the chat template refuses it.
    """
    return chat_ids(tokenizer, prompt.messages(task.request), tags)


def chat_ids(
    tokenizer: PreTrainedTokenizerBase, messages: Sequence[Message], tags: ThinkingTags = THINK
) -> tuple[int, ...]:
    """Return a chat's token ids, ready for a response."""
    if tokenizer.chat_template is None:
        return tuple(tokenizer(plain_text(messages))["input_ids"])
    options = {"add_generation_prompt": True, "tokenize": True, "return_dict": True, **tags.template_arguments}
    chat = apply_chat_template(tokenizer, messages, **options)
    return tuple(chat["input_ids"])


def derive_seed(seed: int, name: str) -> int:
    """Return a 63-bit seed for a named use."""
    return int.from_bytes(hashlib.blake2b(f"{seed}|{name}".encode(), digest_size=8).digest()) >> 1
