"""Keep packed sequences apart in layers that carry a state from token to token.

Invariant: such a layer refuses to run without boundaries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from curation.policies.checkpoints import carries_state
from training.config import PackingSettings
from training.optimisation.attention import PackedLayout

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_MIXERS = ("linear_attn", "conv", "mamba")
"""Their names in transformers' layers."""

_KNOWN = frozenset({"linear_attention", "conv", "mamba", "hybrid"})
"""Their kinds in configurations."""


def packing_for(model: PreTrainedModel, settings: PackingSettings) -> tuple[PackingSettings, str | None]:
    """Return this model's packing, and why it differs from ``settings``, if it does."""
    config: Any = model.config
    kinds = set(getattr(config, "layer_types", None) or ())
    known = bool(_mixers(model)) and not carries_state({"layer_types": [*kinds - _KNOWN]})
    if settings.single or known or not carries_state(config.to_dict()):
        return settings, None
    return settings.model_copy(update={"single": True}), (
        f"model {config.model_type} has layers that may carry a state from token to token, so a micro-batch is one "
        "sequence, as with packing.single = true."
    )


def keep_sequences_apart(model: PreTrainedModel) -> None:
    """Reset layers that carry a state at each packed sequence."""
    for layer, mixer in _mixers(model):
        mixer.forward = _Apart(mixer.forward)
        layer.register_forward_pre_hook(mixer.forward.take_layout, with_kwargs=True)


@contextmanager
def as_transformers_has_them(model: PreTrainedModel) -> Iterator[None]:
    """Restore the layers' own forward pass within the block."""
    changed = [(mixer, mixer.forward) for _, mixer in _mixers(model) if isinstance(mixer.forward, _Apart)]
    for mixer, apart in changed:
        mixer.forward = apart.whole
    try:
        yield
    finally:
        for mixer, apart in changed:
            mixer.forward = apart


def _mixers(model: PreTrainedModel) -> list[tuple[nn.Module, Any]]:
    """Return the layers that carry a state, with the module that does."""
    layers = getattr(model.get_decoder(), "layers", ())
    return [
        (layer, getattr(layer, name)) for layer in layers for name in _MIXERS if getattr(layer, name, None) is not None
    ]


class _Apart:
    def __init__(self, forward: Callable[[Tensor], Tensor]) -> None:
        self.whole = forward
        """The layer's own forward pass."""
        self._layout: PackedLayout | None = None

    def take_layout(self, _: nn.Module, __: tuple[Any, ...], given: dict[str, Any]) -> None:
        self._layout = given.get("layout")

    def __call__(self, hidden_states: Tensor, *_: Any, **__: Any) -> Tensor:
        if self._layout is None:
            raise ValueError("a layer that carries a state needs the boundaries; call the model through PackedPolicy")
        return self._layout.compute([hidden_states[0]], self.whole)[None]
