"""The loop with real vLLM generation: weights change under attempts, and every attempt is accounted for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.training.students import student
from training.engines.embedded.run import train
from training.recipe import TrainRecipe

pytestmark = [pytest.mark.vllm, pytest.mark.slow]

STEPS = 2


def test_a_run_with_vllm(tmp_path: Path) -> None:
    pytest.importorskip("vllm")
    recipe = TrainRecipe.model_validate(
        {
            "name": "small",
            "seed": 3,
            "steps": STEPS,
            **student(kind="vllm", dtype="float32", kv_cache_mb=64),
            "data": {"kind": "embedded", "problems": 200, "seed": 11},
            "collector": {"group_size": 4, "n_async": 32, "n_batch": 16, "max_staleness": 3},
            "rewards": {"max_length": 96, "length_penalty": 0.0, "language": 0.0},
            "optim": {"learning_rate": 1e-4, "warmup_steps": 1},
            "packing": {"micro_batch_tokens": 2048},
            "evaluation": {"data": None},
            "checkpoints": {"every": 100},
        }
    )
    train(recipe, tmp_path, tmp_path / "run")
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    ledger = summary["ledger"]
    assert ledger["trained"] == 16 * STEPS
    assert ledger["admitted"] == ledger["trained"] + sum(ledger["dropped"].values())
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    steps = [row for row in rows if row["step"] > 0]
    assert [row["step"] for row in steps] == list(range(1, STEPS + 1))
    assert steps[0]["policy/mismatch_max"] < 1e-3  # before any update, trainer and generator agree
    assert all(row["speed/update_s"] > 0 for row in steps)
    attempts = [json.loads(line) for line in (tmp_path / "run" / "attempts.jsonl").read_text().splitlines()]
    assert any(one["newest"] > one["oldest"] for one in attempts)  # updates came in mid-generation
