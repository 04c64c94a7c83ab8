"""Defines embedders, their batching and pooling.

Invariants: a vector depends only on the text and `name`, up to a float's last bits; its length is 1, or 0 if refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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


def batches_by_length(lengths: Sequence[int], size: int) -> Iterator[list[int]]:
    """Yield batches of texts' indices, shortest first."""
    order = sorted(range(len(lengths)), key=lambda place: lengths[place])
    for first in range(0, len(order), size):
        yield order[first : first + size]


def padded(tokens: Sequence[Sequence[int]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return token ids and mask, texts × longest; empty texts get a masked token."""
    longest = max(1, *(len(ids) for ids in tokens))
    ids = np.zeros((len(tokens), longest), dtype=np.int64)
    mask = np.zeros((len(tokens), longest), dtype=np.int64)
    for line, some in enumerate(tokens):
        ids[line, : len(some)] = some
        mask[line, : len(some)] = 1
    return ids, mask


def mean_pooled(encoded: Floats, mask: NDArray[np.int64]) -> Floats:
    """Return mean vectors, from texts × tokens × width."""
    summed = (encoded * mask[:, :, None].astype(np.float32)).sum(axis=1)
    means: Floats = summed / np.maximum(1, mask.sum(axis=1, keepdims=True)).astype(np.float32)
    return means


def scaled(vectors: Floats) -> Floats:
    """Return vectors of length 1; zeros stay."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Floats = (vectors / np.maximum(lengths, np.float32(1e-12))).astype(np.float32)
    return unit
