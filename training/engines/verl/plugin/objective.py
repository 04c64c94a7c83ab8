"""Register our advantage and loss with verl."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from verl.trainer.ppo.core_algos import register_adv_est, register_policy_loss

from training.engines.verl.configuration import NAME, run_facts
from training.engines.verl.tensors import micro_batch_loss, weighted_advantages


@register_adv_est(NAME)
def advantages(
    token_level_rewards: Tensor, response_mask: Tensor, index: Any, config: Any = None, **_others: Any
) -> tuple[Tensor, Tensor]:
    """Return verl's advantages and returns, both `weighted_advantages` [sequences, tokens]."""
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
    """Return a micro-batch's loss and statistics; ``old_log_prob`` is the generator's.

    The loss is multiplied by the data-parallel ranks, over which verl averages gradients.
    """
    loss, statistics = micro_batch_loss(log_prob, old_log_prob, advantages, response_mask, run_facts().recipe.objective)
    ranks = config.global_batch_info.get("dp_size", 1) if config is not None else 1
    return loss * ranks, {f"goldilocks/policy/{name}": value for name, value in statistics.items()}
