"""An attempt's way: problem → prompt → generation → form → verifier → reward → sample.

Invariants: an attempt that breaks the form never reaches the verifier and is worth 0; a verdict TIMEOUT or BROKEN
excludes the attempt, whose reward has no total. What an attempt draws depends on the run's seed, its group and its
index only. A finished attempt (`Rollout`) holds all that training needs, and can be written into a checkpoint.

Not here: who is admitted when (`training.rollouts.rollout_scheduler`), and the advantages (`training.objectives`).
"""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Protocol

from curation.policies.completions import TokenCompletion
from curation.prompts import Prompt, plain_text
from curation.records import Outcome, PolicyError
from curation.verify.math_judge import Verdict
from training.config import RewardSettings
from training.rewards import LanguageChecker, Reward, RewardInputs, compute_reward, format_error
from training.rollouts.tasks import TrainingTask
from training.rollouts.verifiers import Verifiers

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


class RolloutGenerator(Protocol):
    """The part of a `training.generation.generators.Generator` that rollouts use."""

    async def generate(self, prompt_ids: tuple[int, ...], *, seed: int, max_tokens: int) -> TokenCompletion: ...


@dataclass(frozen=True, slots=True)
class Rollout:
    """A judged attempt. ``outcome`` is None where the form was broken, and the verifier not asked."""

    problem: str
    completion: TokenCompletion
    reward: Reward
    outcome: Outcome | None
    method: str

    @property
    def tokens(self) -> int:
        """Return the generated tokens."""
        return len(self.completion.token_ids)

    def row(self) -> dict[str, Any]:
        """Return what the attempts' file says of it, without its tokens."""
        made = self.completion
        return {
            "problem": self.problem,
            "outcome": self.outcome.value if self.outcome is not None else None,
            "method": self.method,
            "tokens": self.tokens,
            "finish": made.finish,
            "oldest": min(made.versions, default=0),
            "newest": max(made.versions, default=0),
            "reward": self.reward.components(),
            "excluded": self.reward.excluded_by,
        }


def encode_rollout(rollout: Rollout) -> dict[str, Any]:
    """As JSON can hold it, exactly."""
    made = rollout.completion
    return {
        "problem": rollout.problem,
        "generated": {name: getattr(made, name) for name in TokenCompletion.__slots__},
        "reward": asdict(rollout.reward),
        "outcome": rollout.outcome.value if rollout.outcome is not None else None,
        "method": rollout.method,
    }


def decode_rollout(row: dict[str, Any]) -> Rollout:
    """Back from `encode`."""
    held = row["generated"].items()
    values: dict[str, Any] = {name: tuple(one) if isinstance(one, list) else one for name, one in held}
    outcome = Outcome(row["outcome"]) if row["outcome"] is not None else None
    return Rollout(row["problem"], TokenCompletion(**values), Reward(**row["reward"]), outcome, row["method"])


class RolloutRunner:
    """Makes and judges attempts.

    Args:
        prompt: how problems are asked.
        seed: the run's.
        rewards: amounts; `RolloutRunner.rewards` may be changed while it runs, for attempts judged from then on.
        consistent: whether texts share a language; needed where languages are rewarded.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        prompt: Prompt,
        verifiers: Verifiers,
        rewards: RewardSettings,
        check_language: LanguageChecker | None,
        seed: int,
    ) -> None:
        self.rewards = rewards
        self._tokenizer, self._prompt, self._verifiers = tokenizer, prompt, verifiers
        self._check_language, self._seed = check_language, seed
        self._prompts: dict[str, tuple[int, ...]] = {}

    def prompt_ids(self, task: TrainingTask) -> tuple[int, ...]:
        """Return the prompt's tokens."""
        known = self._prompts.get(task.id)
        if known is None:
            messages = self._prompt.messages(task.request)
            if self._tokenizer.chat_template is None:
                known = tuple(self._tokenizer(plain_text(messages))["input_ids"])
            else:
                chat = self._tokenizer.apply_chat_template(
                    messages, add_generation_prompt=True, tokenize=True, return_dict=True
                )
                known = tuple(chat["input_ids"])
            self._prompts[task.id] = known
        return known

    async def generate(
        self, generator: RolloutGenerator, task: TrainingTask, group: int, index: int, max_tokens: int
    ) -> TokenCompletion:
        """Return the attempt number ``index`` of a group.

        Raises:
            PolicyError: the generator cannot.
        """
        made = await generator.generate(
            self.prompt_ids(task), seed=derive_seed(self._seed, f"{group}:{index}"), max_tokens=max_tokens
        )
        if not made.token_ids:
            raise PolicyError(f"the generator gave no token for problem {task.id}; look at its log")
        return made

    async def verify(self, task: TrainingTask, completion: TokenCompletion, group: int) -> Rollout:
        """Return the attempt with its verdict and reward."""
        failure = format_error(completion.text, task.request.domain)
        verdict: Verdict | None = None
        if failure is None:
            verdict = await self._verifiers.verify(task, completion.text, derive_seed(self._seed, f"tests:{group}"))
        judged = RewardInputs(
            task.request.domain,
            task.request.statement,
            completion.text,
            len(completion.token_ids),
            verdict.outcome if verdict is not None else None,
            verdict.passed if verdict is not None else None,
        )
        if self._check_language is None:
            earned = compute_reward(judged, self.rewards)
        else:  # telling a language takes its time
            earned = await asyncio.to_thread(compute_reward, judged, self.rewards, self._check_language)
        how = verdict.method if verdict is not None else str(failure)
        return Rollout(task.id, completion, earned, verdict.outcome if verdict is not None else None, how)


def derive_seed(seed: int, name: str) -> int:
    """Return a seed of 63 bits for one named use of the run's seed."""
    return int.from_bytes(hashlib.blake2b(f"{seed}|{name}".encode(), digest_size=8).digest()) >> 1
