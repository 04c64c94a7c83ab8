"""Compute our reward in verl's reward loop, one rollout at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from verl.experimental.reward_loop.reward_manager import register
from verl.experimental.reward_loop.reward_manager.base import RewardManagerBase

from curation.policies.chat_templates import folder_stop_tokens
from curation.scoring.record import MARK
from training.engines.verl.configuration import NAME
from training.engines.verl.groups import told_of
from training.engines.verl.judging import RewardComputer
from training.engines.verl.run_facts import run_facts


@register(NAME)
class GoldilocksRewards(RewardManagerBase):
    """The paper's reward of a rollout, by its row's record.

    A rollout whose verifier failed scores 0, but our replay buffer excludes it.
    """

    def __init__(self, config: Any, tokenizer: Any, compute_score: Any = None, **_others: Any) -> None:
        super().__init__(config, tokenizer, compute_score)
        recipe = run_facts().recipe
        stops = folder_stop_tokens(Path(config.actor_rollout_ref.model.path), tokenizer)
        self._rewards = RewardComputer(recipe, tokenizer, stops.ids)

    async def run_single(self, data: Any) -> dict[str, Any]:
        """Return ``reward_score`` and ``reward_extra_info`` of one rollout."""
        item = data[-1:][0]
        prompts, responses = item.batch["prompts"], item.batch["responses"]
        mask = item.batch["attention_mask"].bool()
        prompt_ids = prompts[mask[: len(prompts)]].tolist()
        response_ids = responses[mask[len(prompts) :]].tolist()
        record = item.non_tensor_batch["extra_info"][MARK]
        group = str(item.non_tensor_batch.get("uid", ""))
        reward, told = await self._rewards.reward(record, prompt_ids, response_ids, group)
        score = 0.0 if reward.excluded else reward.total
        return {"reward_score": score, "reward_extra_info": told_of(reward, told)}
