"""Defines embedders.

Invariants: a vector depends only on the text and `name`, up to a float's last bits; its length is 1, or 0 if refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from curation.records import RequestRefused

Floats = NDArray[np.float32]

OnOutcome = Callable[[int, RequestRefused | None], None]
"""Called with a text's index, and why it was refused, or None."""


class Embedder(Protocol):
    """Turns texts into vectors."""

    @property
    def name(self) -> str:
        """Return what vectors depend on besides their texts."""
        ...

    def embed(self, texts: Sequence[str], on_outcome: OnOutcome | None = None) -> Floats:
        """Return unit vectors, texts × width; without ``on_outcome`` the first refusal is raised.

        Raises:
            GoldilocksError: the model is missing or fails.
        """
        ...


def scaled(vectors: Floats) -> Floats:
    """Return vectors of length 1; zeros stay."""
    unit: Floats = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.float32(1e-12))
    return unit
