"""Stores vectors in a file named by a hash of embedder and texts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from curation.embeddings.base import Embedder, Floats, OnOutcome
from curation.records import RequestRefused
from curation.storage.stages import atomic_replace


class KeptVectors:
    """An `Embedder` that stores its last vectors in a folder, unless a text was refused."""

    def __init__(self, embedder: Embedder, folder: Path) -> None:
        self.name = embedder.name
        self._embedder, self._folder = embedder, folder

    def embed(self, texts: Sequence[str], on_outcome: OnOutcome | None = None) -> Floats:
        """Return stored or new vectors."""
        digest = hashlib.blake2b(json.dumps([self.name, *texts]).encode(), digest_size=12).hexdigest()
        file, outcomes = self._folder / f"{digest}.npy", list[RequestRefused | None]()
        if file.exists():
            kept: Floats = np.load(file)
            return kept

        def note(at: int, why: RequestRefused | None) -> None:
            outcomes.append(why)
            if on_outcome is not None:
                on_outcome(at, why)

        vectors = self._embedder.embed(texts, on_outcome and note)
        if not any(outcomes):
            for old in self._folder.glob("*.npy"):
                old.unlink()
            with atomic_replace(file) as handle:
                np.save(handle, vectors)
        return vectors
