"""The bytes of a tiny ONNX model, written by hand: a table of vectors, one per token, so that tests know the answer.

ONNX files are protocol buffers; the numbers below are the field numbers of `onnx.proto3`.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

WORDS = ["[UNK]", "two", "three", "apples", "pears"]
FLOAT, INT64 = 1, 7


def write_model(folder: Path, table: NDArray[np.float32], *, inputs: tuple[str, ...] = ("input_ids",)) -> None:
    """Write ``model.onnx``, which gives each token its line of the table, and a tokenizer of `WORDS`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(model(table, inputs))
    tokenizer: dict[str, object] = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
        "pre_tokenizer": {"type": "Whitespace"}, "post_processor": None, "decoder": None,
        "model": {"type": "WordLevel", "vocab": {word: at for at, word in enumerate(WORDS)}, "unk_token": "[UNK]"},
    }  # fmt: skip
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))


def model(table: NDArray[np.float32], inputs: tuple[str, ...]) -> bytes:
    """Return a model whose one node gathers lines of the table by the first input."""
    node = _text(1, "table") + _text(1, inputs[0]) + _text(2, "last_hidden_state") + _text(4, "Gather")
    tensor = b"".join(_number(1, size) for size in table.shape) + _number(2, FLOAT) + _text(8, "table")
    tensor += _bytes(9, struct.pack(f"<{table.size}f", *table.ravel()))
    graph = _bytes(1, node) + _text(2, "graph") + _bytes(5, tensor)
    graph += b"".join(_bytes(11, _value(name, INT64, ("texts", "tokens"))) for name in inputs)
    graph += _bytes(12, _value("last_hidden_state", FLOAT, ("texts", "tokens", table.shape[1])))
    return _number(1, 8) + _bytes(7, graph) + _bytes(8, _number(2, 13))


def _value(name: str, kind: int, shape: tuple[str | int, ...]) -> bytes:
    axes = b"".join(_bytes(1, _number(1, axis) if isinstance(axis, int) else _text(2, axis)) for axis in shape)
    return _text(1, name) + _bytes(2, _bytes(1, _number(1, kind) + _bytes(2, axes)))


def _varint(value: int) -> bytes:
    parts = []
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    return bytes([*parts, value])


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _text(field: int, value: str) -> bytes:
    return _bytes(field, value.encode())
