"""`goldilocks status` of a training run, at its beginning, half-way and finished."""

from __future__ import annotations

import json
from pathlib import Path

from flows.run.training import is_training
from tests.flows.conftest import goldilocks


def test_status_of_a_training_run(tmp_path: Path) -> None:
    assert not is_training(tmp_path)
    run = {"kind": "training", "recipe": {"name": "tiny", "steps": 4}, "recipe_folder": "."}
    (tmp_path / "run.json").write_text(json.dumps(run))
    assert goldilocks("status", tmp_path).out.splitlines()[1] == "  step 0 of 4"
    row = {"step": 3, "batch/pass_rate": 0.25, "policy/entropy": 0.5}
    (tmp_path / "metrics.jsonl").write_text(json.dumps(row) + '\n{"step": 4, "bat')  # the last line is being written
    said = goldilocks("status", tmp_path)
    assert said.status == 0
    assert said.out.splitlines()[1:] == [
        "  step 3 of 4",
        "  pass rate 0.250, entropy 0.500",
        f"  not finished; `goldilocks train --resume {tmp_path}` goes on",
    ]
    (tmp_path / "stalled.json").write_text(json.dumps({"step": 3, "message": "step 4 found nothing"}))
    assert "  ended: step 4 found nothing" in goldilocks("status", tmp_path).out.splitlines()
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "DONE.json").write_text("{}")
    assert goldilocks("status", tmp_path).out.splitlines()[-1] == f"  the trained model: {tmp_path / 'model'}"
