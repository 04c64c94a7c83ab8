"""A tiny random model of every family, as its maker publishes it: with transformers' own classes and names on disk."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import torch

from tests.embedded_model.make import make_tokenizer

WINDOW = 8
_SIZES: dict[str, Any] = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "max_position_embeddings": 512,
    "initializer_range": 0.08,
}
_EXPERTS: dict[str, Any] = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
_LINEAR: dict[str, Any] = {
    "linear_key_head_dim": 128,
    "linear_value_head_dim": 128,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "layer_types": ["linear_attention", "full_attention"],
}
_PIXTRAL: dict[str, Any] = {
    "model_type": "pixtral",
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "image_size": 28,
    "patch_size": 14,
    "head_dim": 16,
}
_SIGLIP: dict[str, Any] = {
    "model_type": "siglip_vision_model",
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "image_size": 28,
    "patch_size": 14,
    "vision_use_head": False,
}
_QWEN_VISION: dict[str, Any] = {
    "depth": 1,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_heads": 2,
    "out_hidden_size": 64,
    "patch_size": 4,
    "num_position_embeddings": 16,
}
_ALTERNATING = ["sliding_attention", "full_attention"]


def _text(model_type: str, **more: Any) -> dict[str, Any]:
    return {"model_type": model_type, **_SIZES, **more}


FAMILIES: Mapping[str, tuple[str, dict[str, Any]]] = {
    # family: (class of transformers, settings of its configuration)
    "llama": ("LlamaForCausalLM", _SIZES),
    "llama_tied": ("LlamaForCausalLM", _SIZES | {"tie_word_embeddings": True}),
    "qwen2": ("Qwen2ForCausalLM", _SIZES | {"tie_word_embeddings": True}),
    "qwen3": ("Qwen3ForCausalLM", _SIZES | {"tie_word_embeddings": True}),
    "mistral": ("MistralForCausalLM", _SIZES | {"sliding_window": None}),
    "mistral_window": ("MistralForCausalLM", _SIZES | {"sliding_window": WINDOW}),
    "mistral3": (
        "Mistral3ForConditionalGeneration",
        {
            "text_config": _text("mistral", sliding_window=None),
            "vision_config": _PIXTRAL,
            "image_token_index": 3,
            "spatial_merge_size": 1,
        },
    ),
    "gemma2": (
        "Gemma2ForCausalLM",
        _SIZES | {"sliding_window": WINDOW, "final_logit_softcapping": 4.0, "attn_logit_softcapping": 3.0},
    ),
    "gemma3_text": ("Gemma3ForCausalLM", _SIZES | {"sliding_window": WINDOW, "layer_types": _ALTERNATING}),
    "gemma3": (
        "Gemma3ForConditionalGeneration",
        {
            "text_config": _text("gemma3_text", sliding_window=WINDOW, layer_types=_ALTERNATING),
            "vision_config": _SIGLIP,
            "mm_tokens_per_image": 4,
            "image_token_index": 3,
            "boi_token_index": 4,
            "eoi_token_index": 5,
        },
    ),
    "granite": ("GraniteForCausalLM", _SIZES | {"logits_scaling": 3.0, "embedding_multiplier": 2.0}),
    "cohere": ("CohereForCausalLM", _SIZES | {"logit_scale": 0.5}),
    "cohere2": (
        "Cohere2ForCausalLM",
        _SIZES | {"logit_scale": 0.5, "sliding_window": WINDOW, "layer_types": _ALTERNATING},
    ),
    "phi3": ("Phi3ForCausalLM", _SIZES),
    "smollm3": ("SmolLM3ForCausalLM", _SIZES | {"no_rope_layers": [1, 0]}),
    "olmo2": ("Olmo2ForCausalLM", _SIZES),
    "glm4": ("Glm4ForCausalLM", _SIZES),
    "mixtral": ("MixtralForCausalLM", _SIZES | {"num_local_experts": 4, "num_experts_per_tok": 2}),
    "qwen3_moe": ("Qwen3MoeForCausalLM", _SIZES | _EXPERTS),
    "glm4_moe": (
        "Glm4MoeForCausalLM",
        _SIZES
        | {
            "n_routed_experts": 4,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 32,
            "n_group": 1,
            "topk_group": 1,
            "first_k_dense_replace": 1,
        },
    ),
    "deepseek_v3": (
        "DeepseekV3ForCausalLM",
        {key: value for key, value in _SIZES.items() if key not in ("head_dim", "num_key_value_heads")}
        | {
            "num_key_value_heads": 4,
            "n_routed_experts": 4,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 32,
            "n_group": 2,
            "topk_group": 1,
            "first_k_dense_replace": 1,
            "kv_lora_rank": 32,
            "q_lora_rank": 32,
            "qk_rope_head_dim": 16,
            "qk_nope_head_dim": 16,
            "v_head_dim": 16,
        },
    ),
    "gpt_oss": (
        "GptOssForCausalLM",
        _SIZES
        | {
            "num_local_experts": 4,
            "num_experts_per_tok": 2,
            "sliding_window": WINDOW,
            "layer_types": _ALTERNATING,
            "rope_parameters": {
                "rope_type": "yarn",
                "rope_theta": 150_000.0,
                "factor": 4.0,
                "beta_fast": 32.0,
                "beta_slow": 1.0,
                "truncate": False,
                "original_max_position_embeddings": 128,
            },
        },
    ),
    "qwen3_next": (
        "Qwen3NextForCausalLM",
        _SIZES | _EXPERTS | _LINEAR | {"shared_expert_intermediate_size": 32},
    ),
    "qwen3_5": (
        "Qwen3_5ForConditionalGeneration",
        {"text_config": _text("qwen3_5_text", **_LINEAR), "vision_config": _QWEN_VISION},
    ),
    "lfm2": (
        "Lfm2ForCausalLM",
        _SIZES | {"layer_types": ["conv", "full_attention"], "conv_dim": 64, "block_dim": 64},
    ),
    "granite_hybrid": (
        "GraniteMoeHybridForCausalLM",
        _SIZES
        | {
            "layer_types": ["mamba", "attention"],
            "num_attention_heads": 2,  # its heads have the width that is left
            "num_key_value_heads": 1,
            "mamba_n_heads": 4,
            "mamba_d_head": 32,
            "mamba_d_state": 16,
            "mamba_expand": 2,
            "num_local_experts": 4,
            "num_experts_per_tok": 2,
            "shared_intermediate_size": 32,
        },
    ),
    "falcon_h1": (
        "FalconH1ForCausalLM",
        _SIZES
        | {"mamba_d_ssm": 128, "mamba_n_heads": 4, "mamba_d_head": 32, "mamba_d_state": 16, "lm_head_multiplier": 0.5},
    ),
}

REFUSED: Mapping[str, tuple[str, dict[str, Any]]] = {
    "llama4": (
        "Llama4ForCausalLM",
        _SIZES | {"num_local_experts": 4, "attention_chunk_size": WINDOW, "intermediate_size_mlp": 96},
    ),
}

IN_VLLM: Mapping[str, str] = {
    "qwen3": "float32",
    "mistral_window": "float32",
    "mistral3": "float32",
    "gemma3": "float32",
    "gemma3_text": "float32",
    "gemma2": "float32",
    "mixtral": "float32",
    "qwen3_moe": "float32",
    "glm4_moe": "float32",
    "gpt_oss": "float32",
    "granite_hybrid": "float32",
    "qwen3_5": "bfloat16",
}
"""Families that the slow tests load in vLLM, and the type: its linear attention on a CPU computes in bfloat16 only."""

_NOTES: Mapping[str, str] = {
    "llama_tied": "tied embedding",
    "qwen2": "tied embedding",
    "qwen3": "tied embedding",
    "mistral_window": "sliding window",
    "gemma2": "sliding windows, soft caps",
    "gemma3_text": "sliding windows",
    "gemma3": "sliding windows",
    "cohere2": "sliding windows, scaled logits",
    "cohere": "scaled logits",
    "granite": "scaled logits",
    "smollm3": "layers without positions",
    "phi3": "one projection for queries, keys and values",
    "mixtral": "mixture of experts",
    "qwen3_moe": "mixture of experts",
    "glm4_moe": "mixture of experts",
    "deepseek_v3": "mixture of experts, latent attention",
    "gpt_oss": "mixture of experts, sliding windows, sinks",
    "qwen3_next": "mixture of experts, linear attention",
    "qwen3_5": "linear attention",
    "lfm2": "convolutions",
    "granite_hybrid": "mixture of experts, state spaces",
    "falcon_h1": "state spaces",
}


@cache
def _tokenizer() -> Any:
    return make_tokenizer(seed=5, texts=300)


def make_family(family: str, folder: Path, seed: int = 1) -> Path:
    """Write a model of this family with random weights, and the tokenizer of the tests, as ``folder``."""
    import transformers

    name, settings = {**FAMILIES, **REFUSED}[family]
    tokenizer = _tokenizer()
    common = {
        "vocab_size": len(tokenizer),
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }
    kind: Any = getattr(transformers, name)
    settings = {key: dict(value) if isinstance(value, dict) else value for key, value in settings.items()}
    settings.get("text_config", settings).update(common)
    torch.manual_seed(seed)
    model = kind(kind.config_class(**settings)).eval()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def families_table() -> list[str]:
    """The rows of docs/reference/model-families.md: how each is sampled with torch, and what was seen of it in vLLM."""

    rows = []
    for family, (name, settings) in FAMILIES.items():
        torch_way = "together" if name in ("LlamaForCausalLM", "Qwen2ForCausalLM") else "one by one"
        larger = "text_config" in settings
        seen = {None: "", "float32": "yes", "bfloat16": "yes, in bfloat16"}[IN_VLLM.get(family)]
        seen = "not seen: needs torchvision" if larger and seen else seen
        notes = ["text part of a larger model"] * larger + [_NOTES.get(family, "")] * (family in _NOTES)
        rows.append(f"| `{name}` | {', '.join(notes)} | {torch_way} | {seen} |")
    return rows


def text_model(folder: Path) -> Any:
    """The text side of a folder as transformers alone loads it: tokens to logits."""
    import transformers

    config = transformers.AutoConfig.from_pretrained(folder)
    model: Any = getattr(transformers, config.architectures[0]).from_pretrained(folder, dtype=torch.float32)
    if getattr(config.get_text_config(), "attn_logit_softcapping", None):
        model.set_attn_implementation("eager")
    return model.eval()
