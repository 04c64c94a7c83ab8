"""The command that proves training on a GPU, on a CPU at toy size, and that its comparisons would see a fault."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.benchmarks.gpu import correctness, models
from tests.benchmarks.gpu.__main__ import table
from tests.places import ROOT
from training.optimisation import attention, trainer

CPU = torch.device("cpu")

BARE = """
import importlib.util, runpy, sys

MISSING = "pydantic pydantic_core polars _polars_runtime_32 pyarrow orjson msgspec flint aiohttp prefect".split()

class Bare:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in MISSING:
            raise ModuleNotFoundError(f"a bare machine has no {name}")

find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name in MISSING else find(name, *more)
sys.meta_path.insert(0, Bare())
sys.argv[1:] = ["--toy", "--json", sys.argv[1]]
runpy.run_module("tests.benchmarks.gpu", run_name="__main__")
"""


@pytest.mark.slow
def test_it_runs_where_there_is_nothing_but_torch_and_transformers(tmp_path: Path) -> None:
    """In a process whose other packages cannot be imported."""
    out = tmp_path / "gpu.json"
    done = subprocess.run([sys.executable, "-c", BARE, str(out)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads(out.read_text())
    assert {"pydantic", "polars"} <= set(result["stand_ins"])
    assert [row["check"] for row in result["checks"] if not row["passed"]] == []
    assert len(result["checks"]) == 4
    (row,) = result["figures"]
    assert row["tokens_per_s"] > 0
    assert row["weights_gib"] * 2**30 == pytest.approx(2 * row["parameters"], rel=0.01)
    assert "| toy | 512 |" in done.stdout


def test_a_token_that_sees_another_sequence_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert correctness.packed_fp32(CPU).passed
    own = attention.PackedLayout

    def crossing(ends: Any, *more: Any) -> Any:
        return own(ends[[0, -1]], *more)

    monkeypatch.setattr(attention, "PackedLayout", crossing)
    seen = correctness.packed_fp32(CPU)
    assert not seen.passed
    assert seen.difference > 0.01


def test_a_gradient_and_a_state_that_differ_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    shard = trainer.shard

    def doubled(policy: Any, *more: Any, **options: Any) -> None:
        with torch.no_grad():
            next(policy.parameters()).mul_(1.001)
        shard(policy, *more, **options)

    monkeypatch.setattr(trainer, "shard", doubled)
    assert not correctness.fsdp_of_one_rank(CPU).passed
    monkeypatch.setattr(trainer.Trainer, "load", lambda self, _, steps: setattr(self, "steps_taken", steps))
    assert not correctness.saved_and_loaded(CPU).passed


def test_operations_by_hand() -> None:
    """One sequence of 512 tokens and two of 256, of which 64 each are the prompt."""
    shape = models.TOY
    samples = models.batch(shape, 1024, 1)
    assert [sample.length for sample in samples] == [512, 256, 256]
    layer = 2 * 64 * 16 * (4 + 2) + 3 * 64 * 128 + 2 * 64
    assert shape.layer_parameters == layer
    attention_part = 6 * 2 * 64 * (512**2 + 2 * 256**2)
    assert models.step_flops(shape, samples) == 6 * 2 * layer * 1024 + attention_part + 6 * 512 * 64 * (1024 - 3 * 64)


def test_what_could_not_be_measured_is_named_in_the_table() -> None:
    (_, _, row) = table([{"model": "7B", "tokens": 16_384, "error": "out of memory: CUDA"}])
    assert "out of memory" in row
