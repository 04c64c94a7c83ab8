"""Weights on their way to generators, through a file."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch

from curation.records import PolicyError
from tests.curation.policies.tiny_llama import make_tiny_llama
from training.embedded_model import WEIGHTS
from training.generation.checkpoint_tensors import read_tensors, tensor_shapes, write_weights
from training.optimisation.model import load_model


def test_tied_weights_are_written_once(tmp_path: Path) -> None:
    state = load_model(WEIGHTS).state_dict()
    write_weights(state, tmp_path / "w")
    back = dict(read_tensors(tmp_path / "w"))
    assert len(back) == len(state) - 1
    assert all(torch.equal(back[name], state[name]) for name in back)


def test_shapes_are_read_from_headers(tmp_path: Path) -> None:
    first, second = (make_tiny_llama(tmp_path / name, seed) for name, seed in (("first", 1), ("second", 2)))
    assert tensor_shapes(first)["lm_head.weight"] == (258, 64)
    assert tensor_shapes(first) == tensor_shapes(second)
    cut = shutil.copytree(first, tmp_path / "cut")
    (cut / "model.safetensors").write_bytes((cut / "model.safetensors").read_bytes()[:50])
    with pytest.raises(PolicyError, match=r"model\.safetensors is no whole safetensors file"):
        tensor_shapes(cut)
    (cut / "model.safetensors").unlink()
    (cut / "pytorch_model.bin").write_bytes(b"pickle")
    assert tensor_shapes(cut) == {}
    with pytest.raises(PolicyError, match=r"pytorch_model\.bin is no safetensors file"):
        next(read_tensors(cut))
