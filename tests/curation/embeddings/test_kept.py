"""Vectors on disk: computed once, and never taken for another text or another model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from curation.embeddings.base import Floats
from curation.embeddings.kept import KeptVectors


class Counting:
    """Counts how many texts it embeds."""

    def __init__(self, name: str = "a") -> None:
        self.name, self.count = name, 0

    def embed(self, texts: Sequence[str]) -> Floats:
        self.count += len(texts)
        return np.array([[len(text), 1.0] for text in texts], dtype=np.float32)


def test_other_texts_another_order_and_another_model_are_embedded_anew(tmp_path: Path) -> None:
    embedder, other = Counting(), Counting("b")
    for texts in (["a", "bcd"], ["bcd", "a"], ["ab", "cd"], ["a", "bcd", ""]):
        assert (KeptVectors(embedder, tmp_path).embed(texts) == Counting().embed(texts)).all()
    assert embedder.count == 9
    KeptVectors(other, tmp_path).embed(["a", "bcd", ""])
    assert other.count == 3
    assert len(list(tmp_path.iterdir())) == 1
