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
    objective = recipe.objective
    by_component = isinstance(objective, GroupCreditSettings) and (
        objective.variant.advantage_normalisation == "components"
    )
    embedded_only = {
        "stored": recipe.stored,
        "lora": recipe.lora,
        "evaluation.keep_best": recipe.evaluation.keep_best,
        "verify.model": recipe.verify.model,
        "verify.judges (name the files in GOLDILOCKS_JUDGES)": recipe.verify.judges,
        "checkpoints.trajectory": recipe.checkpoints.trajectory,
    }
    refusals = {
        f"objective.kind = {objective.kind!r} is the embedded engine's: a second pass, or no group": (
            objective.kind not in KINDS
        ),
        "advantages by component (gdpo) need the components, and verl passes on totals only": by_component,
        "objective.kl_coef > 0 needs our KL term, and verl's per-token ones have other gradients; set 0": (
            getattr(objective, "kl_coef", 0)
        ),
        'objective.credit = "majority" needs the answers, and verl passes on rewards only': (
            getattr(objective, "credit", "reward") == "majority"
        ),
        f"models.{recipe.model}.kind: verl starts vLLM itself; name the kind `vllm`": (
            not isinstance(recipe.trained, VllmModel)
        ),
        **{f"{name} is the embedded engine's; leave it out": value for name, value in embedded_only.items()},
    }
    if reasons := "; ".join(reason for reason, holds in refusals.items() if holds):
        raise ConfigError(
            f'recipe {recipe.name}: not with engine = "verl": {reasons}. Or train with engine = "embedded".'
        )


def replacements(recipe: TrainRecipe) -> list[str]:
    """Return what verl does differently with this recipe, in sentences."""
    collector, objective = recipe.collector, recipe.objective
    variant = objective.variant if isinstance(objective, GroupCreditSettings) else None
    bonus = isinstance(objective, GrpoSettings) and objective.entropy_coef
    remarks = {
        "With max_staleness = 0 verl cuts a batch into minibatches itself: advantages are normalised over the whole "
        "batch, and a group may be split.": recipe.synchronous and collector.minibatch_size != collector.n_batch,
        "With max_staleness = 0 verl starts groups until a batch is full and discards whole groups beyond it; the "
        "embedded engine trains on them next.": recipe.synchronous,
        f"n_async = {collector.n_async} is kept in whole batches: n_batch rollouts, and at most max_staleness batches "
        "more, are in flight; a group that would become too old finishes before the next batch is taken.": (
            not recipe.synchronous
        ),
        "The entropy bonus is verl's, a mean over the minibatch's tokens; here it has the loss's weights.": (
            bonus and variant is not None and variant.loss_aggregation == "group"
        ),
        "A rollout with the max number of tokens counts as truncated, even if the last one ends it.": (
            variant is not None and variant.mask_truncated
        ),
        "Each stage is a process of verl over one folder: a plateau ends it at the next checkpoint (every "
        f"{recipe.checkpoints.every} steps), and the next stage begins anew what was in flight.": recipe.stages,
        "Tokens with an impossible log-probability are left out of the loss, but count in its denominators.": True,
        "verl clips and averages gradients, and forms micro-batches itself: sums differ in rounding only.": True,
        "verl starts vLLM with seeds of its own, so two runs do not draw the same tokens.": True,
        f"verl leaves out prompts longer than {MAX_PROMPT_TOKENS} tokens before the run.": True,
        "The checks of `goldilocks train --check` are the embedded engine's and are not made.": True,
    }
    return [remark for remark, applies in remarks.items() if applies]
