"""Adapters of low rank (LoRA, arXiv 2106.09685) in the place of all weights, by peft.

Linear layers inside the decoder's layers get two small matrices each, W + alpha / rank * B A, of which A begins random
by the run's seed and B zero; nothing else is trained. There is no dropout: with it the trainer would score another
policy than the one that sampled. Whoever gets weights from the trainer (generators, exports, published versions) gets
whole ones with the adapters added in fp32, so no one there needs to know of them. The adapters alone are written too,
as peft loads them.

Invariants: before the first step the policy is the model, exactly; frozen weights never change, so a checkpoint holds
the adapters and their optimiser state alone, and names the model that they belong to. The experts of a mixture (and
layers of their names), its router, embedding and output layer stay frozen.

Not here: training them (`training.optimisation.trainer`). peft is imported where adapters are asked for.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from curation.records import ConfigError
from training.config import LoraSettings
from training.optimisation.checkpoint_names import checkpoint_source, with_prefix
from training.optimisation.text_part import decoder_of

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_BASE, _NAME = ".base_layer.", "default"
"""How peft calls the layer that an adapter is added to, and the one adapter that there is."""


ALPHA_PER_RANK = 2
"""alpha / rank, by which what an adapter adds is multiplied."""

_OF_EXPERTS = frozenset(("gate", "gate_proj", "up_proj", "down_proj", "w1", "w2", "w3"))
"""Names that peft takes for the experts and the router of a mixture, wherever they are in it."""


class Adapters:
    """The adapters of one model, which are added to it here; every other weight is frozen.

    Args:
        model: its layers are wrapped by peft's; its class stays what it is.
        settings: the rank.
        seed: of the matrices that begin random.

    Raises:
        ConfigError: peft is not installed, or cannot adapt this model.
    """

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
        self._scale = ALPHA_PER_RANK
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
            raise ConfigError(f"[lora]: peft adapts no {model.config.model_type} so: {error}") from error
        adapted = [name for name, module in model.named_modules() if hasattr(module, "lora_A")]
        if odd := [name for name in adapted if type(model.get_submodule(name)) is not Linear]:
            raise ConfigError(f"[lora]: {odd[0]} is no plain linear layer; leave the table out")
        self._config = config

    def described(self) -> dict[str, Any]:
        """Return what a checkpoint keeps of the settings, to be compared when it is gone on from."""
        return self.settings.model_dump(mode="json")

    def merged(self, name: str, state: Mapping[str, Tensor], whole: Callable[[Tensor], Tensor]) -> Tensor:
        """Return a tensor of the plain model: that of ``state``, with its adapter added where it has one.

        Args:
            name: its name in ``state``, the model's state dict with the adapters.
            whole: makes a tensor of a shard; all ranks call this together.
        """
        value = whole(state[name])
        stem, base, kind = name.rpartition(_BASE)
        if not base or kind != "weight":
            return value
        down, up = (whole(state[f"{stem}.lora_{letter}.{_NAME}.weight"]) for letter in "AB")
        return torch.addmm(value, up, down, alpha=self._scale)

    def write(self, folder: Path, tensors: Mapping[str, Tensor], model: PreTrainedModel, base: str) -> None:
        """Write the adapters as peft loads them: ``PeftModel.from_pretrained(model, folder)``.

        Args:
            tensors: `adapter_tensors` of the model's state dict, whole.
            base: the model that they belong to, as the recipe names it.
        """
        from safetensors.torch import save_file

        source = checkpoint_source(model)
        prefixes = source.prefixes if source is not None else ()
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
    """Return the name that a tensor has in the model without adapters."""
    return name.replace(_BASE, ".")


def is_adapter(name: str) -> bool:
    """Return whether this is an adapter's tensor."""
    return f".{_NAME}.weight" in name and (".lora_A." in name or ".lora_B." in name)


def _targets(model: PreTrainedModel) -> tuple[str, ...]:
    """Return the names of the linear layers that get adapters: all inside a layer.

    Raises:
        ConfigError: the model has no such layer.
    """
    layers = decoder_of(model).layers
    modules = [(name, module) for layer in layers for name, module in layer.named_modules()]
    linear = {name.rpartition(".")[2] for name, module in modules if isinstance(module, nn.Linear)}
    if any(name.endswith("experts") for name, _ in modules):
        linear -= _OF_EXPERTS
    if not linear:
        raise ConfigError(f"[lora]: the layers of model {model.config.model_type} hold no linear layer to adapt")
    return tuple(sorted(linear))
