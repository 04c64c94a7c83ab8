"""A training recipe as prime-rl's configuration file, for the set that `goldilocks export --format verifiers` writes.

Nothing is started: prime-rl's `rl` reads the file. What its schema can say of a recipe is said; what it cannot is told
by `differences`. Written for prime-rl at 559b447 (its `prime-rl-configs` 0.4.0), which checks it in a test.

Pure.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from training.config import ADAM_BETAS, MAX_GRAD_NORM
from training.engines.placement import VerlPlacement
from training.engines.verl.settings import MAX_PROMPT_TOKENS
from training.recipe import TrainRecipe

TASKSET = "goldilocks-taskset"
"""The package that the export writes, as verifiers finds it."""

_SPARE = 1
"""Tokens: prime-rl wants room behind the longest sequence."""


def prime_rl_configuration(recipe: TrainRecipe, placement: VerlPlacement, model: Path, out: Path) -> dict[str, Any]:
    """Return the table of prime-rl's `rl.toml`.

    Args:
        placement: which GPUs train and which generate.
        model: folder of the model to start from.
        out: where prime-rl writes, a folder by the recipe's name.
    """
    collector, optim = recipe.collector, recipe.optim
    max_tokens = recipe.rewards.max_length
    length = MAX_PROMPT_TOKENS + max_tokens + _SPARE
    source = {
        "name": recipe.name,
        "env": {
            "taskset": {"id": TASKSET},
            "agent": {"harness": {"id": "null"}, "runtime": {"type": "subprocess"}},
        },
    }
    return {
        "max_steps": recipe.steps,
        "seq_len": length,
        "output_dir": str(out),
        "run": {"name": recipe.name},
        "model": {"name": str(model)},
        "ckpt": {"interval": recipe.checkpoints.every, "keep_last": recipe.checkpoints.keep},
        "deployment": _deployment(placement),
        **({"slurm": {"job_name": recipe.name}} if placement.trainer_nodes > 1 else {}),  # the one way to several nodes
        "trainer": {
            "optim": {
                "type": "adamw",
                "lr": optim.learning_rate,
                "betas1": ADAM_BETAS[0],
                "betas2": ADAM_BETAS[1],
                "weight_decay": 0.0,
                "max_norm": MAX_GRAD_NORM,
            },
            "scheduler": {"type": "linear", "warmup_steps": optim.warmup_steps, "decay_steps": 0},
            "model": {
                "cp": recipe.verl.sequence_parallel,
                **({"ac": {}} if recipe.compute.activation_checkpointing else {}),
            },
        },
        "orchestrator": {
            "batch_size": collector.n_batch,
            "group_size": collector.group_size,
            "max_off_policy_steps": collector.max_staleness,
            "concurrency": {"initial_inflight": collector.n_async, "max_inflight": collector.n_async},
            "algo": {"type": "grpo"},
            "renderer": {"name": "default"},  # the model's own chat template, as here
            "train": {
                "sampling": {"temperature": recipe.temperature, "max_completion_tokens": max_tokens},
                "source": [source],
            },
        },
        "inference": {
            "vllm": {
                "max_model_len": length,
                "tensor_parallel_size": recipe.tensor_parallel,
                "gpu_memory_utilization": 0.9,
            },
        },
    }


def differences(recipe: TrainRecipe) -> list[str]:
    """Return what of a recipe prime-rl does otherwise, a sentence each."""
    told = [
        "The loss is prime-rl's own: tokens whose ratio has left its bounds are masked, where the paper clips; its "
        "bounds are prime-rl's.",
        "Advantages are rewards less their group's mean, not divided by the minibatch's deviation.",
        "The reward is 1 or 0 by our judge: the taskset knows neither the format's part nor those for length and "
        "language.",
        "Groups older than max_staleness are dropped; here nothing is dropped for its age.",
        "A batch is one optimiser step.",
        "The system prompt is that of the export.",
    ]
    if recipe.curriculum is not None:
        told.append("The curriculum does not act.")
    if recipe.stored is not None:
        told.append("Stored attempts are not trained on.")
    if recipe.evaluation.data is not None:
        told.append("Held-out problems are not evaluated; add an [orchestrator.eval] table.")
    return told


def _deployment(placement: VerlPlacement) -> dict[str, Any]:
    if placement.trainer_nodes == 1 and placement.rollout_nodes == 1 and placement.rollout_gpus < 8:
        return {
            "type": "single_node",
            "gpus_per_node": placement.trainer_gpus + placement.rollout_gpus,
            "num_train_gpus": placement.trainer_gpus,
            "num_infer_gpus": placement.rollout_gpus,
        }
    return {
        "type": "multi_node",
        "gpus_per_node": placement.trainer_gpus,
        "num_train_nodes": placement.trainer_nodes,
        "num_infer_nodes": placement.rollout_nodes,
    }
