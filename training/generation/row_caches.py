"""Decode row by row with transformers' caches, for models with other states than keys and values."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from torch import Tensor, stack

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class RowCaches:
    """A transformers cache for each used row."""

    def __init__(self) -> None:
        self.rows: dict[int, Any] = {}

    def copy_rows(self, sources: Sequence[int], targets: Sequence[int], length: int) -> None:  # noqa: ARG002
        """Copy whole rows; no row is both source and target."""
        for source, target in zip(sources, targets, strict=True):
            self.rows[target] = deepcopy(self.rows[source])


class RowForwardPass:
    """The model's own forward pass, row by row."""

    def __init__(self, model: PreTrainedModel) -> None:
        self._model = model

    def new_cache(self, rows: int) -> RowCaches:  # noqa: ARG002
        """Return an empty cache."""
        return RowCaches()

    def prefill(self, ids: Tensor, lengths: Tensor, rows: Tensor, cache: RowCaches) -> Tensor:
        """Run prompts, see `training.generation.forward.ForwardPass.prefill`."""
        from transformers import DynamicCache

        logits = []
        for prompt, length, row in zip(ids, lengths.tolist(), rows.tolist(), strict=True):
            cache.rows[row] = DynamicCache(config=self._model.config)
            logits.append(self._run(prompt[None, :length], cache.rows[row]))
        return stack(logits)

    def decode(self, last: Tensor, positions: Tensor, cache: RowCaches) -> Tensor:  # noqa: ARG002 - caches count
        """Run one more token, see `training.generation.forward.ForwardPass.decode`."""
        return stack([self._run(token[None, None], cache.rows[row]) for row, token in enumerate(last)])

    def _run(self, ids: Tensor, cache: Any) -> Tensor:
        logits: Tensor = self._model(input_ids=ids, past_key_values=cache, use_cache=True, logits_to_keep=1).logits
        return logits[0, -1]


def keeps_all_keys(model: Any) -> bool:
    """Return whether each layer keeps the keys and values of all tokens, and nothing else."""
    from transformers import DynamicCache
    from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

    config: Any = model.config
    layers = DynamicCache(config=config).layers
    return len(layers) == config.num_hidden_layers and all(
        type(layer) is DynamicLayer
        or (type(layer) is DynamicSlidingWindowLayer and layer.sliding_window >= config.max_position_embeddings)
        for layer in layers
    )
