"""Compile a training recipe into a configuration of verl 0.9.1 and its v1 trainer, or refuse it.

`training.engines.verl.inside` merges `fixed.yaml`, then this, into `verl/trainer/config/ppo_trainer.yaml`:

    n_batch, n_minibatch    a step is `parameter_sync_step` optimiser steps on n_minibatch rollouts each, and one update
    n_async                 at most max_staleness further batches in flight, trained on in order
    max_staleness           `max_off_policy_threshold`, with `wait`: nothing is dropped for its age
    the ratio               to the sampling probability: `bypass_mode`
    advantage and loss      `goldilocks`, from our plugin
    group filter            our replay buffer decides, verl's refills
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from curation.config import VllmModel
from curation.config.loading import parse_settings
from curation.records import ConfigError
from training.config import ADAM_BETAS, ADAM_EPS, MAX_GRAD_NORM, MAX_PROMPT_TOKENS
from training.engines.placement import VerlPlacement
from training.engines.verl.environment import RAY_TOKENS
from training.objectives.presets import GroupCreditSettings
from training.recipe import TrainRecipe

PLUGIN = "training.engines.verl.plugin"
"""The package that all of verl's processes import."""

NAME = "goldilocks"
"""Name of our advantage, loss and reward in verl."""

RECIPE_VARIABLE = "GOLDILOCKS_VERL_RUN"
"""Environment variable with `RunFacts` as JSON."""

TRAIN, HELD_OUT = "train.parquet", "held_out.parquet"
"""Files of problems in RUN/verl."""

_SHARED_MEMORY = 0.5
"""Max memory share of generation on a GPU that also trains."""

_ENTROPY_MEANS = {
    "group": "token-mean",
    "batch": "token-mean",
    "sequence": "seq-mean-token-mean",
    "constant": "seq-mean-token-sum-norm",
}
"""verl's mean for its entropy term, by our `loss_aggregation`."""


def compile_recipe(
    recipe: TrainRecipe,
    model: Path,
    out: Path,
    placement: VerlPlacement,
    *,
    begun_at: int = 0,
    ends_at: int | None = None,
    recipe_folder: Path = Path(),
) -> dict[str, Any]:
    """Return the job of a stage, from step ``begun_at`` to ``ends_at``, as JSON values; paths are absolute.

    ``values`` need verl's keys; ``added`` may add some; ``overrides`` are set last.
    """
    collector, evaluates, experts = recipe.collector, recipe.evaluation.data is not None, placement.expert_parallel > 0
    environment, train = _environment(recipe, out, recipe_folder, begun_at), str(out / "verl" / TRAIN)
    values = {
        "data.train_files": [train],
        "data.val_files": [str(out / "verl" / HELD_OUT) if evaluates else train],
        "data.val_max_samples": -1 if evaluates else 1,
        "data.train_batch_size": collector.n_batch // collector.group_size,
        "data.max_prompt_length": MAX_PROMPT_TOKENS,
        "data.max_response_length": recipe.rewards.max_length,
        "data.seed": recipe.seed,
        "actor_rollout_ref.hybrid_engine": recipe.synchronous,
        "actor_rollout_ref.model.path": str(model),
        "actor_rollout_ref.model.enable_gradient_checkpointing": recipe.compute.activation_checkpointing,
        **({} if experts else {"actor_rollout_ref.model.use_fused_kernels": False}),
        **_under("actor_rollout_ref.actor", _actor(recipe, placement.expert_parallel)),
        **_under("actor_rollout_ref.rollout", _rollout(recipe, placement)),
        **_under("trainer", _trainer(recipe, out, placement)),
        "trainer.total_training_steps": ends_at or recipe.steps,
    }
    added = {
        "ray_kwargs.ray_init.runtime_env.env_vars": environment,
        "ray_kwargs.ray_init.address": recipe.verl.ray_address or "local",  # else Ray joins any local cluster
        "data.apply_chat_template_kwargs": dict(recipe.tags.template_arguments),
        "actor_rollout_ref.actor.optim.override_optimizer_config": {"adam_eps" if experts else "eps": ADAM_EPS},
    }
    return {
        "groups": ["model_engine=megatron"] if experts else [],  # FSDP cuts no experts
        "values": values,
        "added": added,
        "environment": environment,
        "overrides": list(recipe.verl.overrides),
    }


