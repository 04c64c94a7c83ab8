"""Embeddings in ONNX Runtime, by a model whose vectors are known; and what is said where something is missing."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from curation.config.embeddings import OnnxEmbedder
from curation.embeddings import onnx_runtime
from curation.embeddings.onnx_runtime import OnnxRuntime
from curation.records import ConfigError
from tests.curation.embeddings.onnx_file import WORDS, write_model

HAS_RUNTIME = all(importlib.util.find_spec(name) is not None for name in ("onnxruntime", "tokenizers"))
needs_runtime = pytest.mark.skipif(not HAS_RUNTIME, reason="the extra `onnx` (onnxruntime) is not installed")
TABLE = np.arange(1, 3 * len(WORDS) + 1, dtype=np.float32).reshape(len(WORDS), 3) ** 2


def embedder(folder: Path, **changes: object) -> OnnxRuntime:
    values: dict[str, object] = {"kind": "onnx", "model": "m"}
    return OnnxRuntime(OnnxEmbedder.model_validate({**values, **changes}), folder)


def unit(*vectors: np.ndarray) -> np.ndarray:
    return np.array([vector / np.linalg.norm(vector) for vector in vectors])


@needs_runtime
def test_vectors_are_pooled_without_the_padding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_runtime, "BATCH", 2)
    write_model(tmp_path / "m", TABLE)
    texts = ["two", "three apples two", "pears pears", "two apples"]
    means = [TABLE[1], TABLE[[2, 3, 1]].mean(0), TABLE[4], TABLE[[1, 3]].mean(0)]
    assert embedder(tmp_path).embed(texts) == pytest.approx(unit(*means), abs=1e-6)
    first = unit(TABLE[1], TABLE[2], TABLE[4], TABLE[1])
    assert embedder(tmp_path, pooling="cls").embed(texts) == pytest.approx(first, abs=1e-6)
    last = unit(TABLE[1], TABLE[1], TABLE[4], TABLE[3])
    assert embedder(tmp_path, pooling="last").embed(texts) == pytest.approx(last, abs=1e-6)


@needs_runtime
def test_prefix_cut_and_inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_runtime, "MAX_TOKENS", 8)
    write_model(tmp_path / "m" / "onnx", TABLE, inputs=("input_ids", "attention_mask", "token_type_ids"))
    (tmp_path / "m" / "onnx" / "tokenizer.json").rename(tmp_path / "m" / "tokenizer.json")
    cut = embedder(tmp_path, prefix="pears ").embed(["two " * 20])
    assert cut == pytest.approx(unit((TABLE[4] + 7 * TABLE[1]) / 8), abs=1e-6)
    assert embedder(tmp_path).embed([]).shape == (0, 0)


@needs_runtime
def test_another_model_has_another_name(tmp_path: Path) -> None:
    write_model(tmp_path / "m", TABLE)
    before = embedder(tmp_path).name
    assert embedder(tmp_path).name == before != embedder(tmp_path, pooling="cls").name
    write_model(tmp_path / "m", TABLE + 1)
    assert embedder(tmp_path).name != before


@needs_runtime
def test_what_is_missing_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"holds no model\.onnx or onnx/model\.onnx"):
        embedder(tmp_path)
    write_model(tmp_path / "m", TABLE, inputs=("pixels",))
    with pytest.raises(ConfigError, match="wants the input 'pixels'"):
        embedder(tmp_path).embed(["two"])


@pytest.mark.skipif(HAS_RUNTIME, reason="the extra `onnx` is installed")
def test_without_the_extra_the_error_names_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"goldilocks-rl\[onnx\]"):
        embedder(tmp_path)
