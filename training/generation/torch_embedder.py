"""Embeddings of a model in torch and transformers, on a GPU or a CPU, for `curation.embeddings`.

Invariant: the model is named by its folder's hash or by its commit, so another one never takes the vectors of this one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from curation.config.embeddings import TorchEmbedder
from curation.policies.checkpoints import folder_revision
from curation.records import PolicyError, RequestRefused


class TorchVectors:
    """A sentence model in this process.

    Raises:
        PolicyError: the folder holds no weights, or a model of the hub is named without a revision.
    """

    def __init__(self, settings: TorchEmbedder, folder: Path) -> None:
        home = folder / settings.model
        self._settings, self._place = settings, str(home) if home.is_dir() else settings.model
        if not home.is_dir() and settings.revision is None:
            raise PolicyError(
                f"embedder.model {settings.model!r}: there is no such folder in {folder}, and a model of the hub "
                "needs a `revision`."
            )
        state = folder_revision(home) if home.is_dir() else settings.revision
        self.name = f"torch {state} {settings.pooling} {settings.max_tokens} {settings.dtype} {settings.prefix!r}"

    def embed(
        self,
        texts: Sequence[str],
        on_outcome: Callable[[int, RequestRefused | None], None] | None = None,  # noqa: ARG002 - nothing is refused
    ) -> NDArray[np.float32]:
        """Return unit vectors, texts × width of the model."""
        settings, (model, tokenizer, device) = self._settings, self._loaded
        order = sorted(range(len(texts)), key=lambda place: len(texts[place]))  # little padding
        vectors = torch.zeros((len(texts), model.config.hidden_size))
        with torch.inference_mode():
            for first in range(0, len(order), settings.batch):
                places = order[first : first + settings.batch]
                batch = tokenizer(
                    [settings.prefix + texts[place] for place in places],
                    padding=True, truncation=True, max_length=settings.max_tokens, return_tensors="pt",
                ).to(device)  # fmt: skip
                hidden = model(**batch).last_hidden_state.float()
                vectors[places] = _pooled(hidden, batch["attention_mask"], settings.pooling).cpu()
        scaled: NDArray[np.float32] = torch.nn.functional.normalize(vectors, dim=1).numpy()
        return scaled

    @cached_property
    def _loaded(self) -> tuple[Any, Any, str]:
        from transformers import AutoModel, AutoTokenizer

        settings = self._settings
        automatic = "cuda" if torch.cuda.is_available() else "cpu"
        device = automatic if settings.device == "auto" else settings.device
        tokenizer = AutoTokenizer.from_pretrained(self._place, revision=settings.revision or "main")
        model = AutoModel.from_pretrained(
            self._place, revision=settings.revision or "main", dtype=getattr(torch, settings.dtype)
        )
        tokenizer.padding_side = "right"
        if tokenizer.pad_token is None:
            tokenizer.pad_token = tokenizer.eos_token
        return model.to(device).eval(), tokenizer, device


def _pooled(hidden: torch.Tensor, mask: torch.Tensor, pooling: str) -> torch.Tensor:
    """Return one vector per text of texts × tokens × width."""
    if pooling == "cls":
        return hidden[:, 0]
    if pooling == "last":
        return hidden[torch.arange(len(mask)), mask.sum(dim=1) - 1]
    weights = mask.unsqueeze(-1).to(hidden.dtype)
    return (hidden * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1)
