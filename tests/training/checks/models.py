"""Tiny random models of real families, in folders with the embedded model's tokenizer."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import torch

from tests.training.optimisation.test_trainer import recipe
from training.embedded_model import WEIGHTS
from training.optimisation.distributed import DistributedContext
from training.optimisation.trainer import Trainer
from training.recipe import TrainRecipe

VOCABULARY = 640
WORDS = range(3, 600)
"""Tokens that mean nothing special."""

_EXPERTS = {"head_dim": 32, "moe_intermediate_size": 64, "num_experts": 8, "num_experts_per_tok": 2}
FAMILIES: dict[str, dict[str, Any]] = {
    "Llama": {"tie_word_embeddings": True},
    "Qwen3": {"head_dim": 32},
    "Qwen3Moe": _EXPERTS,
    "Lfm2": {"layer_types": ["conv", "full_attention", "conv"]},
    "Qwen3Next": {
        **_EXPERTS,
        "num_hidden_layers": 4,
        "shared_expert_intermediate_size": 64,
        "linear_num_value_heads": 4,
        "linear_num_key_heads": 2,
        "linear_key_head_dim": 16,
        "linear_value_head_dim": 16,
    },
    "Phi": {"resid_pdrop": 0.3},
}


def make_model(family: str, folder: Path, **changes: Any) -> Path:
    """Write a model whose distributions are not flat."""
    import transformers

    torch.manual_seed(0)
    settings = {
        "vocab_size": VOCABULARY,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 3,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "initializer_range": 0.3,
        "max_position_embeddings": 512,
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 2,
        **FAMILIES[family],
        **changes,
    }
    config = getattr(transformers, f"{family}Config")(**settings)
    getattr(transformers, f"{family}ForCausalLM")(config).save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        shutil.copy(WEIGHTS / name, folder / name)
    return folder


def trainer_of(folder: Path, **changes: Any) -> Trainer:
    """A trainer on one process, of the recipe that `recipe_of` makes."""
    made = recipe_of(**changes)
    return Trainer(folder, made, DistributedContext(made.compute))


def recipe_of(**changes: Any) -> TrainRecipe:
    return recipe(packing={"micro_batch_tokens": 4096, **changes.pop("packing", {})}, **changes)
