"""Defines embedders.

Invariant: a vector depends only on the text and `name`, up to a float's last bits; its length is 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


class Embedder(Protocol):
    """Turns texts into vectors."""

    @property
    def name(self) -> str:
        """Return what vectors depend on besides their texts."""
        ...

    def embed(self, texts: Sequence[str]) -> Floats:
        """Return unit vectors, texts × width."""
        ...
