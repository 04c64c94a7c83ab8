"""Embeddings in torch: those of a tiny BERT, alone and in batches."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from curation.config.embeddings import TorchEmbedder
from curation.records import PolicyError
from flows.run.embedders import open_embedder

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "two", "three", "apples", "pears"]
TEXTS = ["two apples", "three pears two apples three", "", "two"]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a random model of two layers in `m`, and one with other weights in `other`."""
    transformers = pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("bert")
    for name, seed in (("m", 1), ("other", 2)):
        torch.manual_seed(seed)
        config = transformers.BertConfig(
            vocab_size=len(WORDS), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
            max_position_embeddings=32,
        )  # fmt: skip
        transformers.BertModel(config).save_pretrained(folder / name)
        (folder / name / "vocab.txt").write_text("\n".join(WORDS))
        transformers.BertTokenizer(vocab=str(folder / name / "vocab.txt")).save_pretrained(folder / name)
    return folder


def vectors(home: Path, texts: list[str], **changes: object) -> np.ndarray:
    values: dict[str, object] = {"kind": "torch", "model": "m", "batch": 2, "device": "cpu", "max_tokens": 16}
    return open_embedder(TorchEmbedder.model_validate({**values, **changes}), home).embed(texts)


@pytest.mark.parametrize("pooling", ["mean", "cls", "last"])
def test_a_vector_does_not_depend_on_its_company(home: Path, pooling: str) -> None:
    together = vectors(home, TEXTS, pooling=pooling)
    assert together.shape == (4, 16)
    assert np.linalg.norm(together, axis=1) == pytest.approx(1, abs=1e-6)
    for place, text in enumerate(TEXTS):
        assert vectors(home, [text], pooling=pooling)[0] == pytest.approx(together[place], abs=1e-5)


def test_poolings_are_not_the_same(home: Path) -> None:
    mean, cls, last = (vectors(home, TEXTS[:1], pooling=pooling) for pooling in ("mean", "cls", "last"))
    assert min(abs(mean - cls).max(), abs(mean - last).max(), abs(cls - last).max()) > 0.01


def test_a_prefix_counts_and_long_texts_are_cut(home: Path) -> None:
    assert vectors(home, ["apples"], prefix="two ") == pytest.approx(vectors(home, ["two apples"]), abs=1e-6)
    assert vectors(home, ["two " * 14]) == pytest.approx(vectors(home, ["two " * 40]), abs=1e-6)


def test_weights_and_use_name_the_vectors(home: Path) -> None:
    settings = TorchEmbedder(kind="torch", model="m")
    names = [
        open_embedder(settings.model_copy(update=update), home).name
        for update in ({}, {"batch": 3}, {"device": "cpu"}, {"model": "other"}, {"pooling": "cls"})
    ]
    assert names[0] == names[1] == names[2]
    assert len(set(names)) == 3


def test_a_model_of_the_hub_needs_a_revision(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="needs a `revision`"):
        open_embedder(TorchEmbedder(kind="torch", model="nobody/model"), tmp_path)
