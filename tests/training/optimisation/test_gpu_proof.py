"""The command that proves training on a GPU: on a CPU at toy size, its comparison finds a fault."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.benchmarks.gpu import correctness
from training.optimisation import attention

CPU = torch.device("cpu")


def test_a_token_that_sees_another_sequence_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert correctness.packed_fp32(CPU).passed
    own = attention.PackedLayout

    def crossing(ends: Any, *more: Any) -> Any:
        return own(ends[[0, -1]], *more)

    monkeypatch.setattr(attention, "PackedLayout", crossing)
    seen = correctness.packed_fp32(CPU)
    assert not seen.passed
    assert seen.difference > 0.01
