"""A tiny random model of every family, as its maker publishes it: with transformers' own classes and names on disk.

A line of `families.jsonl` is a family: its class, how its settings differ from `SIZES` (with ``text``, those of the
text part of a larger model), notes for the page of families, and the type in which a slow test loads it in vLLM.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import torch
import transformers

from tests.embedded_model.make import make_tokenizer

WINDOW = 8
SIZES: dict[str, Any] = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "max_position_embeddings": 512,
    "initializer_range": 0.08,
}
_ROWS = [json.loads(line) for line in Path(__file__).with_suffix(".jsonl").read_text().splitlines()]
FAMILIES: Mapping[str, dict[str, Any]] = {row["family"]: row for row in _ROWS}
"""All families, those that are refused too."""
TRAINED = [row["family"] for row in _ROWS if "refused" not in row]
IN_VLLM: Mapping[str, str] = {row["family"]: row["vllm"] for row in _ROWS if "vllm" in row}


def settings_of(family: str) -> dict[str, Any]:
    row = FAMILIES[family]
    if "text" in row:
        return {"text_config": {**SIZES, **row["text"]}, **row["settings"]}
    sizes = {name: size for name, size in SIZES.items() if name not in row.get("without", ())}
    return sizes | row["settings"]


@cache
def _tokenizer() -> Any:
    return make_tokenizer(seed=5, texts=300)


def make_family(family: str, folder: Path, seed: int = 1) -> Path:
    """Write a model of this family with random weights, and the tokenizer of the tests, as ``folder``."""
    tokenizer, settings = _tokenizer(), settings_of(family)
    special = {f"{name}_token_id": getattr(tokenizer, f"{name}_token_id") for name in ("bos", "eos", "pad")}
    settings.get("text_config", settings).update(special, vocab_size=len(tokenizer))
    kind = getattr(transformers, FAMILIES[family]["class"])
    torch.manual_seed(seed)
    model = kind(kind.config_class(**settings)).eval()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def families_table() -> list[str]:
    """The rows of docs/reference/model-families.md: how each is sampled with torch, and what was seen of it in vLLM."""
    rows = []
    for row in map(FAMILIES.__getitem__, TRAINED):
        torch_way = "together" if row["class"] in ("LlamaForCausalLM", "Qwen2ForCausalLM") else "one by one"
        seen = {None: "", "float32": "yes", "bfloat16": "yes, in bfloat16"}[row.get("vllm")]
        seen = "not seen: needs torchvision" if "text" in row and seen else seen
        notes = ("text part of a larger model" if "text" in row else "", row.get("notes", ""))
        rows.append(f"| `{row['class']}` | {', '.join(filter(None, notes))} | {torch_way} | {seen} |")
    return rows


def text_model(folder: Path) -> Any:
    """The text side of a folder as transformers alone loads it: tokens to logits."""
    config = transformers.AutoConfig.from_pretrained(folder)
    model: Any = getattr(transformers, config.architectures[0]).from_pretrained(folder, dtype=torch.float32)
    if getattr(config.get_text_config(), "attn_logit_softcapping", None):
        model.set_attn_implementation("eager")
    return model.eval()
