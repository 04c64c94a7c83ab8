"""Refuse or list what verl does differently."""

from __future__ import annotations

from curation.config import VllmModel
from curation.records import ConfigError
from training.config import MAX_PROMPT_TOKENS
from training.objectives.grpo import GrpoSettings
from training.objectives.presets import GroupCreditSettings
from training.recipe import TrainRecipe

KINDS = ("grpo", "aipo", "dppo")
"""Objectives whose loss is one pass over a micro-batch, as verl's is."""


def refuse_what_differs(recipe: TrainRecipe) -> None:
    """Refuse a recipe that verl would silently change."""
    reasons = _refusals(recipe)
    if reasons:
        told = "; ".join(reasons)
        raise ConfigError(f'recipe {recipe.name}: not with engine = "verl": {told}. Or train with engine = "embedded".')


def replacements(recipe: TrainRecipe) -> list[str]:
    """Return what verl does differently with this recipe, in sentences."""
    collector, told = recipe.collector, []
    if recipe.synchronous and collector.minibatch_size != collector.n_batch:
        told.append(
            "With max_staleness = 0 verl cuts a batch into minibatches itself: advantages are normalised over the "
            "whole batch, and a group may lie in two minibatches."
        )
    if recipe.synchronous:
        told.append(
            "With max_staleness = 0 verl starts groups until a batch is full and throws away whole groups that are "
            "over; the embedded engine trains on them next."
        )
    else:
        told.append(
            f"n_async = {collector.n_async} is kept in whole batches: verl has n_batch rollouts and so many more in "
            "flight, at most max_staleness batches more, and lets a group that would become too old finish before the "
            "next batch is taken."
        )
    objective = recipe.objective
    if isinstance(objective, GrpoSettings) and objective.entropy_coef and objective.variant.loss_aggregation == "group":
        told.append("The entropy bonus is verl's, a mean over the minibatch's tokens; here it has the loss's weights.")
    if isinstance(objective, GroupCreditSettings) and objective.variant.mask_truncated:
        told.append("A rollout counts as cut off where it has as many tokens as it may, even if the last one ends it.")
    if recipe.stages:
        told.append(
            f"Each stage is a process of verl of its own, over one folder: a plateau ends it at the next checkpoint "
            f"(every {recipe.checkpoints.every} steps), and what is in flight then is begun anew by the next stage."
        )
    told += [
        "Tokens with an impossible log-probability are left out of the loss, but still count in its denominators.",
        "Gradients are clipped and averaged by verl, and its micro-batches are its own: sums differ in rounding only.",
        "Rollouts are vLLM's as verl starts it; seeds are its own, so two runs do not draw the same tokens.",
        f"Prompts longer than {MAX_PROMPT_TOKENS} tokens are left out before the run, by verl.",
        "The checks of `goldilocks train --check` are the embedded engine's and are not made.",
    ]
    return told


def _refusals(recipe: TrainRecipe) -> list[str]:
    objective, reasons = recipe.objective, []
    if objective.kind not in KINDS:
        reasons.append(f"objective.kind = {objective.kind!r} is the embedded engine's: a second pass, or no group")
    if isinstance(objective, GroupCreditSettings) and objective.variant.advantage_normalisation == "components":
        reasons.append("advantages by component (gdpo) need the components, and verl hands totals only on")
    if getattr(objective, "kl_coef", 0):
        reasons.append("objective.kl_coef > 0 needs our KL term, and verl's per-token ones have other gradients; set 0")
    if getattr(objective, "credit", "reward") == "majority":
        reasons.append('objective.credit = "majority" needs the answers, and verl hands rewards only on')
    if not isinstance(recipe.trained, VllmModel):
        reasons.append(f"models.{recipe.model}.kind: verl starts vLLM itself; name the kind `vllm`")
    embedded_only = {
        "stored": recipe.stored,
        "lora": recipe.lora,
        "evaluation.keep_best": recipe.evaluation.keep_best,
        "verify.model": recipe.verify.model,
        "verify.judges (name the files in GOLDILOCKS_JUDGES)": recipe.verify.judges,
        "checkpoints.trajectory": recipe.checkpoints.trajectory,
    }
    return reasons + [
        f"{name} is the embedded engine's; leave it out" for name, value in embedded_only.items() if value
    ]
