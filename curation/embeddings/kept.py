"""Stores vectors in a file named by a hash of embedder and texts."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from curation.embeddings.base import Embedder, Floats, OnOutcome
from curation.records import RequestRefused
from curation.storage.stages import atomic_replace


class KeptVectors:
    """An `Embedder` that stores its last vectors in a folder."""

    def __init__(self, embedder: Embedder, folder: Path) -> None:
        self.name = embedder.name
        self._embedder, self._folder = embedder, folder

    def embed(self, texts: Sequence[str], on_outcome: OnOutcome | None = None) -> Floats:
        """Return stored or new vectors; if texts were refused, store nothing."""
        total = hashlib.blake2b(self.name.encode(), digest_size=12)
        for text in texts:
            total.update(hashlib.blake2b(text.encode("utf-8", "surrogatepass")).digest())
        file = self._folder / f"{total.hexdigest()}.npy"
        if file.exists():
            kept: Floats = np.load(file)
            return kept
        refused: list[int] = []

        def note(place: int, why: RequestRefused | None) -> None:
            if why is not None:
                refused.append(place)
            if on_outcome is not None:
                on_outcome(place, why)

        vectors = self._embedder.embed(texts, None if on_outcome is None else note)
        if refused:
            return vectors
        for old in self._folder.glob("*.npy"):
            old.unlink()
        with atomic_replace(file) as handle:
            np.save(handle, vectors)
        return vectors
