"""Vectors of texts that are compared again and again, kept on disk: a benchmark is embedded once.

The file is named by a hash of the embedder's name and of the texts, so that another model or another text never takes
old vectors. Only the last vectors are kept in a folder.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from curation.embeddings.base import Embedder, Floats, OnOutcome
from curation.records import RequestRefused
from curation.storage.stages import atomic_replace


class KeptVectors:
    """An `Embedder` that keeps what it computed last in a folder, for texts that do not change between starts."""

    def __init__(self, embedder: Embedder, folder: Path) -> None:
        self.name = embedder.name
        self._embedder, self._folder = embedder, folder

    def embed(self, texts: Sequence[str], on_outcome: OnOutcome | None = None) -> Floats:
        """Return the vectors of these texts, computed now or before; nothing is kept where one was refused."""
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