def _under(prefix: str, values: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{prefix}.{name}": value for name, value in values.items()}


def _actor(recipe: TrainRecipe, expert_parallel: int) -> dict[str, Any]:
    optim, collector, objective = recipe.optim, recipe.collector, recipe.objective
    assert isinstance(objective, GroupCreditSettings)  # others are refused
    aggregation, sequence_parallel = objective.variant.loss_aggregation, recipe.verl.sequence_parallel
    common = {
        "ppo_mini_batch_size": collector.minibatch_size // collector.group_size,
        "ppo_max_token_len_per_gpu": recipe.packing.micro_batch_tokens,
        "entropy_coeff": getattr(objective, "entropy_coef", 0.0),
        "loss_agg_mode": _ENTROPY_MEANS[aggregation],
        "loss_scale_factor": recipe.rewards.max_length if aggregation == "constant" else None,
        "optim.lr": optim.learning_rate,
        "optim.lr_warmup_steps": optim.warmup_steps,
        "optim.betas": list(ADAM_BETAS),
        "optim.clip_grad": MAX_GRAD_NORM,
    }
    if expert_parallel:
        return common | {
            "megatron.context_parallel_size": sequence_parallel,
            "megatron.expert_model_parallel_size": expert_parallel,
        }
    return common | {
        "optim.zero_indexed_step": False,
        "strategy": "fsdp2",
        "grad_clip": MAX_GRAD_NORM,
        "ulysses_sequence_parallel_size": sequence_parallel,
        "fsdp_config.model_dtype": "fp32",
        "fsdp_config.dtype": recipe.compute.dtype,
        "fsdp_config.ulysses_sequence_parallel_size": sequence_parallel,
    }


def _rollout(recipe: TrainRecipe, placement: VerlPlacement) -> dict[str, Any]:
    collector, model, tensor = recipe.collector, recipe.trained, recipe.tensor_parallel
    assert isinstance(model, VllmModel)  # others are refused
    values: dict[str, Any] = {
        "n": collector.group_size,
        "temperature": recipe.temperature,
        "prompt_length": MAX_PROMPT_TOKENS,
        "response_length": recipe.rewards.max_length,
        "max_model_len": MAX_PROMPT_TOKENS + recipe.rewards.max_length,
        "tensor_model_parallel_size": tensor,
        "gpu_memory_utilization": min(model.gpu_memory, _SHARED_MEMORY if recipe.synchronous else 1.0),
        "max_num_seqs": max(collector.n_async * tensor // placement.generators, 1),
        "seed": recipe.seed,
        "log_prob_max_token_len_per_gpu": recipe.packing.micro_batch_tokens,
        "val_kwargs.n": recipe.evaluation.attempts,
        "val_kwargs.temperature": recipe.temperature,
    }
    if not recipe.synchronous:
        values["nnodes"], values["n_gpus_per_node"] = placement.rollout_nodes, placement.rollout_gpus
        values["checkpoint_engine.backend"] = "nccl"
    return values


def _trainer(recipe: TrainRecipe, out: Path, placement: VerlPlacement) -> dict[str, Any]:
    collector, evaluates = recipe.collector, recipe.evaluation.data is not None
    batches_in_flight = min(max(collector.n_async / collector.n_batch, 1.0), float(max(collector.max_staleness, 1)))
    return {
        "nnodes": placement.trainer_nodes,
        "n_gpus_per_node": placement.trainer_gpus,
        "experiment_name": recipe.name,
        "save_freq": recipe.checkpoints.every,
        "max_actor_ckpt_to_keep": max(recipe.checkpoints.keep, 2),  # 1 may leave none with our state
        "default_local_dir": str(out / "verl" / "checkpoints"),
        "test_freq": recipe.evaluation.every if evaluates else -1,
        "val_before_train": evaluates,
        "v1.trainer_mode": "sync" if recipe.synchronous else "separate_async",
        "v1.separate_async.parameter_sync_step": collector.n_batch // collector.minibatch_size,
        "v1.separate_async.num_warmup_batches": batches_in_flight,
        "v1.sampler.max_off_policy_threshold": collector.max_staleness + 1,
        "v1.sampler.custom_sampler.name": "GroupBuffer" if recipe.synchronous else "AsyncGroupBuffer",
    }


def _environment(recipe: TrainRecipe, out: Path, recipe_folder: Path, begun_at: int) -> dict[str, str]:
    facts = {"recipe": recipe.model_dump(mode="json"), "out": str(out), "recipe_folder": str(recipe_folder)}
    has_token = recipe.verl.ray_address is not None and any(os.environ.get(name) for name in RAY_TOKENS)
    return {
        **({"RAY_AUTH_MODE": os.environ.get("RAY_AUTH_MODE", "token")} if has_token else {}),
        "VERL_USE_EXTERNAL_MODULES": PLUGIN,
        RECIPE_VARIABLE: json.dumps(facts, ensure_ascii=False),
        "VERL_FILE_LOGGER_PATH": str(steps_file(out, begun_at)),  # read by the trainer, on any node
        "VERL_LOGGING_LEVEL": "WARNING",  # an INFO line of 0.9.1's asynchronous trainer is malformed and ends it
        "VLLM_NO_USAGE_STATS": "1",
        "TOKENIZERS_PARALLELISM": "true",
        "RAY_worker_niceness": "0",  # else a busy node starves the workers that judge
    }


def steps_file(out: Path, begun_at: int) -> Path:
    """Return the metrics file of a process that begins after step ``begun_at``."""
    return out / "verl" / f"steps-{begun_at}.jsonl"


@dataclass(frozen=True, slots=True)
class RunFacts:
    """The run of this process."""

    recipe: TrainRecipe
    out: Path
    recipe_folder: Path


@cache
def run_facts() -> RunFacts:
    text = os.environ.get(RECIPE_VARIABLE)
    if text is None:
        raise ConfigError(
            f"${RECIPE_VARIABLE} is not set: this process belongs to no run; start one by `goldilocks train`."
        )
    table = json.loads(text)
    home = Path(table["recipe_folder"])
    recipe = parse_settings(TrainRecipe, table["recipe"], f"${RECIPE_VARIABLE}", folder=home)
    return RunFacts(recipe, Path(table["out"]), home)


KINDS = ("grpo", "aipo", "dppo")
"""Objectives with one pass over a micro-batch."""


def refuse_what_differs(recipe: TrainRecipe) -> None:
    """Raise ConfigError for settings that verl lacks."""
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
        f"objective.kind = {objective.kind!r} needs a second pass or has no groups, which verl lacks": (
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
        **{f"{name} is for the embedded engine; leave it out": value for name, value in embedded_only.items()},
    }
    if reasons := "; ".join(reason for reason, holds in refusals.items() if holds):
        raise ConfigError(
            f'recipe {recipe.name}: not with engine = "verl": {reasons}. Or train with engine = "embedded".'
        )


def replacements(recipe: TrainRecipe) -> list[str]:
    """Return the differences to the embedded engine as sentences."""
    collector, objective = recipe.collector, recipe.objective
    variant = objective.variant if isinstance(objective, GroupCreditSettings) else None
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
            getattr(objective, "entropy_coef", 0.0) and variant is not None and variant.loss_aggregation == "group"
        ),
        "A rollout with the max number of tokens counts as truncated, even if the last one ends it.": (
            variant is not None and variant.mask_truncated
        ),
        "Each stage is a process of verl over one folder: a plateau ends it at the next checkpoint (every "
        f"{recipe.checkpoints.every} steps), and rollouts in flight are sampled again.": recipe.stages,
        "Tokens with an impossible log-probability are left out of the loss, but count in its denominators.": True,
        "verl clips and averages gradients, and forms micro-batches itself: sums differ in rounding only.": True,
        "verl starts vLLM with seeds of its own, so two runs do not draw the same tokens.": True,
        f"verl leaves out prompts longer than {MAX_PROMPT_TOKENS} tokens before the run.": True,
        "The model is not checked as the embedded engine checks it.": True,
    }
    return [remark for remark, applies in remarks.items() if applies]
