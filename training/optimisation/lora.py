"""Train low-rank adapters (LoRA, arXiv 2106.09685) in place of all weights, with peft.

There is no dropout, so the trainer scores the policy that sampled. Experts, router, embedding and output layer stay
frozen.

Invariant: before the first step the policy equals the model.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from curation.records import ConfigError
from training.config import LoraSettings
from training.optimisation.model import checkpoint_source, with_prefix

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_BASE, _NAME = ".base_layer.", "default"
"""peft's names of an adapted layer and its adapter."""


ALPHA_PER_RANK = 2
"""alpha / rank, the factor of an adapter's output."""

_OF_EXPERTS = frozenset(("gate", "gate_proj", "up_proj", "down_proj", "w1", "w2", "w3"))
"""peft's names of a mixture's experts and router."""


class Adapters:
    """The adapters of a model, whose other weights are frozen."""

    def __init__(self, model: PreTrainedModel, settings: LoraSettings, seed: int) -> None:
        try:
            from peft import LoraConfig, inject_adapter_in_model
            from peft.tuners.lora import Linear
        except ImportError as error:
            raise ConfigError(
                f"[lora] needs peft, which cannot be imported here ({error}); pip install 'goldilocks-rl[lora]', or "
                "leave the table out"
            ) from error
        self.settings = settings
        config = LoraConfig(
            r=settings.rank,
            lora_alpha=ALPHA_PER_RANK * settings.rank,
            lora_dropout=0.0,
            target_modules=list(_targets(model)),
            task_type="CAUSAL_LM",
        )
        try:
            with torch.random.fork_rng(), warnings.catch_warnings():
                warnings.filterwarnings("ignore", message="The following (rank|alpha)_pattern keys")  # of experts
                torch.manual_seed(seed)
                inject_adapter_in_model(config, model)
        except (ValueError, TypeError) as error:
            raise ConfigError(f"[lora]: peft cannot adapt model {model.config.model_type}: {error}") from error
        adapted = [name for name, module in model.named_modules() if hasattr(module, "lora_A")]
        if odd := [name for name in adapted if type(model.get_submodule(name)) is not Linear]:
            raise ConfigError(f"[lora]: {odd[0]} is no plain linear layer; leave the table out")
        self._config = config

    def merged(self, name: str, state: Mapping[str, Tensor], whole: Callable[[Tensor], Tensor]) -> Tensor:
        """Return the tensor with its adapter, if any; all ranks gather it together."""
        value = whole(state[name])
        stem, base, kind = name.rpartition(_BASE)
        if not base or kind != "weight":
            return value
        down, up = (whole(state[f"{stem}.lora_{letter}.{_NAME}.weight"]) for letter in "AB")
        return torch.addmm(value, up, down, alpha=ALPHA_PER_RANK)

    def write(self, folder: Path, tensors: Mapping[str, Tensor], model: PreTrainedModel, base: str) -> None:
        """Write whole tensors for ``PeftModel.from_pretrained(model, folder)``; ``base`` names the model."""
        from safetensors.torch import save_file

        prefixes = checkpoint_source(model).prefixes
        folder.mkdir(parents=True)
        self._config.base_model_name_or_path = base
        self._config.inference_mode = True
        self._config.save_pretrained(str(folder))
        named = {
            f"base_model.model.{with_prefix(name, prefixes).replace(f'.{_NAME}.', '.')}": value.detach().contiguous()
            for name, value in tensors.items()
        }
        save_file(named, folder / "adapter_model.safetensors", metadata={"format": "pt"})


def plain_name(name: str) -> str:
    """Return a tensor's name without adapters."""
    return name.replace(_BASE, ".")


def is_adapter(name: str) -> bool:
    return f".{_NAME}.weight" in name and (".lora_A." in name or ".lora_B." in name)


def _targets(model: PreTrainedModel) -> tuple[str, ...]:
    layers = model.get_decoder().layers
    modules = [(name, module) for layer in layers for name, module in layer.named_modules()]
    linear = {name.rpartition(".")[2] for name, module in modules if isinstance(module, nn.Linear)}
    if any(name.endswith("experts") for name, _ in modules):
        linear -= _OF_EXPERTS
    if not linear:
        raise ConfigError(
            f"[lora]: the layers of model {model.config.model_type} have no linear layer to adapt; leave the table out"
        )
    return tuple(sorted(linear))
