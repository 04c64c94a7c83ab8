"""Take the text model out of a larger one, such as Mistral3 or Gemma3."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from curation.records import ConfigError, PolicyError
from training.optimisation.checkpoint_names import remember_source

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_LOGITS: dict[str, tuple[tuple[str, ...], Callable[[Tensor, float], Tensor]]] = {
    # setting: (beginnings of the model types that mean it so, what they do)
    "final_logit_softcapping": (("",), lambda logits, cap: torch.tanh(logits / cap) * cap),
    "logit_scale": (("cohere",), lambda logits, scale: logits * scale),
    "logits_scaling": (("granite",), lambda logits, scale: logits / scale),
    "lm_head_multiplier": (("falcon_h1",), lambda logits, scale: logits * scale),
}


def load_causal_model(folder: Path, dtype: torch.dtype, *, empty: bool = False) -> PreTrainedModel:
    """Return a folder's causal language model, or a larger model's text part; ``empty``: without memory."""
    import transformers
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.from_pretrained(folder, local_files_only=True)
    text_config = config.get_text_config(decoder=True)
    kind: Any = AutoModelForCausalLM
    if text_config is not config:
        published = (config.architectures or ("no class",))[0]
        if (kind := getattr(transformers, published, None)) is None:
            raise PolicyError(
                f"the checkpoint's config.json names {published} under `architectures`, which this version of "
                "transformers does not know; take another model, or a newer transformers"
            )
    text_kind = AutoModelForCausalLM._model_mapping.get(type(text_config), None)
    knows_sdpa = text_kind is None or getattr(text_kind, "_supports_sdpa", True)
    is_plain = knows_sdpa and not getattr(text_config, "attn_logit_softcapping", None)
    attention = "sdpa" if is_plain else "eager"  # sdpa has neither soft-capping nor sinks
    options: dict[str, Any] = {"dtype": dtype, "attn_implementation": attention}
    if empty:
        build = kind.from_config if kind is AutoModelForCausalLM else kind._from_config
        with torch.device("meta"):
            model = build(config, **options)
    else:
        model, report = kind.from_pretrained(folder, **options, local_files_only=True, output_loading_info=True)
        if missing := sorted(report["missing_keys"]):
            raise PolicyError(
                f"{folder}: the weights lack {len(missing)} tensors of this model, first {missing[0]}; download it "
                "again"
            )
    if kind is not AutoModelForCausalLM:
        return _text_part(model, folder, attention)
    remember_source(model, folder)
    causal: PreTrainedModel = model
    return causal


def logits_of(model: PreTrainedModel, head: Callable[[Tensor], Tensor] | None = None) -> Callable[[Tensor], Tensor]:
    """Return the map from hidden states to logits, with changes after the output layer."""
    layer: Callable[[Tensor], Tensor] = head or model.get_output_embeddings()
    config: Any = model.config
    changes: list[tuple[Callable[[Tensor, float], Tensor], float]] = []
    for setting, (kinds, change) in _LOGITS.items():
        value = getattr(config, setting, None)
        if value in (None, 1, 1.0):
            continue
        if not config.model_type.startswith(kinds):
            raise ConfigError(f"model {config.model_type} sets {setting}, whose meaning there is not known here.")
        changes.append((change, float(value)))

    def changed(hidden: Tensor) -> Tensor:
        logits: Tensor = layer(hidden)
        for change, value in changes:
            logits = change(logits, value)
        return logits

    return changed if changes else layer


def _text_part(whole: PreTrainedModel, folder: Path, attention: str) -> PreTrainedModel:
    from transformers import AutoModelForCausalLM

    decoder, head = whole.get_decoder(), whole.get_output_embeddings()
    if type(decoder.config) not in AutoModelForCausalLM._model_mapping or head is None:
        raise PolicyError(
            f"{folder}: transformers has no causal language model for the text part ({decoder.config.model_type}) of "
            f"{type(whole).__name__}; take a text model of this family"
        )
    with torch.device("meta"):
        causal = AutoModelForCausalLM.from_config(decoder.config, attn_implementation=attention)
    frame = causal.get_decoder()
    inner = next(name for name, module in causal.named_modules() if module is frame)
    inner_head = next(name for name, module in causal.named_modules() if module is causal.get_output_embeddings())
    outer = {id(module): name for name, module in whole.named_modules()}
    prefixes = ((f"{inner}.", f"{outer[id(decoder)]}."), (f"{inner_head}.", f"{outer[id(head)]}."))
    causal.set_submodule(inner, decoder)
    causal.set_output_embeddings(head)
    causal.config, causal.generation_config = decoder.config, whole.generation_config
    _keep_only(whole, {id(decoder), id(head)})
    remember_source(causal, folder, whole, prefixes)
    return causal


def _keep_only(module: nn.Module, kept: set[int]) -> bool:
    if id(module) in kept:
        return True
    holds = {name: _keep_only(child, kept) for name, child in module.named_children()}
    for name, held in holds.items():
        if not held:
            setattr(module, name, None)
    return any(holds.values())
