"""Extend verl with our advantage, loss, reward, curriculum and group filter; all of verl's processes import this.

Invariant: a group's rollouts get the same tests.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor
from verl.experimental.reward_loop.reward_manager import register
from verl.experimental.reward_loop.reward_manager.base import RewardManagerBase
from verl.trainer.ppo.core_algos import register_adv_est, register_policy_loss

from curation.policies.chat_templates import folder_stop_tokens
from curation.policies.completions import ResponseReader
from curation.records import Domain
from curation.response_formats import BOXED
from curation.scoring.record import MARK, read_record
from curation.scoring.scorer import Scorer, ScoringSettings
from curation.thinking import OPEN
from curation.verify.math_judge import Verdict
from training.engines.verl.configuration import NAME, run_facts
from training.engines.verl.groups import reward_fields
from training.engines.verl.tensors import micro_batch_loss, weighted_advantages
from training.rewards import RewardInputs, assess
from training.rollouts.rollouts import derive_seed
from training.rollouts.verifiers import TESTS_PER_GROUP, verifier_workers


@register_adv_est(NAME)
def advantages(
    token_level_rewards: Tensor, response_mask: Tensor, index: Any, config: Any = None, **_others: Any
) -> tuple[Tensor, Tensor]:
    """Return `weighted_advantages` [sequences, tokens] as verl's advantages and returns."""
    facts = run_facts()
    sizes = facts.recipe.collector
    folded = weighted_advantages(
        token_level_rewards,
        response_mask,
        [str(name) for name in index],
        facts.recipe.objective,
        max_tokens=facts.recipe.rewards.max_length,
        minibatches=sizes.n_batch // sizes.minibatch_size if facts.recipe.synchronous else 1,
    )
    return folded, folded


@register_policy_loss(NAME)
def policy_loss(
    old_log_prob: Tensor,
    log_prob: Tensor,
    advantages: Tensor,
    response_mask: Tensor,
    loss_agg_mode: str = "",
    config: Any = None,
    rollout_is_weights: Tensor | None = None,
) -> tuple[Tensor, dict[str, float]]:
    """Return a micro-batch's loss times data-parallel ranks, as verl averages gradients, and statistics."""
    loss, statistics = micro_batch_loss(log_prob, old_log_prob, advantages, response_mask, run_facts().recipe.objective)
    ranks = config.global_batch_info.get("dp_size", 1) if config is not None else 1
    return loss * ranks, {f"goldilocks/policy/{name}": value for name, value in statistics.items()}


@register(NAME)
class GoldilocksRewards(RewardManagerBase):
    """The reward of a rollout, by its row's record; our replay buffer excludes those whose verifier failed."""

    def __init__(self, config: Any, tokenizer: Any, compute_score: Any = None, **_others: Any) -> None:
        super().__init__(config, tokenizer, compute_score)
        self._recipe, self._tokenizer = run_facts().recipe, tokenizer
        self._reader = ResponseReader(tokenizer, self._recipe.tags)
        self._stops = frozenset(folder_stop_tokens(Path(config.actor_rollout_ref.model.path), tokenizer).ids)
        settings = ScoringSettings(
            thinking=OPEN,
            response_format=BOXED,
            workers=verifier_workers(),
            tests_run=TESTS_PER_GROUP,
            all_tests=self._recipe.rewards.code == "proportional",
        )
        self._scorer = Scorer(settings)
        self._threads = ThreadPoolExecutor(max(2 * verifier_workers(), 2), "reward")

    async def run_single(self, data: Any) -> dict[str, Any]:
        """Return ``reward_score`` and ``reward_extra_info`` of one rollout."""
        item = data[-1:][0]
        prompts, responses = item.batch["prompts"], item.batch["responses"]
        mask = item.batch["attention_mask"].bool()
        prompt_ids = prompts[mask[: len(prompts)]].tolist()
        response_ids = responses[mask[len(prompts) :]].tolist()
        table = read_record(item.non_tensor_batch["extra_info"][MARK])
        finish = "stop" if response_ids and response_ids[-1] in self._stops else "length"
        seed = derive_seed(self._recipe.seed, f"tests:{item.non_tensor_batch.get('uid', '')}")

        async def ask(text: str) -> Verdict:
            submit = partial(self._scorer.submit, table, text, seed=seed, finish=finish)
            future = await asyncio.get_running_loop().run_in_executor(self._threads, submit)
            return (await asyncio.wrap_future(future))[0]

        decoded = str(self._tokenizer.decode(response_ids, skip_special_tokens=True))
        inputs = RewardInputs(
            Domain(table["domain"]),
            str(table.get("statement") or ""),
            self._reader.text(prompt_ids, response_ids, decoded),
            len(response_ids),
            None,
            tags=self._recipe.tags,
            finish=finish,
            row=str(table["id"]),
        )
        reward, outcome, method, answer = await assess(ask, inputs, self._recipe.rewards)
        facts = {
            "outcome": outcome.value if outcome is not None else None,
            "method": method,
            "answer": answer,
            "finish": finish,
            "tokens": len(response_ids),
        }
        score = 0.0 if reward.excluded else reward.total
        return {"reward_score": score, "reward_extra_info": reward_fields(reward, facts)}
