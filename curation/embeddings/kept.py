"""Stores vectors in a file named by a hash of embedder and texts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from curation.embeddings.base import Embedder, Floats
from curation.storage.stages import atomic_replace


class KeptVectors:
    """An `Embedder` that stores its last vectors in a folder."""

    def __init__(self, embedder: Embedder, folder: Path) -> None:
        self.name = embedder.name
        self._embedder, self._folder = embedder, folder

    def embed(self, texts: Sequence[str]) -> Floats:
        """Return stored or new vectors."""
        digest = hashlib.blake2b(json.dumps([self.name, *texts]).encode(), digest_size=12).hexdigest()
        file = self._folder / f"{digest}.npy"
        if not file.exists():
            vectors = self._embedder.embed(texts)
            for old in self._folder.glob("*.npy"):
                old.unlink()
            with atomic_replace(file) as handle:
                np.save(handle, vectors)
        kept: Floats = np.load(file)
        return kept
