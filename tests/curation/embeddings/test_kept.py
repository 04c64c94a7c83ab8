"""Vectors on disk: computed once, and never taken for another text or another model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from curation.embeddings.base import Floats, OnOutcome
from curation.embeddings.kept import KeptVectors
from curation.records import RequestRefused


class Counting:
    """Counts how many texts it embeds."""

    def __init__(self, name: str = "a") -> None:
        self.name, self.count, self.refuses = name, 0, ""

    def embed(self, texts: Sequence[str], on_outcome: OnOutcome | None = None) -> Floats:
        self.count += len(texts)
        for place, text in enumerate(texts):
            if on_outcome is not None:
                on_outcome(place, RequestRefused("400", "no") if text == self.refuses else None)
        return np.array([[len(text), 1.0] for text in texts], dtype=np.float32)


def test_other_texts_another_order_and_another_model_are_embedded_anew(tmp_path: Path) -> None:
    embedder, other = Counting(), Counting("b")
    for texts in (["a", "bcd"], ["bcd", "a"], ["ab", "cd"], ["a", "bcd", ""]):
        assert (KeptVectors(embedder, tmp_path).embed(texts) == Counting().embed(texts)).all()
    assert embedder.count == 9
    KeptVectors(other, tmp_path).embed(["a", "bcd", ""])
    assert other.count == 3
    assert len(list(tmp_path.iterdir())) == 1


def test_vectors_are_not_kept_where_one_was_refused(tmp_path: Path) -> None:
    embedder, told = Counting(), dict[int, bool]()
    embedder.refuses = "bcd"
    KeptVectors(embedder, tmp_path).embed(["a", "bcd"], lambda place, why: told.update({place: why is None}))
    assert told == {0: True, 1: False}
    assert list(tmp_path.iterdir()) == []
